//! `#if` as a default `nvcc -arch=sm_90` build on Linux would decide it, over three values.
//!
//! A name that nothing defines is undefined, as in C, inside function bodies and wherever the `#if` has an `#else` or
//! `#elif`. At file scope a lone `#ifdef FEATURE … #endif` keeps its content, so that kernels behind feature switches
//! are analysed. A condition that cannot be evaluated is undecided: both branches stay where each is complete
//! statements, else the first is taken.

use std::cell::Cell;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::lex::{self, Kind, Token, Word};
use super::macros::{self, Defines, Include, MacroDef, Presence};
use super::mask_scope::Scopes;

/// An `#if` whose condition could not be decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecided {
    /// The byte offset of the `#if`.
    pub offset: u32,
    pub condition: String,
    /// The bytes of each branch, directives not included.
    pub branches: Vec<Range<u32>>,
    /// The branches all stay in the masked text, with their directives; else only the first does.
    pub both: bool,
}

/// An `#error` that is not compiled, for another branch of its `#if` is meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Avoided {
    /// The bytes of the directive.
    pub error: Range<u32>,
    /// The bytes of the branch that is read instead.
    pub instead: Range<u32>,
}

/// What the preprocessor says about one file.
#[derive(Debug, Default)]
pub struct Facts {
    pub macros: Vec<MacroDef>,
    pub includes: Vec<Include>,
    pub dead: Vec<Range<u32>>,
    pub undecided: Vec<Undecided>,
    pub avoided: Vec<Avoided>,
    /// The `#if` and the `#endif` of what stays at file scope though nothing defines its feature.
    pub features: Vec<[Range<u32>; 2]>,
    /// The tokens that are compiled; no directives.
    pub live: Vec<Token>,
    /// Directives that stay in the text because their `#if` keeps all its branches.
    pub kept_directives: Vec<u32>,
    /// The names that conditions ask for and that no build is known to define or not, the include guard's not among them;
    /// sorted.
    pub tested: Vec<String>,
}

/// How deep parentheses, operators and macros in a condition may nest, and conditionals before they are looked into.
const MAX_DEPTH: u32 = 64;

/// How many bytes of conditions and macro bodies are evaluated for one file: real files need a few thousand.
const EXPANSION_BYTES: usize = 4 << 20;

/// Names that a default CUDA build on Linux is known not to define.
const UNDEFINED: &[&str] = &[
    "_WIN32",
    "_WIN64",
    "WIN32",
    "_MSC_VER",
    "__MINGW32__",
    "__CYGWIN__",
    "__APPLE__",
    "__clang__",
    "__ANDROID__",
    "USE_HIP",
    "USE_ROCM",
    "__INTEL_COMPILER",
    "__ICC",
    "__SYCL_DEVICE_ONLY__",
    "__OPENCL_VERSION__",
    "__CUDACC_RTC__",
    "__NVCOMPILER",
    "__CUDA_LIBDEVICE__",
    "__MUSA__",
    "USE_MUSA",
    "GGML_USE_HIP",
    "GGML_USE_HIPBLAS",
    "GGML_USE_MUSA",
    "__QNX__",
    "__aarch64__",
    "__arm__",
    "ROCM",
    "__ROCM_ARCH__",
    "__INTELLISENSE__",
    "__DOXYGEN__",
    "DOXYGEN_SHOULD_SKIP_THIS",
    "__FreeBSD__",
];

/// What such a build defines, with its value.
const DEFINED: &[(&str, i64)] = &[
    ("__CUDACC__", 1),
    ("__NVCC__", 1),
    ("__CUDA_ARCH__", 900),
    ("__cplusplus", 201_703),
    ("__linux__", 1),
    ("__linux", 1),
    ("linux", 1),
    ("__unix__", 1),
    ("unix", 1),
    ("__x86_64__", 1),
    ("__x86_64", 1),
    ("__amd64__", 1),
    ("__LP64__", 1),
    ("__GNUC__", 13),
    ("__GNUC_MINOR__", 0),
    ("__GNUG__", 13),
    ("__STDC__", 1),
    ("__CHAR_BIT__", 8),
    ("__SIZEOF_POINTER__", 8),
    ("CUDART_VERSION", 13_000),
    ("CUDA_VERSION", 13_000),
    ("__CUDACC_VER_MAJOR__", 13),
    ("__CUDACC_VER_MINOR__", 0),
    ("__CUDACC_VER_BUILD__", 0),
    ("__CUDACC_EXTENDED_LAMBDA__", 1),
    ("__CUDACC_RELAXED_CONSTEXPR__", 1),
];

