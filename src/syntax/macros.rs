//! Preprocessor facts: macro definitions and includes, and what kind of text a macro stands for.

use rustc_hash::FxHashMap;

use super::lex::{self, Kind, Token, Word};

/// Whether the place of a directive is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Live,
    /// Under a file-scope `#if` on a name that nothing defines: analysed, yet a default build would not compile it.
    Kept,
    Dead,
}

/// One `#define` or `#undef`, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct MacroDef {
    pub name: String,
    /// `None` for an object-like macro. The variadic parameter is not listed unless it is named (`args...`).
    pub params: Option<Vec<String>>,
    pub variadic: bool,
    /// Comments removed, continued lines joined by a space.
    pub body: String,
    /// The byte offset of the `#`.
    pub offset: u32,
    pub presence: Presence,
    /// An `#undef`: the name has no definition from here on.
    pub undef: bool,
}

impl MacroDef {
    /// An object-like definition that no file holds, as by `-D NAME=body`.
    pub fn object(name: &str, body: &str) -> MacroDef {
        MacroDef {
            name: name.to_owned(),
            params: None,
            variadic: false,
            body: body.to_owned(),
            offset: 0,
            presence: Presence::Live,
            undef: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Include {
    pub path: String,
    /// `"…"`, as against `<…>`.
    pub quoted: bool,
    /// The byte offset of the `#`.
    pub offset: u32,
    pub presence: Presence,
}

/// Macros visible before the file's first line: `-D`, configuration, and those of included files.
#[derive(Clone, Debug, Default)]
pub struct Defines {
    macros: FxHashMap<String, MacroDef>,
}

impl Defines {
    /// Reads `NAME`, `NAME=text` or `NAME(a,b)=text` as a compiler's `-D` does; `NAME` alone is 1.
    pub fn define(&mut self, text: &str) {
        let (head, body) = text.split_once('=').unwrap_or((text, "1"));
        if let Some(mut def) = parse_define(&format!("{head} "), 0, Presence::Live) {
            def.body = body.trim().to_owned();
            self.insert(def);
        }
    }

    /// Adds a definition; an `#undef` removes it, one in a branch not compiled changes nothing.
    pub fn insert(&mut self, def: MacroDef) {
        match (def.presence, def.undef) {
            (Presence::Dead, _) => {}
            (Presence::Live, true) => {
                self.macros.remove(&def.name);
            }
            (Presence::Kept, true) => {}
            (Presence::Kept, false) => {
                self.macros.entry(def.name.clone()).or_insert(def);
            }
            (Presence::Live, false) => {
                self.macros.insert(def.name.clone(), def);
            }
        }
    }

    pub fn get(&self, name: &str) -> Option<&MacroDef> {
        self.macros.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &MacroDef> {
        self.macros.values()
    }
}

/// A directive's text without comments and with continued lines joined.
pub fn clean(directive: &str) -> String {
    let bytes = directive.as_bytes();
    let mut out = String::with_capacity(directive.len());
    let (mut at, mut from) = (0, 0);
    while at < bytes.len() {
        let skip = match bytes.get(at) {
            Some(b'"') => {
                at = literal_end(bytes, at);
                continue;
            }
            Some(b'\\') => lex::continuation(bytes, at),
            Some(b'/') => lex::comment_end(bytes, at).map_or(0, |end| end - at),
            _ => 0,
        };
        if skip == 0 {
            at += 1;
            continue;
        }
        out.push_str(directive.get(from..at).unwrap_or(""));
        out.push(' ');
        at += skip;
        from = at;
    }
    out.push_str(directive.get(from..).unwrap_or(""));
    out
}

fn literal_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        at += if byte == b'\\' { 2 } else { 1 };
        if byte == b'"' {
            break;
        }
    }
    at.min(bytes.len())
}

fn word_length(text: &str) -> usize {
    text.bytes().position(|byte| !lex::is_word_byte(byte)).unwrap_or(text.len())
}

/// Reads what follows `define`: a name, perhaps parameters directly after it, and the body.
pub fn parse_define(rest: &str, offset: u32, presence: Presence) -> Option<MacroDef> {
    let rest = rest.trim_start();
    let (name, tail) = rest.split_at_checked(word_length(rest))?;
    if name.is_empty() {
        return None;
    }
    let mut def = MacroDef { offset, presence, ..MacroDef::object(name, tail.trim()) };
    if let Some(inner) = tail.strip_prefix('(') {
        let (list, body) = inner.split_once(')').unwrap_or((inner, ""));
        let mut params = Vec::new();
        for param in list.split(',').map(str::trim).filter(|param| !param.is_empty()) {
            let (name, dots) = param.strip_suffix("...").map_or((param, false), |name| (name.trim(), true));
            def.variadic |= dots;
            if !name.is_empty() {
                params.push(name.to_owned());
            }
        }
        def.params = Some(params);
        def.body = body.trim().to_owned();
    }
    Some(def)
}

pub fn parse_undef(rest: &str, offset: u32, presence: Presence) -> Option<MacroDef> {
    let mut def = parse_define(rest, offset, presence)?;
    def.undef = true;
    def.body.clear();
    Some(def)
}

pub fn parse_include(rest: &str, offset: u32, presence: Presence) -> Option<Include> {
    let rest = rest.trim_start();
    let (inner, close, quoted) = match rest.strip_prefix('"') {
        Some(inner) => (inner, '"', true),
        None => (rest.strip_prefix('<')?, '>', false),
    };
    let path = inner.split_once(close)?.0.to_owned();
    Some(Include { path, quoted, offset, presence })
}

/// What a macro stands for, read off its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Only attributes and specifiers, or nothing: may be blanked anywhere.
    Attribute,
    /// Attributes and specifiers with `__global__`.
    Kernel,
    /// The open head of a loop: `for (…)`, `while (…)`, perhaps with an `if (…)` behind it.
    Loop,
    /// The open head of an `if`.
    Condition,
    /// Statements, with or without a last `;`.
    Statement,
    /// A type: `float`, `unsigned long long`.
    Type,
    /// An expression or a name.
    Value,
}

/// The macros visible to one file and their classes.
pub struct Visible<'a> {
    defs: FxHashMap<&'a str, &'a MacroDef>,
    classes: FxHashMap<&'a str, Class>,
}

