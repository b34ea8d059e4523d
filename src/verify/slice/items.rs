//! A file as a row of declarations: where each begins and ends, what it defines, what it uses, whether a device runs it.
//!
//! Read from tokens alone, so that macros, extensions and unusual C++ do not matter as long as brackets balance. Where
//! both branches of an `#if` open a bracket that one `}` closes, the branches count once.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::tokens::{Kind, Token, tokens};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A preprocessor line.
    Directive,
    /// `namespace x {` or `extern "C" {`.
    Open,
    /// The `}` of an [`Role::Open`].
    Close,
    /// `using namespace x;`, `namespace a = b;`
    Using,
    Function,
    Type,
    Alias,
    Variable,
    /// A macro that stands for whole declarations: `INSTANTIATE(float)`.
    MacroCall,
    /// `static_assert`, explicit instantiations: never part of a slice.
    Dropped,
}

#[derive(Clone, Debug)]
pub struct Item<'a> {
    pub role: Role,
    /// Bytes of the file.
    pub range: Range<usize>,
    pub names: Vec<&'a str>,
    /// Every identifier of the text outside [`Item::host`].
    pub uses: Vec<&'a str>,
    /// A function that a device can run, or data that it can read.
    pub device: bool,
    pub kernel: bool,
    /// A macro call that defines device functions or types, perhaps under pasted names.
    pub makes_device_code: bool,
    /// Member functions for the host alone: left out of the slice.
    pub host: Vec<Range<usize>>,
}

/// Macros of a project by name: the identifiers of their bodies, and whether they take arguments.
#[derive(Debug, Default)]
pub struct Macros<'a> {
    bodies: FxHashMap<&'a str, (bool, Vec<&'a str>)>,
}

impl<'a> Macros<'a> {
    /// Takes note of a `#define` line.
    pub fn define(&mut self, directive: &'a str) {
        let Some(rest) = directive_named(directive, "define") else { return };
        let rest = rest.trim_start();
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let (Some(name), Some(body)) = (rest.get(..length), rest.get(length..)) else { return };
        let words = tokens(body).into_iter().filter(|token| token.kind == Kind::Word).map(|token| token.text);
        self.bodies.entry(name).or_insert((body.starts_with('('), Vec::new())).1.extend(words);
    }

    pub fn body(&self, name: &str) -> Option<&[&'a str]> {
        self.bodies.get(name).map(|(_, words)| words.as_slice())
    }

    fn takes_arguments(&self, name: &str) -> bool {
        self.bodies.get(name).is_some_and(|(takes, _)| *takes)
    }

    /// Whether `word` is one of `wanted` or a macro that leads to one.
    fn leads_to(&self, word: &str, wanted: &[&str], depth: u32) -> bool {
        wanted.contains(&word)
            || depth > 0
                && self
                    .body(word)
                    .is_some_and(|words| words.iter().any(|w| self.leads_to(w, wanted, depth - 1)))
    }
}

/// What follows `#name` in a directive of that name.
pub fn directive_named<'a>(directive: &'a str, name: &str) -> Option<&'a str> {
    let rest = directive.trim_start().strip_prefix('#')?.trim_start().strip_prefix(name)?;
    (!rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')).then_some(rest)
}

/// Whether a directive begins another branch of an `#if`.
fn is_branch(directive: &str) -> bool {
    ["else", "elif", "elifdef", "elifndef"].iter().any(|name| directive_named(directive, name).is_some())
}

/// The declarations of a file in order; the error says where brackets do not balance.
pub fn items<'a>(text: &'a str, macros: &Macros<'a>) -> Result<Vec<Item<'a>>, String> {
    let tokens = tokens(text);
    let reader = Reader { tokens: &tokens, macros };
    let mut found = Vec::new();
    let mut scopes = 0u32;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let (item, next) = if token.kind == Kind::Directive {
            (reader.plain(Role::Directive, at, at + 1), at + 1)
        } else if token.is("}") && scopes > 0 {
            scopes -= 1;
            (reader.plain(Role::Close, at, at + 1), at + 1)
        } else if token.is(";") || token.is("}") {
            at += 1;
            continue;
        } else if let Some(end) = reader.scope_open(at) {
            scopes += 1;
            (reader.plain(Role::Open, at, end), end)
        } else {
            let Some(end) = reader.declaration_end(at) else {
                let line = text.get(..token.start).unwrap_or_default().matches('\n').count() + 1;
                return Err(format!("the brackets of the declaration in line {line} do not balance"));
            };
            (reader.declaration(at, end), end)
        };
        found.push(item);
        at = next;
    }
    Ok(found)
}