fn builtin(name: &str) -> Option<Option<i64>> {
    if let Some(&(_, value)) = DEFINED.iter().find(|(known, _)| *known == name) {
        return Some(Some(value));
    }
    let is_other_vendor =
        name.starts_with("__HIP") || name.starts_with("__SYCL") || name.starts_with("SYCL_");
    (is_other_vendor || UNDEFINED.contains(&name)).then_some(None)
}

/// Which part of its chain a conditional directive begins.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    If,
    Else,
    End,
}

/// Per directive token: the part it plays and, for `#if` and `#else`, the directive that ends its branch.
#[derive(Clone, Copy)]
struct Link {
    part: Part,
    /// Token index of the next `#elif`, `#else` or `#endif` of the chain; `usize::MAX` where the file ends first.
    next: usize,
    has_else: bool,
}

/// The directive's name and what follows it.
fn directive_name(directive: &str) -> (&str, &str) {
    let rest = directive.trim_start_matches('#').trim_start();
    let length = rest.bytes().position(|byte| !lex::is_word_byte(byte)).unwrap_or(rest.len());
    rest.split_at_checked(length).unwrap_or((rest, ""))
}

fn part_of(name: &str) -> Option<Part> {
    match name {
        "if" | "ifdef" | "ifndef" => Some(Part::If),
        "else" | "elif" | "elifdef" | "elifndef" => Some(Part::Else),
        "endif" => Some(Part::End),
        _ => None,
    }
}

/// Links every conditional directive with the next of its chain.
fn link(text: &str, tokens: &[Token]) -> FxHashMap<usize, Link> {
    let mut links: FxHashMap<usize, Link> = FxHashMap::default();
    // For each open `#if`: its parts so far.
    let mut open: Vec<Vec<usize>> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.kind != Kind::Directive {
            continue;
        }
        let Some(part) = part_of(directive_name(slice(text, *token)).0) else { continue };
        links.insert(at, Link { part, next: usize::MAX, has_else: false });
        if part == Part::If {
            open.push(vec![at]);
            continue;
        }
        let Some(chain) = open.last_mut() else { continue };
        if let Some(link) = chain.last().and_then(|last| links.get_mut(last)) {
            link.next = at;
        }
        if part == Part::Else
            && let Some(first) = chain.first()
            && let Some(link) = links.get_mut(first)
        {
            link.has_else = true;
        }
        chain.push(at);
        if part == Part::End {
            open.pop();
        }
    }
    links
}

fn slice(text: &str, token: Token) -> &str {
    text.get(token.range()).unwrap_or("")
}

/// How far the decision about one `#if` chain has come.
struct Chain {
    presence: Presence,
    /// A branch before this one is known to be taken (or kept), so the rest is dead.
    taken: bool,
    /// What holds outside the `#if`.
    outer: Presence,
    strict: bool,
    /// All branches stay, with the directives.
    both: bool,
    /// The directive of the branch that is taken whatever the conditions say.
    wanted: Option<usize>,
}

/// What is decided of a file where no build file defines anything; nothing of a file without conditions.
pub fn alone(text: &str) -> Facts {
    if !text.contains('#') {
        return Facts::default();
    }
    resolve(text, &lex::lex(text), &Defines::default())
}

/// Decides every conditional of the file. `tokens` is the whole file as [`lex::lex`] gives it.
pub fn resolve(text: &str, tokens: &[Token], defines: &Defines) -> Facts {
    let mut walk = Walk {
        text,
        tokens,
        links: link(text, tokens),
        defines,
        facts: Facts::default(),
        table: FxHashMap::default(),
        open: Vec::new(),
        scopes: Scopes::default(),
        guard: None,
        budget: Cell::new(EXPANSION_BYTES),
    };
    walk.facts.live.reserve(tokens.len());
    walk.guard = walk.include_guard();
    walk.facts.tested = walk.tested();
    walk.run();
    walk.facts
}