impl<'a> Visible<'a> {
    /// The file's own definitions win over those of `defines`; the first live one counts.
    pub fn new(file: &'a [MacroDef], defines: &'a Defines) -> Visible<'a> {
        let mut defs: FxHashMap<&str, &MacroDef> = FxHashMap::default();
        for presence in [Presence::Live, Presence::Kept] {
            for def in file.iter().filter(|def| def.presence == presence && !def.undef) {
                defs.entry(def.name.as_str()).or_insert(def);
            }
        }
        for def in defines.iter() {
            defs.entry(def.name.as_str()).or_insert(def);
        }
        let mut visible = Visible { defs, classes: FxHashMap::default() };
        let mut names: Vec<&'a str> = visible.defs.keys().copied().collect();
        names.sort_unstable();
        let mut open = Vec::new();
        for name in names {
            visible.class_of(name, &mut open);
        }
        visible
    }

    pub fn get(&self, name: &str) -> Option<&'a MacroDef> {
        self.defs.get(name).copied()
    }

    /// The class of an object-like macro.
    pub fn object(&self, name: &str) -> Option<Class> {
        self.get(name).filter(|def| def.params.is_none())?;
        self.classes.get(name).copied()
    }

    /// The class of a function-like macro.
    pub fn function(&self, name: &str) -> Option<Class> {
        self.get(name).filter(|def| def.params.is_some())?;
        self.classes.get(name).copied()
    }

    fn class_of(&mut self, name: &str, open: &mut Vec<&'a str>) -> Option<Class> {
        if let Some(&class) = self.classes.get(name) {
            return Some(class);
        }
        let (&name, &def) = self.defs.get_key_value(name)?;
        // A cycle or a very long chain of macros is a value like any other.
        if open.len() >= 32 || open.contains(&name) {
            return Some(Class::Value);
        }
        open.push(name);
        let tokens = lex::lex(&def.body);
        let class = self.class_of_body(&def.body, &tokens, open);
        open.pop();
        self.classes.insert(name, class);
        Some(class)
    }

    fn class_of_body(&mut self, body: &str, tokens: &[Token], open: &mut Vec<&'a str>) -> Class {
        if let Some(class) = self.attributes_only(body, tokens, open) {
            return class;
        }
        let kind = |at: usize| tokens.get(at).map_or(Kind::End, |token| token.kind);
        let last = tokens.last().map_or(Kind::End, |token| token.kind);
        if let Some(class) = open_head(body, tokens) {
            return class;
        }
        if tokens.iter().any(|token| token.kind == Kind::Punct(b';'))
            || matches!(kind(0), Kind::Word(Word::Statement | Word::Do))
            || last == Kind::Punct(b'}')
        {
            return Class::Statement;
        }
        let is_type = |token: &Token| matches!(token.kind, Kind::Word(Word::Type | Word::Void | Word::Const));
        if tokens.iter().any(is_type)
            && tokens.iter().all(|token| is_type(token) || matches!(token.kind, Kind::Punct(b'*' | b'&')))
        {
            return Class::Type;
        }
        Class::Value
    }

    /// `Attribute` or `Kernel` where the body is nothing but specifiers and attributes.
    fn attributes_only(&mut self, body: &str, tokens: &[Token], open: &mut Vec<&'a str>) -> Option<Class> {
        let mut class = Class::Attribute;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let takes_arguments = match token.kind {
                Kind::Word(Word::Specifier | Word::Function | Word::Space | Word::Restrict | Word::Const) => {
                    false
                }
                Kind::Word(Word::Trailer) => false,
                Kind::Word(Word::Void) if class == Class::Kernel => false,
                Kind::Word(Word::Global) => {
                    class = Class::Kernel;
                    false
                }
                Kind::Word(
                    Word::Align
                    | Word::Attribute
                    | Word::Bounds
                    | Word::Cluster
                    | Word::Registers
                    | Word::BlockSize
                    | Word::Pragma,
                ) => true,
                Kind::Word(Word::Plain | Word::Caps) => {
                    let inner = self.class_of(&body[token.range()], open)?;
                    match inner {
                        Class::Attribute => {}
                        Class::Kernel => class = Class::Kernel,
                        Class::Loop | Class::Condition | Class::Statement | Class::Type | Class::Value => {
                            return None;
                        }
                    }
                    true
                }
                Kind::Literal => false,
                Kind::Punct(b'[') if tokens.get(at + 1).is_some_and(|t| t.kind == Kind::Punct(b'[')) => {
                    at = group_end(tokens, at);
                    continue;
                }
                Kind::Word(_) | Kind::Number | Kind::Punct(_) | Kind::Directive | Kind::End => return None,
            };
            at += 1;
            if takes_arguments && tokens.get(at).is_some_and(|token| token.kind == Kind::Punct(b'(')) {
                at = group_end(tokens, at);
            }
        }
        // A lone string is a value, not the "C" of `extern "C"`.
        let begins_with_literal = tokens.first().is_some_and(|token| token.kind == Kind::Literal);
        (!begins_with_literal).then_some(class)
    }
}

/// The class of a body whose last tokens are `for (…)`, `while (…)` or `if (…)` without the statement they govern.
fn open_head(body: &str, tokens: &[Token]) -> Option<Class> {
    let is = |token: &Token, words: &[&str]| {
        token.kind == Kind::Word(Word::Statement) && words.contains(&&body[token.range()])
    };
    let at = tokens.iter().rposition(|token| is(token, &["for", "while", "if"]))?;
    let after_block =
        at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|t| t.kind == Kind::Punct(b'}'));
    let is_do_while = after_block || tokens.first().is_some_and(|token| token.kind == Kind::Word(Word::Do));
    let opens = tokens.get(at + 1).is_some_and(|token| token.kind == Kind::Punct(b'('));
    if is_do_while || !opens || group_end(tokens, at + 1) != tokens.len() {
        return None;
    }
    let loops = tokens.iter().any(|token| is(token, &["for", "while"]));
    Some(if loops { Class::Loop } else { Class::Condition })
}

/// The index after the bracket that closes the one at `open`.
pub fn group_end(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0u32;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Punct(b'(' | b'[' | b'{') => depth += 1,
            Kind::Punct(b')' | b']' | b'}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}
