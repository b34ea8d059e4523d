//! What only types tell, settled before the grammar, which knows none, reads it wrongly and without an error.
//!
//! `(n) + 1` parses as a cast of `+1`, `(i * (ld)) + j` as one of `+j` to a type. A name that the file declares as a variable
//! is none: the parentheses around it are blanked where they change nothing, not behind a name, where they are a call,
//! nor behind `)`, `]` or `>`.
//!
//! `cg::tile<32> t = f();` behind another statement parses as `cg::tile < 32 > (t = f())`. A comparison whose value nobody
//! takes is a declaration: the qualifier is blanked, and `tile<32> t = f();` parses as one.

use rustc_hash::FxHashSet;

use super::lex::{Kind, Token, lex};

/// The masked text with such parentheses and qualifiers blanked; as many bytes as before.
pub fn settled(masked: &str) -> String {
    let tokens = lex(masked);
    let mut out = masked.as_bytes().to_vec();
    blank_lone_parentheses(masked, &tokens, &mut out);
    for start in 1..tokens.len() {
        let before = tokens.get(start - 1).map(|token| token.kind);
        if !matches!(before, Some(Kind::Punct(b';' | b'{' | b'}'))) {
            continue;
        }
        let Some(qualifier) = tokens.get(start..).and_then(|rest| qualifier_of_comparison(masked, rest))
        else {
            continue;
        };
        if let Some(bytes) = out.get_mut(qualifier) {
            bytes.fill(b' ');
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| masked.to_owned())
}

/// The bytes of `a::b::` at the start of `a::b::name<3> variable`, with a number or arithmetic as the only argument.
fn qualifier_of_comparison(masked: &str, tokens: &[Token]) -> Option<std::ops::Range<usize>> {
    let mut at = 0;
    let start = tokens.first()?.start as usize;
    while let [name, one, two, ..] = tokens.get(at..)?
        && is_word(name)
        && one.kind == Kind::Punct(b':')
        && two.kind == Kind::Punct(b':')
    {
        at += 3;
    }
    let [name, open, ..] = tokens.get(at..)? else { return None };
    if at == 0 || !is_word(name) || open.kind != Kind::Punct(b'<') {
        return None;
    }
    let end = name.start as usize;
    let mut is_value = false;
    for (place, token) in tokens.get(at + 2..)?.iter().enumerate().take(12) {
        match token.kind {
            Kind::Number | Kind::Punct(b'+' | b'-' | b'/' | b'%') => is_value = true,
            Kind::Word(_) | Kind::Punct(b'*' | b'(' | b')') => {}
            Kind::Punct(b'>') => {
                let declared = tokens.get(at + 3 + place)?;
                return (is_value && is_word(declared) && text(masked, declared) != "operator")
                    .then_some(start..end);
            }
            _ => return None,
        }
    }
    None
}

fn blank_lone_parentheses(masked: &str, tokens: &[Token], out: &mut [u8]) {
    let variables = variables(masked, tokens);
    for window in tokens.windows(4) {
        let [before, open, name, close] = window else { continue };
        let lone = open.kind == Kind::Punct(b'(') && close.kind == Kind::Punct(b')') && is_word(name);
        if !lone || !variables.contains(text(masked, name)) || !starts_operand(masked, before) {
            continue;
        }
        for place in [open.start, close.start] {
            if let Some(byte) = out.get_mut(place as usize) {
                *byte = b' ';
            }
        }
    }
}

fn text<'a>(masked: &'a str, token: &Token) -> &'a str {
    masked.get(token.range()).unwrap_or("")
}

fn is_word(token: &Token) -> bool {
    matches!(token.kind, Kind::Word(_))
}

/// Does an operand follow this token?
fn starts_operand(masked: &str, before: &Token) -> bool {
    match before.kind {
        Kind::Punct(byte) => b"+-*/%&|^=<!~?:,([{;".contains(&byte),
        Kind::Word(_) => text(masked, before) == "return",
        Kind::Number | Kind::Literal | Kind::Directive | Kind::End => false,
    }
}

/// Names that stand where a declarator does and never where a type is declared: `T name = …`, `T *name)`, `T name[`.
fn variables<'a>(masked: &'a str, tokens: &[Token]) -> FxHashSet<&'a str> {
    let mut found = FxHashSet::default();
    let mut types = FxHashSet::default();
    for window in tokens.windows(3) {
        let [before, name, after] = window else { continue };
        if !is_word(name) {
            continue;
        }
        let (left, word) = (text(masked, before), text(masked, name));
        if matches!(left, "struct" | "class" | "union" | "enum" | "typename" | "using" | "concept") {
            types.insert(word);
            continue;
        }
        let declares = match before.kind {
            Kind::Word(_) => {
                !matches!(left, "return" | "else" | "case" | "goto" | "new" | "delete" | "throw" | "typedef")
            }
            Kind::Punct(byte) => matches!(byte, b'*' | b'&' | b'>'),
            Kind::Number | Kind::Literal | Kind::Directive | Kind::End => false,
        };
        if declares && matches!(after.kind, Kind::Punct(b'=' | b';' | b',' | b')' | b'[')) {
            found.insert(word);
        }
    }
    // `typedef … name;`
    let mut in_typedef = false;
    for window in tokens.windows(2) {
        let [name, after] = window else { continue };
        in_typedef |= text(masked, name) == "typedef";
        if in_typedef && after.kind == Kind::Punct(b';') {
            types.insert(text(masked, name));
            in_typedef = false;
        }
    }
    found.retain(|name| !types.contains(name) && !is_type_name(name));
    found
}

fn is_type_name(name: &str) -> bool {
    const TYPES: &[&str] =
        &["int", "unsigned", "float", "double", "char", "short", "long", "bool", "void", "auto", "half"];
    TYPES.contains(&name) || name.ends_with("_t") || name.starts_with("__")
}