struct Walk<'a> {
    text: &'a str,
    tokens: &'a [Token],
    links: FxHashMap<usize, Link>,
    defines: &'a Defines,
    facts: Facts,
    /// The file's own macros so far: an index into `facts.macros`; `None` after `#undef`.
    table: FxHashMap<String, Option<usize>>,
    open: Vec<Chain>,
    scopes: Scopes,
    /// The token index of the file's include guard.
    guard: Option<usize>,
    /// What is left of the file's budget for expanding macros in conditions, in bytes of macro bodies.
    budget: Cell<usize>,
}

impl Walk<'_> {
    fn run(&mut self) {
        let mut at = 0;
        while let Some(&token) = self.tokens.get(at) {
            let presence = self.presence();
            if token.kind == Kind::Directive {
                self.directive(at, token);
            } else if presence == Presence::Dead {
                // Nothing in a dead branch counts but directives: go to the next one.
                let start = token.start;
                while self.tokens.get(at + 1).is_some_and(|token| token.kind != Kind::Directive) {
                    at += 1;
                }
                let end = self.tokens.get(at).map_or(start, |token| token.end);
                self.dead(start..end);
            } else {
                self.scopes.feed(token);
                self.facts.live.push(token);
            }
            at += 1;
        }
    }

    fn dead(&mut self, range: Range<u32>) {
        match self.facts.dead.last_mut() {
            Some(last)
                if self
                    .text
                    .get(last.end as usize..range.start as usize)
                    .is_some_and(|gap| gap.trim().is_empty()) =>
            {
                last.end = range.end;
            }
            _ => self.facts.dead.push(range),
        }
    }

    fn presence(&self) -> Presence {
        self.open.last().map_or(Presence::Live, |chain| chain.presence)
    }

    fn directive(&mut self, at: usize, token: Token) {
        let raw = slice(self.text, token);
        let presence = self.presence();
        let name = directive_name(raw).0;
        match name {
            "define" | "undef" | "include" => {}
            _ if self.links.contains_key(&at) => return self.conditional(at, token),
            // `# define` with a comment or a continued line before the name is rare but legal.
            _ if raw.contains("/*") || raw.contains('\\') => {}
            _ => return,
        }
        let text = macros::clean(raw);
        let (name, rest) = directive_name(&text);
        match name {
            "define" => {
                let def = macros::parse_define(rest, token.start, presence);
                self.record(def);
            }
            "undef" => {
                let def = macros::parse_undef(rest, token.start, presence);
                self.record(def);
            }
            "include" => self.facts.includes.extend(macros::parse_include(rest, token.start, presence)),
            _ => {}
        }
    }

    fn record(&mut self, def: Option<MacroDef>) {
        let Some(def) = def else { return };
        if def.presence == Presence::Live {
            self.table.insert(def.name.clone(), (!def.undef).then_some(self.facts.macros.len()));
        }
        self.facts.macros.push(def);
    }

    fn conditional(&mut self, at: usize, token: Token) {
        let Some(&link) = self.links.get(&at) else { return };
        match link.part {
            Part::If => self.open_chain(at, token, link),
            Part::Else => self.next_branch(at, token),
            Part::End => {
                if let Some(chain) = self.open.pop()
                    && chain.both
                {
                    self.facts.kept_directives.push(token.start);
                }
            }
        }
    }

    fn open_chain(&mut self, at: usize, token: Token, link: Link) {
        let outer = self.presence();
        let strict = link.has_else || !self.scopes.is_outer();
        let mut chain = Chain { presence: outer, taken: true, outer, strict, both: false, wanted: None };
        if outer == Presence::Dead || self.guard == Some(at) {
            self.open.push(chain);
            return;
        }
        let instead = self.instead_of_error(at, link);
        if let Some((_, avoided)) = &instead {
            self.facts.avoided.push(avoided.clone());
        }
        let instead = instead.map(|(wanted, _)| wanted);
        if let Some(wanted) = instead.or_else(|| self.instead_of_no_case(at, link)) {
            let directive = self.tokens.get(wanted).copied().unwrap_or(token);
            self.facts.undecided.push(self.undecided(wanted, directive, false));
            chain.wanted = Some(wanted);
            if wanted != at {
                (chain.presence, chain.taken) = (Presence::Dead, false);
            }
            self.open.push(chain);
            return;
        }
        match self.condition(token, strict) {
            Some(true) => {}
            Some(false) => (chain.presence, chain.taken) = (Presence::Dead, false),
            None if !strict && self.wants(token, true) == Some(false) && !self.is_balanced(at, link) => {
                // Keeping half a function would do more harm than dropping it.
                (chain.presence, chain.taken) = (Presence::Dead, false);
            }
            None if !strict && self.wants(token, true).is_some() => {
                chain.presence = Presence::Kept;
                if let Some(end) = self.tokens.get(link.next) {
                    self.facts.features.push([token.start..token.end, end.start..end.end]);
                }
            }
            None => {
                chain.both = link.has_else && self.is_complete(at);
                let undecided = self.undecided(at, token, chain.both);
                self.facts.undecided.push(undecided);
                if chain.both {
                    self.facts.kept_directives.push(token.start);
                }
            }
        }
        self.open.push(chain);
    }

    /// The first branch that a definition could choose, where what is defined leads to `#error`: nobody compiles that. Its
    /// directive, and what it is chosen over.
    fn instead_of_error(&self, at: usize, link: Link) -> Option<(usize, Avoided)> {
        if !link.has_else {
            return None;
        }
        let branches = self.directives(at);
        let is_error = |tokens: &Range<usize>| {
            let first = self.tokens.get(tokens.clone()).and_then(|tokens| tokens.first());
            first.is_some_and(|&token| {
                token.kind == Kind::Directive
                    && directive_name(&macros::clean(slice(self.text, token))).0 == "error"
            })
        };
        let condition = |from: usize, strict| self.wants(*self.tokens.get(from)?, strict);
        let chosen = branches.iter().find(|(from, _)| condition(*from, true) != Some(false))?;
        if !is_error(&chosen.1) || condition(chosen.0, true).is_none() {
            return None;
        }
        let mut others = branches.iter().filter(|(_, tokens)| !is_error(tokens));
        let (from, wanted) = others.find(|(from, _)| condition(*from, false).is_none())?;
        let error = self.tokens.get(chosen.1.start)?;
        let avoided = Avoided { error: error.start..error.end, instead: self.bytes(wanted.clone()) };
        Some((*from, avoided))
    }

    /// The first branch that a definition could choose and that makes a macro the `case` of a dispatch, where the macro is
    /// nothing otherwise: flags of the build say what is compiled in.
    fn instead_of_no_case(&self, at: usize, link: Link) -> Option<usize> {
        if !link.has_else {
            return None;
        }
        let branches = self.directives(at);
        let defines = |tokens: &Range<usize>| -> Vec<macros::MacroDef> {
            let tokens = self.tokens.get(tokens.clone()).unwrap_or_default().iter();
            let directives = tokens.filter(|token| token.kind == Kind::Directive);
            let texts = directives.map(|&token| macros::clean(slice(self.text, token)));
            texts
                .filter_map(|text| match directive_name(&text) {
                    ("define", rest) => macros::parse_define(rest, 0, Presence::Live),
                    _ => None,
                })
                .collect()
        };
        let condition = |from: usize, strict| self.wants(*self.tokens.get(from)?, strict);
        let chosen = branches.iter().find(|(from, _)| condition(*from, true) != Some(false))?;
        let nothing: Vec<macros::MacroDef> = defines(&chosen.1)
            .into_iter()
            .filter(|def| def.params.is_some() && def.body.is_empty())
            .collect();
        let is_case = |def: macros::MacroDef| {
            def.body.trim_start().starts_with("case ") && nothing.iter().any(|other| other.name == def.name)
        };
        let mut others = branches.iter().filter(|(from, _)| condition(*from, false).is_none());
        others.find(|(_, tokens)| defines(tokens).into_iter().any(is_case)).map(|(from, _)| *from)
    }

    /// The directives of the `#if` at `at`, each with the tokens of its branch.
    fn directives(&self, at: usize) -> Vec<(usize, Range<usize>)> {
        let mut branches = Vec::new();
        let mut from = at;
        while let Some(link) = self.links.get(&from).filter(|link| link.part != Part::End) {
            branches.push((from, from + 1..link.next.min(self.tokens.len())));
            from = link.next;
        }
        branches
    }

    fn next_branch(&mut self, at: usize, token: Token) {
        let Some(last) = self.open.len().checked_sub(1) else { return };
        let (outer, taken, strict, both, wanted) = match self.open.get(last) {
            Some(chain) => (chain.outer, chain.taken, chain.strict, chain.both, chain.wanted),
            None => return,
        };
        if both {
            self.facts.kept_directives.push(token.start);
            return;
        }
        let is_wanted =
            || wanted.map_or_else(|| self.condition(token, strict) != Some(false), |wanted| wanted == at);
        let is_taken = !taken && outer != Presence::Dead && is_wanted();
        if let Some(chain) = self.open.get_mut(last) {
            chain.taken |= is_taken;
            chain.presence = if is_taken { outer } else { Presence::Dead };
        }
    }

    /// Decides a directive. In strict mode an unknown name is undefined; else it leaves the condition open, unless
    /// being undefined makes it true.
    fn condition(&self, token: Token, strict: bool) -> Option<bool> {
        match self.wants(token, true) {
            Some(true) => Some(true),
            value if strict => value,
            _ => self.wants(token, false),
        }
    }

    fn wants(&self, token: Token, strict: bool) -> Option<bool> {
        let text = macros::clean(slice(self.text, token));
        let (name, rest) = directive_name(&text);
        let mut evaluator = Evaluator { walk: self, strict };
        let defined =
            |evaluator: &Evaluator| evaluator.is_defined(rest.split_whitespace().next().unwrap_or(""));
        match name {
            "ifdef" | "elifdef" => defined(&evaluator),
            "ifndef" | "elifndef" => defined(&evaluator).map(|value| !value),
            "if" | "elif" => evaluator.text(rest, 0).map(|value| value != 0),
            "else" => Some(true),
            _ => None,
        }
    }

    fn undecided(&self, at: usize, token: Token, both: bool) -> Undecided {
        let text = macros::clean(slice(self.text, token));
        let condition = directive_name(&text).1.trim().to_owned();
        let branches = self.branches(at).into_iter().map(|tokens| self.bytes(tokens)).collect();
        Undecided { offset: token.start, condition, branches, both }
    }

    fn bytes(&self, tokens: Range<usize>) -> Range<u32> {
        let start =
            tokens.start.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.end);
        let end = self.tokens.get(tokens.end).map_or(self.text.len() as u32, |token| token.start);
        start..end.max(start)
    }

    /// The token ranges of the branches of the `#if` at `at`.
    fn branches(&self, at: usize) -> Vec<Range<usize>> {
        self.directives(at).into_iter().map(|(_, tokens)| tokens).collect()
    }

    fn is_balanced(&self, at: usize, link: Link) -> bool {
        self.open.len() < MAX_DEPTH as usize && self.balance(at + 1..link.next.min(self.tokens.len()))
    }

    fn balance(&self, range: Range<usize>) -> bool {
        let mut depth = 0i64;
        for token in self.tokens.get(range).unwrap_or_default() {
            match token.kind {
                Kind::Punct(b'{' | b'(') => depth += 1,
                Kind::Punct(b'}' | b')') => depth -= 1,
                _ => {}
            }
            if depth < 0 {
                return false;
            }
        }
        depth == 0
    }

    /// Every branch is a sequence of complete statements. Deeply nested undecided conditionals are not looked into.
    fn is_complete(&self, at: usize) -> bool {
        let starts = match self.facts.live.last().map(|token| token.kind) {
            None | Some(Kind::Punct(b';' | b'{' | b'}')) => true,
            Some(_) => false,
        };
        starts
            && self.open.len() < 16
            && self.branches(at).into_iter().all(|range| {
                let tokens = self.tokens.get(range.clone()).unwrap_or_default();
                let last = tokens.iter().rev().find(|token| token.kind != Kind::Directive);
                let closed = last.is_none_or(|token| matches!(token.kind, Kind::Punct(b';' | b'}')));
                let begins_else = tokens.first().is_some_and(|token| token.kind == Kind::Word(Word::Else));
                closed && !begins_else && self.balance(range)
            })
    }

    /// `#ifndef X` + `#define X` as the file's first two directives, before any other token, with the `#endif` as its last.
    fn include_guard(&self) -> Option<usize> {
        let mut directives =
            self.tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Directive);
        let (at, first) = directives.find(|(_, token)| {
            let name = directive_name(slice(self.text, **token)).0;
            name != "pragma" && name != "include"
        })?;
        if self.tokens.iter().take(at).any(|token| token.kind != Kind::Directive) {
            return None;
        }
        let (_, second) = directives.next()?;
        let (first, second) =
            (macros::clean(slice(self.text, *first)), macros::clean(slice(self.text, *second)));
        let (kind, condition) = directive_name(&first);
        let (define, rest) = directive_name(&second);
        let name = rest.split_whitespace().next()?;
        let condition = condition.trim();
        let guarded = match kind {
            "ifndef" => condition,
            "if" => condition
                .strip_prefix("!defined")?
                .trim()
                .trim_start_matches('(')
                .trim_end_matches(')')
                .trim(),
            _ => return None,
        };
        let mut last = at;
        while let Some(link) = self.links.get(&last).filter(|link| link.part != Part::End) {
            last = link.next;
        }
        let is_whole = last.saturating_add(1) >= self.tokens.len();
        (define == "define" && guarded == name && is_whole).then_some(at)
    }

    fn tested(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (at, link) in &self.links {
            let Some(token) =
                self.tokens.get(*at).filter(|_| link.part != Part::End && self.guard != Some(*at))
            else {
                continue;
            };
            let text = macros::clean(slice(self.text, *token));
            let (name, condition) = directive_name(&text);
            if name != "else" {
                names.extend(words(condition).map(str::to_owned));
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    fn lookup(&self, name: &str) -> Option<Option<&MacroDef>> {
        match self.table.get(name) {
            Some(index) => Some(index.and_then(|index| self.facts.macros.get(index))),
            None => self.defines.get(name).filter(|def| def.presence == Presence::Live).map(Some),
        }
    }
}

/// The names in a condition or in a macro's body that a file may define.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let begins_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let parts = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    parts.filter(begins_name).filter(|word| *word != "defined" && builtin(word).is_none())
}

/// Evaluates `#if` expressions; `None` is unknown.
struct Evaluator<'w, 'a> {
    walk: &'w Walk<'a>,
    strict: bool,
}

impl Evaluator<'_, '_> {
    fn is_defined(&self, name: &str) -> Option<bool> {
        match (self.walk.lookup(name), builtin(name)) {
            (Some(def), _) => Some(def.is_some()),
            (None, Some(value)) => Some(value.is_some()),
            (None, None) if name.starts_with("__has_") => Some(true),
            (None, None) => self.strict.then_some(false),
        }
    }

    fn text(&mut self, text: &str, depth: u32) -> Option<i64> {
        let left = self.walk.budget.get().checked_sub(text.len() + 1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        self.walk.budget.set(left);
        let tokens = lex::lex(text);
        let mut parser = Parser { text, tokens: &tokens, at: 0, depth };
        let value = parser.ternary(self)?;
        (parser.at >= tokens.len()).then_some(value?)
    }

    fn name(&mut self, name: &str, depth: u32) -> Option<i64> {
        match name {
            "true" => return Some(1),
            "false" => return Some(0),
            _ => {}
        }
        match (self.walk.lookup(name), builtin(name)) {
            (Some(Some(def)), _) if def.params.is_none() => {
                let body = def.body.clone();
                if body.is_empty() || body == name { None } else { self.text(&body, depth + 1) }
            }
            (Some(Some(_)), _) => Some(0),
            (Some(None), _) => Some(0),
            (None, Some(value)) => Some(value.unwrap_or(0)),
            (None, None) => self.strict.then_some(0),
        }
    }

    fn call(&mut self, name: &str, args: &[&str], depth: u32) -> Option<i64> {
        let def = self.walk.lookup(name)??;
        let params = def.params.as_ref().filter(|params| params.len() == args.len())?;
        if def.body.len() > 4096 {
            return None;
        }
        let body = substitute(&def.body, params, args);
        self.walk.budget.set(self.walk.budget.get().checked_sub(body.len())?);
        self.text(&body, depth + 1)
    }
}

/// The body of a function-like macro with its parameters replaced by the arguments' text; `##` joins.
pub fn substitute(body: &str, params: &[String], args: &[&str]) -> String {
    let mut out = String::with_capacity(body.len());
    let mut end = 0;
    for token in lex::lex(body) {
        let text = slice(body, token);
        out.push_str(body.get(end..token.start as usize).unwrap_or(""));
        end = token.end as usize;
        match params.iter().position(|param| param == text).and_then(|at| args.get(at)) {
            Some(arg) => out.push_str(arg),
            None => out.push_str(text),
        }
    }
    if out.contains("##") {
        out = out.split("##").map(str::trim).collect();
    }
    out
}

/// Precedence climbing over the tokens of one condition. The outer `Option` is a syntax error, the inner a value.
struct Parser<'t> {
    text: &'t str,
    tokens: &'t [Token],
    at: usize,
    depth: u32,
}

type Value = Option<i64>;

impl<'t> Parser<'t> {
    fn peek(&self, ahead: usize) -> &'t str {
        self.tokens.get(self.at + ahead).map_or("", |token| self.text.get(token.range()).unwrap_or(""))
    }

    fn accept(&mut self, text: &str) -> bool {
        let found = self.peek(0) == text;
        self.at += usize::from(found);
        found
    }

    fn ternary(&mut self, evaluator: &mut Evaluator) -> Option<Value> {
        let condition = self.binary(evaluator, 0)?;
        if !self.accept("?") {
            return Some(condition);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let yes = self.ternary(evaluator)?;
        if !self.accept(":") {
            return None;
        }
        let no = self.ternary(evaluator)?;
        self.depth -= 1;
        Some(condition.and_then(|condition| if condition != 0 { yes } else { no }))
    }

    /// The operator at the cursor: its spelling's length in tokens and its precedence.
    fn operator(&self) -> Option<(&'static str, usize, u32)> {
        let (one, two) = (self.peek(0), self.peek(1));
        let adjacent = match (self.tokens.get(self.at), self.tokens.get(self.at + 1)) {
            (Some(left), Some(right)) => left.end == right.start,
            _ => false,
        };
        let pair = if adjacent { (one, two) } else { (one, "") };
        Some(match pair {
            ("|", "|") => ("||", 2, 1),
            ("&", "&") => ("&&", 2, 2),
            ("=", "=") => ("==", 2, 6),
            ("!", "=") => ("!=", 2, 6),
            ("<", "=") => ("<=", 2, 7),
            (">", "=") => (">=", 2, 7),
            ("<", "<") => ("<<", 2, 8),
            (">", ">") => (">>", 2, 8),
            ("|", _) => ("|", 1, 3),
            ("^", _) => ("^", 1, 4),
            ("&", _) => ("&", 1, 5),
            ("<", _) => ("<", 1, 7),
            (">", _) => (">", 1, 7),
            ("+", _) => ("+", 1, 9),
            ("-", _) => ("-", 1, 9),
            ("*", _) => ("*", 1, 10),
            ("/", _) => ("/", 1, 10),
            ("%", _) => ("%", 1, 10),
            ("and", _) => ("&&", 1, 2),
            ("or", _) => ("||", 1, 1),
            _ => return None,
        })
    }

    fn binary(&mut self, evaluator: &mut Evaluator, least: u32) -> Option<Value> {
        let mut left = self.unary(evaluator)?;
        while let Some((operator, length, precedence)) = self.operator().filter(|found| found.2 > least) {
            self.at += length;
            let right = self.binary(evaluator, precedence)?;
            left = apply(operator, left, right);
        }
        Some(left)
    }

    fn unary(&mut self, evaluator: &mut Evaluator) -> Option<Value> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let value = self.operand(evaluator);
        self.depth -= 1;
        value
    }

    fn operand(&mut self, evaluator: &mut Evaluator) -> Option<Value> {
        if self.accept("!") || self.accept("not") {
            return Some(self.unary(evaluator)?.map(|value| i64::from(value == 0)));
        }
        if self.accept("-") {
            return Some(self.unary(evaluator)?.map(i64::wrapping_neg));
        }
        if self.accept("+") {
            return self.unary(evaluator);
        }
        if self.accept("~") {
            return Some(self.unary(evaluator)?.map(|value| !value));
        }
        if self.accept("(") {
            let value = self.ternary(evaluator)?;
            return self.accept(")").then_some(value);
        }
        let token = *self.tokens.get(self.at)?;
        let text = self.peek(0);
        self.at += 1;
        match token.kind {
            Kind::Number => Some(number(text)),
            Kind::Literal => Some(character(text)),
            Kind::Word(_) if text == "defined" => self.defined(evaluator),
            Kind::Word(_) if self.peek(0) == "(" => {
                let args = self.arguments()?;
                Some(evaluator.call(text, &args, self.depth))
            }
            Kind::Word(_) => Some(evaluator.name(text, self.depth)),
            Kind::Punct(_) | Kind::Directive | Kind::End => None,
        }
    }

    fn defined(&mut self, evaluator: &mut Evaluator) -> Option<Value> {
        let parenthesis = self.accept("(");
        let name = self.peek(0);
        self.at += 1;
        if parenthesis && !self.accept(")") {
            return None;
        }
        Some(evaluator.is_defined(name).map(i64::from))
    }

    /// The arguments' texts of the call whose `(` is at the cursor.
    fn arguments(&mut self) -> Option<Vec<&'t str>> {
        let close = macros::group_end(self.tokens, self.at);
        let mut args = Vec::new();
        let (mut depth, mut from) = (0, self.tokens.get(self.at)?.end);
        for token in self.tokens.get(self.at..close)? {
            match token.kind {
                Kind::Punct(b'(') => depth += 1,
                Kind::Punct(b')') => depth -= 1,
                _ => {}
            }
            let ends = (depth == 1 && token.kind == Kind::Punct(b',')) || depth == 0;
            if ends {
                args.push(self.text.get(from as usize..token.start as usize)?.trim());
                from = token.end;
            }
        }
        self.at = close;
        Some(args)
    }
}