const DEVICE: [&str; 2] = ["__device__", "__global__"];
const TYPES: [&str; 4] = ["struct", "class", "union", "enum"];
/// Words whose parentheses are not a parameter list.
const ATTRIBUTES: [&str; 10] = [
    "__attribute__",
    "__align__",
    "alignas",
    "__launch_bounds__",
    "__declspec",
    "noexcept",
    "__cluster_dims__",
    "__maxnreg__",
    "decltype",
    "explicit",
];

struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    macros: &'t Macros<'a>,
}

impl<'a> Reader<'_, 'a> {
    fn is(&self, at: usize, text: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(text))
    }

    fn word(&self, at: usize) -> Option<&'a str> {
        self.tokens.get(at).filter(|token| token.kind == Kind::Word).map(|token| token.text)
    }

    fn range(&self, from: usize, to: usize) -> Range<usize> {
        let start = self.tokens.get(from).map_or(0, |token| token.start);
        let last = to.checked_sub(1).and_then(|last| self.tokens.get(last));
        start..last.map_or(start, Token::end)
    }

    fn plain(&self, role: Role, from: usize, to: usize) -> Item<'a> {
        Item {
            role,
            range: self.range(from, to),
            names: (from..to).filter_map(|at| self.word(at)).collect(),
            uses: Vec::new(),
            device: false,
            kernel: false,
            makes_device_code: false,
            host: Vec::new(),
        }
    }

    /// The token after `namespace … {` or `extern "C" {` at `at`.
    fn scope_open(&self, at: usize) -> Option<usize> {
        let mut next = if self.is(at, "inline") { at + 1 } else { at };
        if self.is(next, "extern") && self.is(next + 2, "{") {
            return self.tokens.get(next + 1).is_some_and(|t| t.kind == Kind::Literal).then_some(next + 3);
        }
        if !self.is(next, "namespace") {
            return None;
        }
        loop {
            next += 1;
            let token = self.tokens.get(next)?;
            if token.is("{") {
                return Some(next + 1);
            }
            if token.is(";") || token.is("=") {
                return None;
            }
        }
    }

    /// The token after the bracket that closes the one at `open`; of the branches of an `#if` the first counts.
    fn closed(&self, open: usize) -> Option<usize> {
        let mut depth = 0i32;
        let mut at = open;
        loop {
            let token = self.tokens.get(at)?;
            at += 1;
            match token.text {
                _ if token.kind == Kind::Literal => {}
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => {
                    depth -= 1;
                    if depth <= 0 {
                        return Some(at);
                    }
                }
                text if token.kind == Kind::Directive && is_branch(text) => at = self.after_endif(at)?,
                _ => {}
            }
        }
    }

    /// The token after the `#endif` that ends the `#if` in whose branch `at` lies.
    fn after_endif(&self, mut at: usize) -> Option<usize> {
        let mut depth = 1;
        while depth > 0 {
            let token = self.tokens.get(at)?;
            if token.kind == Kind::Directive {
                let opens =
                    ["if", "ifdef", "ifndef"].iter().any(|name| directive_named(token.text, name).is_some());
                depth += i32::from(opens) - i32::from(directive_named(token.text, "endif").is_some());
            }
            at += 1;
        }
        Some(at)
    }

    /// The token after `<…>` at `open`.
    fn angles_closed(&self, open: usize) -> Option<usize> {
        let mut depth = 0;
        let mut at = open;
        loop {
            let token = self.tokens.get(at)?;
            match token.text {
                "<" => depth += 1,
                ">" => depth -= 1,
                "(" | "[" | "{" => at = self.closed(at)? - 1,
                ";" => return None,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }

    /// The token after all `template <…>` prefixes at `at`.
    fn after_templates(&self, mut at: usize) -> usize {
        while self.is(at, "template") && self.is(at + 1, "<") {
            match self.angles_closed(at + 1) {
                Some(next) => at = next,
                None => return at,
            }
        }
        at
    }

    /// The token after the declaration that begins at `start`.
    fn declaration_end(&self, start: usize) -> Option<usize> {
        let head = self.after_templates(start);
        let is_type = self.defines_type(head);
        let (mut seen_group, mut seen_equals, mut in_list) = (false, false, false);
        let mut at = head;
        loop {
            let token = self.tokens.get(at)?;
            match token.text {
                _ if token.kind == Kind::Literal => at += 1,
                text if token.kind == Kind::Directive && is_branch(text) => at = self.after_endif(at + 1)?,
                ";" => return Some(at + 1),
                "operator" => at = self.after_operator(at),
                "=" => {
                    seen_equals = true;
                    at += 1;
                }
                ":" => {
                    in_list = seen_group;
                    at += 1;
                }
                "(" => {
                    let end = self.closed(at)?;
                    if at == head + 1 && self.macro_call_ends(head, end) {
                        return Some(if self.is(end, ";") { end + 1 } else { end });
                    }
                    seen_group = true;
                    at = end;
                }
                "[" => at = self.closed(at)?,
                "{" => {
                    let end = self.closed(at)?;
                    let member = in_list && at.checked_sub(1).and_then(|before| self.word(before)).is_some();
                    if seen_group && !is_type && !seen_equals && !member {
                        return Some(if self.is(end, ";") { end + 1 } else { end });
                    }
                    at = end;
                }
                "}" | ")" | "]" => return None,
                _ => at += 1,
            }
        }
    }

    /// Whether a macro call at the start of a declaration is all of it: nothing of a declaration follows on its line.
    fn macro_call_ends(&self, name: usize, end: usize) -> bool {
        let Some(word) = self.word(name) else { return false };
        let shouts =
            word.len() > 2 && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        if !shouts && !self.macros.takes_arguments(word) || ATTRIBUTES.contains(&word) {
            return false;
        }
        let follows = self.tokens.get(end);
        let attribute = self.macros.leads_to(word, &[DEVICE.as_slice(), &ATTRIBUTES].concat(), 4)
            && !self.macros.body(word).is_some_and(|body| body.contains(&"void"));
        follows.is_none_or(|token| {
            token.kind == Kind::Directive
                || token.is(";")
                || token.is("}")
                || token.kind == Kind::Word && !attribute
        })
    }

    /// Whether the declaration's own words (before any parameter list) name a type that it defines or declares.
    fn defines_type(&self, head: usize) -> bool {
        let mut at = head;
        let mut keyword = false;
        while let Some(token) = self.tokens.get(at) {
            match token.text {
                "(" | "[" if at > 0 && self.word(at - 1).is_some_and(|w| self.is_attribute(w)) => {
                    at = self.closed(at).unwrap_or(at + 1);
                    continue;
                }
                "[" if self.is(at + 1, "[") => {
                    at = self.closed(at).unwrap_or(at + 1);
                    continue;
                }
                "{" | ";" | ":" => return keyword,
                "(" | "=" | "*" | "&" | "[" => return false,
                "<" => {
                    at = self.angles_closed(at).unwrap_or(at + 1);
                    continue;
                }
                text => keyword |= token.kind == Kind::Word && TYPES.contains(&text),
            }
            at += 1;
        }
        false
    }

    fn is_attribute(&self, word: &str) -> bool {
        ATTRIBUTES.contains(&word) || self.macros.leads_to(word, &ATTRIBUTES, 4)
    }

    fn declaration(&self, start: usize, end: usize) -> Item<'a> {
        let head = self.after_templates(start);
        let mut item = self.plain(Role::Variable, start, end);
        item.uses = std::mem::take(&mut item.names);
        let group = self.parameter_list(head, end);
        item.role = match self.word(head) {
            Some("static_assert") => Role::Dropped,
            Some("template") => Role::Dropped,
            Some("namespace") => Role::Using,
            Some("using") if self.is(head + 1, "namespace") => Role::Using,
            Some("typedef" | "using") => Role::Alias,
            _ if self.is(head + 1, "(")
                && self.macro_call_ends(head, self.closed(head + 1).unwrap_or(end)) =>
            {
                Role::MacroCall
            }
            _ if self.defines_type(head) => Role::Type,
            _ if group.is_some() => Role::Function,
            _ => Role::Variable,
        };
        match item.role {
            Role::Function => self.function(head, end, group.unwrap_or(head), &mut item),
            Role::Type => self.type_definition(head, end, &mut item),
            Role::Alias => self.alias(head, end, &mut item),
            Role::Variable => self.variable(head, end, &mut item),
            Role::MacroCall => {
                item.names.clone_from(&item.uses);
                item.device = true;
                item.makes_device_code = self.word(head).is_some_and(|word| {
                    self.macros.leads_to(word, &["__device__"], 4)
                        && !self.macros.leads_to(word, &["__global__"], 4)
                });
            }
            Role::Directive | Role::Open | Role::Close | Role::Using | Role::Dropped => {}
        }
        item
    }

    /// The token after the symbol of `operator+`, `operator()`, `operator[]`.
    fn after_operator(&self, at: usize) -> usize {
        let mut next = at + 1;
        if self.is(next, "(") && self.is(next + 1, ")") {
            return next + 2;
        }
        while self.tokens.get(next).is_some_and(|token| token.kind == Kind::Mark && !token.is("(")) {
            next += 1;
        }
        next
    }

    /// The `(` of a function's parameters: the last group before the body that is no attribute's.
    fn parameter_list(&self, head: usize, end: usize) -> Option<usize> {
        let mut found = None;
        let mut at = head;
        while at < end {
            let token = self.tokens.get(at)?;
            match token.text {
                "operator" => {
                    at = self.after_operator(at);
                    continue;
                }
                "{" | ";" | "=" | ":" => break,
                "(" => {
                    let attribute = at.checked_sub(1).and_then(|before| self.word(before));
                    let attribute = attribute.is_some_and(|word| self.is_attribute(word) && at > head);
                    if !attribute {
                        found = Some(at);
                    }
                    at = self.closed(at)?;
                    continue;
                }
                "[" => {
                    at = self.closed(at)?;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    fn function(&self, head: usize, end: usize, group: usize, item: &mut Item<'a>) {
        let body = (group..end).find(|&at| self.is(at, "{")).unwrap_or(end);
        let words: Vec<&str> = (head..body).filter_map(|at| self.word(at)).collect();
        item.kernel = words.iter().any(|word| self.macros.leads_to(word, &["__global__"], 4));
        item.device = words.iter().any(|word| {
            self.macros.leads_to(word, &DEVICE, 4) || *word == "constexpr" || *word == "consteval"
        });
        // The name's own path, or for an operator whatever types it is about.
        let operator = (head..group).any(|at| self.is(at, "operator"));
        let closed = self.closed(group).unwrap_or(end);
        if operator {
            item.names =
                (head..closed).filter_map(|at| self.word(at)).filter(|word| !is_keyword(word)).collect();
            return;
        }
        let mut at = group;
        while at > head {
            at -= 1;
            if self.is(at, ">") {
                at = self.angles_opened(at, head);
                continue;
            }
            match self.word(at) {
                Some(word) => item.names.push(word),
                None => break,
            }
            // `S<T>::f`: the class is a name too.
            if at > head && self.is(at - 1, "::") {
                at -= 1;
            } else {
                break;
            }
        }
    }

    /// The `<` that the `>` at `close` closes.
    fn angles_opened(&self, close: usize, head: usize) -> usize {
        let mut depth = 0;
        for at in (head..=close).rev() {
            depth += i32::from(self.is(at, ">")) - i32::from(self.is(at, "<"));
            if depth == 0 {
                return at;
            }
        }
        head
    }

    fn type_definition(&self, head: usize, end: usize, item: &mut Item<'a>) {
        item.device = true;
        let body = (head..end).find(|&at| self.is(at, "{"));
        let first = body.unwrap_or(end);
        let keyword = (head..first).find(|&at| self.word(at).is_some_and(|word| TYPES.contains(&word)));
        let mut at = keyword.unwrap_or(head) + 1;
        while at < first {
            if self.is(at, "(") || self.is(at, "[") {
                at = self.closed(at).unwrap_or(end);
                continue;
            }
            match self.word(at) {
                Some("class" | "struct" | "final") => {}
                Some(word) if self.is_attribute(word) || self.macros.body(word).is_some() => {}
                Some(word) if !self.is(at + 1, "::") => {
                    item.names.push(word);
                    break;
                }
                Some(_) => {}
                None if self.is(at, "::") => {}
                None => break,
            }
            at += 1;
        }
        let Some(body) = body else { return };
        let close = self.closed(body).unwrap_or(end);
        item.names.extend((close..end).filter_map(|at| self.word(at)));
        if keyword.is_some_and(|at| self.is(at, "enum")) {
            let listed = |&at: &usize| self.is(at - 1, "{") || self.is(at - 1, ",");
            item.names.extend((body + 1..close).filter(listed).filter_map(|at| self.word(at)));
            return;
        }
        self.host_members(body + 1, close.saturating_sub(1), &mut item.host);
        let ranges = item.host.clone();
        item.uses = (head_of(item, self.tokens)..end)
            .filter(|&at| {
                let start = self.tokens.get(at).map_or(0, |token| token.start);
                !ranges.iter().any(|range| range.contains(&start))
            })
            .filter_map(|at| self.word(at))
            .collect();
    }

    /// Member functions that only the host may call, in the class body `from..to`.
    fn host_members(&self, from: usize, to: usize, host: &mut Vec<Range<usize>>) {
        let mut at = from;
        while at < to {
            let label = self.word(at).is_some_and(|word| ["public", "private", "protected"].contains(&word));
            if label && self.is(at + 1, ":") {
                at += 2;
                continue;
            }
            if self.tokens.get(at).is_none_or(|token| token.kind == Kind::Directive || token.is(";")) {
                at += 1;
                continue;
            }
            let Some(end) = self.declaration_end(at).filter(|&end| end <= to) else { return };
            let member = self.declaration(at, end);
            let kept = (at..end).any(|at| self.is(at, "default") || self.is(at, "delete"));
            if member.role == Role::Function && !member.device && !kept {
                host.push(member.range);
            } else {
                host.extend(member.host);
            }
            at = end;
        }
    }

    fn alias(&self, head: usize, end: usize, item: &mut Item<'a>) {
        item.device = true;
        if self.is(head, "using") {
            let last = (head..end).rev().find_map(|at| self.word(at));
            let named = if (head..end).any(|at| self.is(at, "=")) { self.word(head + 1) } else { last };
            item.names.extend(named);
            return;
        }
        let mut at = head;
        while at < end {
            at += 1;
            if self.is(at, "{") {
                at = self.closed(at).unwrap_or(end) - 1;
            }
            let Some(word) = self.word(at).filter(|_| at < end) else { continue };
            let pointer = at > head && self.is(at - 1, "*") && self.is(at + 1, ")");
            let tag = at > head && self.word(at - 1).is_some_and(|before| TYPES.contains(&before));
            let ends = [";", ",", "["].iter().any(|mark| self.is(at + 1, mark))
                || !TYPES.contains(&word) && self.word(at + 1).is_some_and(|after| self.is_attribute(after));
            if ends || pointer || tag && !self.is_attribute(word) {
                item.names.push(word);
            }
        }
    }

    fn variable(&self, head: usize, end: usize, item: &mut Item<'a>) {
        const DATA: [&str; 6] =
            ["__device__", "__constant__", "__shared__", "__managed__", "const", "constexpr"];
        let first = (head..end).find(|&at| self.is(at, "=") || self.is(at, "{")).unwrap_or(end);
        item.device =
            (head..first).filter_map(|at| self.word(at)).any(|word| self.macros.leads_to(word, &DATA, 4));
        for at in head..end {
            let ends = ["=", ";", ",", "[", "{", "("].iter().any(|mark| self.is(at + 1, mark));
            if ends && (at < first || self.is(at.saturating_sub(1), ",")) {
                item.names.extend(self.word(at));
            }
        }
    }
}

/// The index of the token at which an item begins.
fn head_of(item: &Item, tokens: &[Token]) -> usize {
    tokens.partition_point(|token| token.start < item.range.start)
}

/// Words too common to say what an operator is about.
fn is_keyword(word: &str) -> bool {
    const WORDS: [&str; 30] = [
        "operator",
        "const",
        "constexpr",
        "inline",
        "static",
        "__device__",
        "__host__",
        "__forceinline__",
        "void",
        "bool",
        "char",
        "short",
        "int",
        "long",
        "unsigned",
        "signed",
        "float",
        "double",
        "auto",
        "template",
        "typename",
        "class",
        "struct",
        "friend",
        "noexcept",
        "a",
        "b",
        "x",
        "y",
        "lhs",
    ];
    WORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(text: &str) -> Vec<(Role, Vec<&str>)> {
        let mut macros = Macros::default();
        for token in tokens(text).iter().filter(|token| token.kind == Kind::Directive) {
            macros.define(token.text);
        }
        let found = items(text, &macros).expect("balanced");
        let declared = found.into_iter().filter(|item| item.role != Role::Directive);
        declared.map(|item| (item.role, item.names)).collect()
    }

    #[test]
    fn declarations_and_their_names() {
        let one = |text| summary(text).remove(0);
        assert_eq!(one("struct alignas(16) A { int x; };"), (Role::Type, vec!["A"]));
        assert_eq!(one("typedef struct { int x; } B;"), (Role::Alias, vec!["B"]));
        assert_eq!(one("typedef struct { int x; } C __attribute__((aligned));"), (Role::Alias, vec!["C"]));
        assert_eq!(one("typedef struct alignas(16) { int x; } D;"), (Role::Alias, vec!["D"]));
        assert_eq!(one("enum { ONE, TWO = 2 };"), (Role::Type, vec!["ONE", "TWO"]));
        assert_eq!(one("using T = float;"), (Role::Alias, vec!["T"]));
        assert_eq!(one("__constant__ float c[4] = {1, 2};"), (Role::Variable, vec!["c"]));
        assert_eq!(
            one("template <class T, int N = 4> __global__ void __launch_bounds__(N) k(T* p) {}"),
            (Role::Function, vec!["k"])
        );
        assert_eq!(one("template <> __device__ float f<float>(int x);"), (Role::Function, vec!["f"]));
        assert_eq!(one("__device__ int S::g() const { return 1; }"), (Role::Function, vec!["g", "S"]));
        assert_eq!(one("struct X make() { return X{1}; }"), (Role::Function, vec!["make"]));
        assert_eq!(one("template __global__ void k<int>(int*);"), (Role::Dropped, vec![]));
        assert_eq!(one("__device__ V operator+(V a, V b) { return a; }").0, Role::Function);
    }

    #[test]
    fn scopes_macros_and_host_code() {
        let text =
            "namespace n {\n#define HD __host__ __device__\nHD int f(int a) { return a; }\nvoid g() {}\n}\n";
        let mut macros = Macros::default();
        macros.define("#define HD __host__ __device__");
        let found = items(text, &macros).expect("balanced");
        let device: Vec<bool> = found.iter().map(|item| item.device).collect();
        let roles: Vec<Role> = found.iter().map(|item| item.role).collect();
        assert_eq!(roles, [Role::Open, Role::Directive, Role::Function, Role::Function, Role::Close]);
        assert_eq!(device, [false, false, true, false, false]);
    }

    #[test]
    fn a_macro_call_without_semicolon_is_one_item() {
        let found =
            summary("#define MAKE(T) __global__ void k_##T(T* p) {}\nMAKE(float)\nMAKE(int)\nint x;\n");
        assert_eq!(
            found.iter().map(|(role, _)| *role).collect::<Vec<_>>(),
            [Role::MacroCall, Role::MacroCall, Role::Variable]
        );
    }

    #[test]
    fn host_members_are_found() {
        let text = "struct S { S(int n) : v(n) {} __device__ S& operator=(S o) { return *this; } \
                    friend std::ostream& operator<<(std::ostream& o, S s) { return o; } int v; S() = default; };";
        let found = items(text, &Macros::default()).expect("balanced");
        let host: Vec<&str> = found[0].host.iter().map(|range| &text[range.clone()]).collect();
        let print = "friend std::ostream& operator<<(std::ostream& o, S s) { return o; }";
        assert_eq!(host, ["S(int n) : v(n) {}", print]);
    }

    #[test]
    fn branches_that_both_open_a_body() {
        let text = "#if A\nvoid f(int a) {\n#else\nvoid f() {\n#endif\n}\nint x;\n";
        assert_eq!(summary(text).last().map(|(_, names)| names.clone()), Some(vec!["x"]));
    }

    #[test]
    fn unbalanced_text_is_an_error_not_a_panic() {
        for text in ["void f() {", "struct S {", "f(", "template <", "operator", "namespace", "= {", ")"] {
            let _ = items(text, &Macros::default());
        }
    }
}
