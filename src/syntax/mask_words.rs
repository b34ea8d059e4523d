//! Masks that look at one word and its neighbours: attributes, qualifiers, `typename`, packs.

use super::lex::{self, Kind, Word};
use super::macros::{self, Class};
use super::mask::{Attribute, AttributeKind, Masker};

/// How many macros are expanded to learn what one attribute macro says.
const EXPANSIONS: u32 = 32;

impl Masker<'_> {
    pub(super) fn words(&mut self) {
        let mut at = 0;
        let mut before = Kind::End;
        while at < self.tokens.len() {
            let next = self.word(at, before);
            if let Some(kept) = (at..next).rev().map(|at| self.kind(at)).find(|kind| *kind != Kind::End) {
                before = kept;
            }
            at = next;
        }
        self.compact();
    }

    /// Masks what begins at `at`; returns the index to go on with. `before` is the last token that stays.
    fn word(&mut self, at: usize, before: Kind) -> usize {
        let Kind::Word(word) = self.kind(at) else { return self.punctuation(at, before) };
        match word {
            Word::Align
            | Word::Attribute
            | Word::Bounds
            | Word::Cluster
            | Word::Registers
            | Word::BlockSize
            | Word::Pragma => self.attribute(at, word),
            // `[=] __device__ (…)`, `T& __device__ f(…)`
            Word::Function if matches!(before, Kind::Punct(b']' | b'*' | b'&')) => {
                // But not `[[nodiscard]] __device__`.
                let attribute = self.is(at.wrapping_sub(1), b']') && self.is(at.wrapping_sub(2), b']');
                if !attribute {
                    let range = self.bytes(at, at);
                    let kind = AttributeKind::Specifiers(self.text(at).to_owned());
                    self.attributes.push(Attribute { start: range.start, end: range.end, kind });
                    self.drop(at, at);
                }
                at + 1
            }
            // `__device__ friend` parses as `friend __device__` does, without `friend`.
            Word::Declaration
                if self.text(at) == "friend"
                    && matches!(before, Kind::Word(Word::Function | Word::Specifier | Word::Caps)) =>
            {
                self.drop(at, at);
                at + 1
            }
            Word::Typename => self.typename(at),
            Word::Restrict if before == Kind::Word(Word::Const) => {
                self.blank_restrict(at);
                at + 1
            }
            Word::Operator if self.text(at) == "decltype" && before != Kind::Punct(b'>') => self.decltype(at),
            Word::Plain | Word::Caps => self.macro_word(at, before),
            _ => at + 1,
        }
    }

    fn punctuation(&mut self, at: usize, before: Kind) -> usize {
        if self.is(at, b'.') && self.is(at + 1, b'.') && self.is(at + 2, b'.') {
            let pointer = matches!(before, Kind::Punct(b'*' | b'&') | Kind::Word(Word::Const));
            if pointer && self.is_name(at + 3) {
                self.drop(at, at + 2);
            }
            return at + 3;
        }
        let empty_default = self.is(at, b'=') && self.is(at + 1, b'{') && self.is(at + 2, b'}');
        if empty_default && (self.is(at + 3, b',') || self.is(at + 3, b')')) {
            self.drop(at, at + 2);
            return at + 3;
        }
        at + 1
    }

    fn attribute(&mut self, at: usize, word: Word) -> usize {
        let close = self.close(at + 1);
        let end = close.unwrap_or(at);
        if let Some(close) = close {
            let args = self.arguments(at + 1, close).into_iter().map(|arg| arg.text).collect();
            let range = self.bytes(at, close);
            for kind in meaning(word, args) {
                self.attributes.push(Attribute { start: range.start, end: range.end, kind });
            }
        }
        self.drop(at, end);
        end + 1
    }

    /// `decltype(x){}` has no place in the grammar's expressions: `(x)` has the same type, `decltype(x){0}` the value
    /// `(0)`.
    fn decltype(&mut self, at: usize) -> usize {
        let Some(close) = self.close(at + 1) else { return at + 1 };
        let Some(end) = self.pair(close + 1).filter(|_| self.is(close + 1, b'{')) else { return at + 1 };
        let (open, shut) = (self.bytes(close + 1, close + 1).start, self.bytes(end, end).start);
        if end == close + 2 {
            self.drop(at, at);
            self.drop(close + 1, end);
            return end + 1;
        }
        self.drop(at, close + 1);
        self.drop(end, end);
        self.write(open, "(");
        self.write(shut, ")");
        end + 1
    }

    /// `typename X::Y{…}` and `typename X::Y(…)` are expressions that the grammar takes only without `typename`.
    fn typename(&mut self, at: usize) -> usize {
        let mut end = at + 1;
        if self.is_scope_operator(end) {
            end += 2;
        }
        while self.is_name(end) || self.is_word(end, Word::Template) {
            end += 1;
            if self.is(end, b'<') {
                match self.angle_end(end) {
                    Some(after) => end = after,
                    None => return at + 1,
                }
            }
            if !self.is_scope_operator(end) {
                break;
            }
            end += 2;
        }
        if end > at + 1 && (self.is(end, b'{') || self.is(end, b'(')) {
            self.drop(at, at);
        }
        at + 1
    }

    /// The grammar takes no `__restrict__` after `* const`.
    fn blank_restrict(&mut self, at: usize) {
        let range = self.bytes(at, at);
        self.attributes.push(Attribute { start: range.start, end: range.end, kind: AttributeKind::Restrict });
        self.drop(at, at);
    }

    /// Puts the shortest spelling that the grammar knows in place of a macro for `__restrict__`.
    fn restrict(&mut self, at: usize) {
        let range = self.bytes(at, at);
        self.blank_restrict(at);
        if range.len() >= "restrict".len() {
            self.write(range.start, "restrict");
        }
    }

    fn macro_word(&mut self, at: usize, before: Kind) -> usize {
        if before == Kind::Literal
            && let Some(end) = self.string_macro(at)
        {
            self.drop(at, end);
            return end + 1;
        }
        match self.class(at) {
            Some(Class::Attribute) => return self.attribute_macro(at),
            Some(Class::Value | Class::Type) => return at + 1,
            _ => {}
        }
        let pointer = matches!(before, Kind::Punct(b'*' | b'&') | Kind::Word(Word::Const));
        let declares =
            self.is_name(at + 1) && self.is_word(at, Word::Caps) && self.visible.get(self.text(at)).is_none();
        // `const REAL x` is a type; `* const MACRO x` is not told from it, so `const` counts only after `*`.
        let after_star = at.checked_sub(2).is_some_and(|two| self.is(two, b'*'));
        if pointer && declares && (before != Kind::Word(Word::Const) || after_star) {
            let restricts = self.text(at).to_ascii_uppercase().contains("RESTRICT");
            if restricts && before == Kind::Word(Word::Const) {
                self.blank_restrict(at);
            } else if restricts {
                self.restrict(at);
            } else {
                self.drop(at, at);
            }
        }
        at + 1
    }

    /// The last token of the macro after a string, in `"a"FMT "b"` or `"a" STRING(X) "b"`; a macro apart from the
    /// string and without arguments parses as it is.
    fn string_macro(&self, at: usize) -> Option<usize> {
        let text = self.tokens.get(at.checked_sub(1)?).zip(self.tokens.get(at));
        let glued = text.is_some_and(|(literal, name)| literal.end == name.start);
        let known = self.is_word(at, Word::Caps) || self.visible.get(self.text(at)).is_some();
        let end = self.close(at + 1).unwrap_or(at);
        let follows = matches!(self.kind(end + 1), Kind::Literal | Kind::Punct(b',' | b')' | b';'));
        (known && follows && (glued || end > at)).then_some(end)
    }

    /// A macro whose definition is nothing but attributes: blanked, with its meaning kept.
    fn attribute_macro(&mut self, at: usize) -> usize {
        let close = self.close(at + 1);
        let Some(def) = self.visible.get(self.text(at)) else { return at + 1 };
        let body = match (&def.params, close) {
            (Some(params), Some(close)) => {
                let args = self.arguments(at + 1, close);
                let args: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
                super::conditional::substitute(&def.body, params, &args)
            }
            (Some(_), None) => return at + 1,
            (None, _) => def.body.clone(),
        };
        let end = close.filter(|_| def.params.is_some()).unwrap_or(at);
        if body.contains("__restrict") && end == at {
            self.restrict(at);
            return at + 1;
        }
        let range = self.bytes(at, end);
        for kind in self.meanings(&body, &mut { EXPANSIONS }) {
            self.attributes.push(Attribute { start: range.start, end: range.end, kind });
        }
        self.drop(at, end);
        // `__shared__` decides the memory space: where there is room it stays in the text.
        if body.trim() == "__shared__" && range.len() >= body.trim().len() {
            self.write(range.start, "__shared__");
        }
        end + 1
    }

    /// What a body of attributes and specifiers says.
    fn meanings(&self, body: &str, budget: &mut u32) -> Vec<AttributeKind> {
        if body.len() > 4096 || *budget == 0 {
            return Vec::new();
        }
        *budget -= 1;
        let tokens = lex::lex(body);
        let mut kinds = Vec::new();
        let mut specifiers: Vec<String> = Vec::new();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let text = body.get(token.range()).unwrap_or("");
            at += 1;
            match token.kind {
                Kind::Word(
                    word @ (Word::Align
                    | Word::Attribute
                    | Word::Bounds
                    | Word::Cluster
                    | Word::Registers
                    | Word::BlockSize),
                ) => {
                    let end = macros::group_end(&tokens, at);
                    let inner = tokens.get(at).zip(tokens.get(end.saturating_sub(1)));
                    let inner =
                        inner.and_then(|(open, close)| body.get(open.end as usize..close.start as usize));
                    kinds.extend(meaning(word, split(inner.unwrap_or(""))));
                    at = end;
                }
                Kind::Word(Word::Plain | Word::Caps) => {
                    if let Some(def) = self.visible.get(text).filter(|def| def.params.is_none()) {
                        kinds.extend(self.meanings(&def.body, budget));
                    }
                }
                Kind::Word(Word::Pragma) => at = macros::group_end(&tokens, at),
                Kind::Word(_) => specifiers.push(text.to_owned()),
                _ => {}
            }
        }
        if !specifiers.is_empty() {
            kinds.push(AttributeKind::Specifiers(specifiers.join(" ")));
        }
        kinds
    }
}