fn apply(operator: &str, left: Value, right: Value) -> Value {
    match operator {
        "&&" => match (left, right) {
            (Some(0), _) | (_, Some(0)) => Some(0),
            _ => left.zip(right).map(|_| 1),
        },
        "||" => match (left, right) {
            (Some(value), _) | (_, Some(value)) if value != 0 => Some(1),
            _ => left.zip(right).map(|_| 0),
        },
        _ => {
            let (left, right) = left.zip(right)?;
            Some(match operator {
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "<<" => left.checked_shl(u32::try_from(right).ok()?)?,
                ">>" => left.checked_shr(u32::try_from(right).ok()?)?,
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                "/" => left.checked_div(right)?,
                "%" => left.checked_rem(right)?,
                _ => return None,
            })
        }
    }
}

fn number(text: &str) -> Value {
    let text = text.replace('\'', "").to_ascii_lowercase();
    let digits = text.trim_end_matches(['u', 'l', 'z']);
    let parsed = if let Some(hex) = digits.strip_prefix("0x") {
        u64::from_str_radix(hex, 16)
    } else if let Some(binary) = digits.strip_prefix("0b") {
        u64::from_str_radix(binary, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(digits, 8)
    } else {
        digits.parse()
    };
    parsed.ok().map(|value| value as i64)
}

fn character(text: &str) -> Value {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut chars = inner.chars();
    let first = chars.next()?;
    (chars.next().is_none() && first != '\\').then_some(i64::from(u32::from(first)))
}