/// Splits at top-level commas.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0i32;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).collect()
}

/// What an attribute word with these arguments means to us; nothing for `_Pragma` and most of GNU's.
fn meaning(word: Word, args: Vec<String>) -> Vec<AttributeKind> {
    let first = || args.first().cloned().unwrap_or_default();
    match word {
        Word::Align => vec![AttributeKind::Align(first())],
        Word::Bounds => vec![AttributeKind::LaunchBounds(args)],
        Word::Cluster => vec![AttributeKind::ClusterDims(args)],
        Word::BlockSize => vec![AttributeKind::BlockSize(args)],
        Word::Registers => vec![AttributeKind::MaxRegisters(first())],
        Word::Attribute => gnu(&args.join(",")),
        _ => Vec::new(),
    }
}

/// `(aligned(16), packed)` or, of `__declspec`, `align(16)`.
fn gnu(text: &str) -> Vec<AttributeKind> {
    let mut kinds = Vec::new();
    if text.contains("packed") {
        kinds.push(AttributeKind::Packed);
    }
    if let Some((_, rest)) = text.split_once("align") {
        let rest = rest.trim_start_matches("ed").trim_start_matches("__").trim_start();
        if let Some(inner) = rest.strip_prefix('(') {
            let mut depth = 1;
            let end = inner.find(|c| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                depth == 0
            });
            let argument = end.and_then(|end| inner.get(..end)).unwrap_or(inner);
            kinds.push(AttributeKind::Align(argument.trim().to_owned()));
        }
    }
    kinds
}
