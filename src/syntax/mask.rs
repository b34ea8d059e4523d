//! Equal-length masking: what tree-sitter-cuda cannot parse is overwritten, and nothing moves.
//!
//! The grammar knows no preprocessor. A macro that stands for an attribute, a loop head or a whole statement turns its
//! surroundings into an error, which may swallow a function. So, before parsing, [`mask`] blanks such words (newlines
//! stay) or writes something of the same length that parses, and records what the words meant. Every byte offset is
//! valid in the original and in the masked text.

use std::ops::Range;

use super::conditional::{self, Undecided};
use super::lex::{self, Kind, Token, Word};
use super::macros::{Class, Defines, Include, MacroDef, Visible};
use super::mask_scope::{Scope, Scopes};
use crate::ir::ast::Gap;
use crate::source::{FileId, Span};

/// A file ready for the parser, and what masking took out of it.
#[derive(Debug, Default)]
pub struct Masked {
    /// As many bytes as the original, with the same newlines.
    pub text: String,
    pub attributes: Vec<Attribute>,
    /// Every `#define` and `#undef`, in order.
    pub macros: Vec<MacroDef>,
    pub includes: Vec<Include>,
    /// Kernel definitions, in order.
    pub kernels: Vec<KernelHead>,
    pub loop_macros: Vec<LoopMacro>,
    pub statement_macros: Vec<StatementMacro>,
    /// Bytes known not to be compiled.
    pub dead: Vec<Range<u32>>,
    pub undecided: Vec<Undecided>,
    /// The names that conditions ask for.
    pub tested: Vec<String>,
    pub gaps: Vec<Gap>,
}

/// Something blanked that still matters: a byte range and its meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    pub start: u32,
    pub end: u32,
    pub kind: AttributeKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AttributeKind {
    /// `__align__(n)`, `alignas(n)`, `__attribute__((aligned(n)))`: the argument's text, bytes.
    Align(String),
    Packed,
    /// `__launch_bounds__(threads, blocks)`
    LaunchBounds(Vec<String>),
    ClusterDims(Vec<String>),
    BlockSize(Vec<String>),
    MaxRegisters(String),
    /// A macro for `__restrict__`, or `__restrict` where the grammar does not take it.
    Restrict,
    /// A macro that stands for these specifiers, say `static __device__`.
    Specifiers(String),
}

/// One argument of a macro call: where it stands and its original text.
#[derive(Clone, Debug, PartialEq)]
pub struct MacroArg {
    pub span: Range<u32>,
    pub text: String,
}

/// What a macro call that takes a statement along becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadKind {
    /// `KERNEL_LOOP(i, n) { … }`
    Loop,
    /// `IF_FIRST_LANE(x) { … }`: known to open an `if`.
    Condition,
    /// `DISPATCH(type, T, { … });`: the block is the last argument.
    Block,
}

/// `KERNEL_LOOP(i, n)` before a statement, masked as `while (1)` or the like.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopMacro {
    pub name: String,
    pub args: Vec<MacroArg>,
    /// The name and the parenthesised arguments.
    pub span: Range<u32>,
    pub kind: HeadKind,
}

/// A macro used as a statement or as a declaration, without `;`.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementMacro {
    pub name: String,
    /// `None` where there are no parentheses.
    pub args: Option<Vec<MacroArg>>,
    pub span: Range<u32>,
    /// Outside function bodies.
    pub file_scope: bool,
}

/// Where a kernel is defined, found without the parser.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelHead {
    /// The first byte of the definition, its template header included.
    pub offset: u32,
    pub name: String,
    pub name_span: Range<u32>,
    /// From `{` to after `}`.
    pub body: Range<u32>,
    /// The macro that stands for `__global__`, if one does.
    pub marker: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct MaskOptions {
    /// Names of macros that stand for `__global__`, besides the well-known ones.
    pub kernel_macros: Vec<String>,
}

/// How many tokens a template argument list may have. Keeps nested lists that never close linear.
const ANGLE_TOKENS: usize = 1024;

/// Arguments longer than this many bytes are not recorded: macros nested in one another would copy them many times.
const ARGUMENT_BYTES: usize = 1 << 16;

/// Macros of large code bases that mark a kernel.
pub(super) const KERNEL_MACROS: &[&str] = &[
    "RAFT_KERNEL",
    "CUDF_KERNEL",
    "CUML_KERNEL",
    "CUTLASS_GLOBAL",
    "_CCCL_KERNEL_ATTRIBUTES",
    "CUB_DETAIL_KERNEL_ATTRIBUTES",
    "THRUST_DETAIL_KERNEL_ATTRIBUTES",
];

/// Masks one file. Never fails: what could not be understood is in `gaps` and stays as it is.
pub fn mask(file: FileId, text: &str, defines: &Defines, options: &MaskOptions) -> Masked {
    let tokens = lex::lex(text);
    let facts = conditional::resolve(text, &tokens, defines);
    let mut out = text.as_bytes().to_vec();
    blank_preprocessor(&mut out, &tokens, &facts);
    let visible = Visible::new(&facts.macros, defines);
    let mut masker = Masker::new(file, text, out, facts.live, visible, options);
    masker.words();
    masker.signatures();
    masker.statements();
    masker.type_arguments();
    masker.kernels();
    let Masker { out, attributes, kernels, loop_macros, statement_macros, gaps, .. } = masker;
    let mut masked = Masked {
        text: String::from_utf8(out).unwrap_or_else(|_| text.to_owned()),
        attributes,
        kernels,
        loop_macros,
        statement_macros,
        gaps,
        macros: facts.macros,
        includes: facts.includes,
        dead: facts.dead,
        undecided: facts.undecided,
        tested: facts.tested,
    };
    masked.attributes.sort_by_key(|attribute| attribute.start);
    masked.statement_macros.sort_by_key(|statement| statement.span.start);
    masked
}

/// The slice that holds one kernel and nothing else, for a second parse where the first went wrong there. The caller
/// blanks the rest of the text.
pub fn island(masked: &Masked, kernel: &KernelHead) -> Range<u32> {
    let length = masked.text.len() as u32;
    kernel.offset.min(length)..kernel.body.end.min(length)
}

/// The masked text with everything outside `keep` blanked; newlines stay.
pub fn isolate(masked: &Masked, keep: &Range<u32>) -> String {
    let mut out = masked.text.as_bytes().to_vec();
    let length = out.len();
    blank(&mut out, 0..keep.start as usize);
    blank(&mut out, keep.end as usize..length);
    String::from_utf8(out).unwrap_or_default()
}

fn blank_preprocessor(out: &mut [u8], tokens: &[Token], facts: &conditional::Facts) {
    if out.starts_with(b"\xef\xbb\xbf") {
        blank(out, 0..3);
    }
    for dead in &facts.dead {
        blank(out, dead.start as usize..dead.end as usize);
    }
    let mut kept = facts.kept_directives.clone();
    kept.sort_unstable();
    for token in tokens.iter().filter(|token| token.kind == Kind::Directive) {
        if kept.binary_search(&token.start).is_err() {
            blank(out, token.range());
        }
    }
}

/// Overwrites bytes by spaces; line ends stay.
fn blank(out: &mut [u8], range: Range<usize>) {
    for byte in out.get_mut(range).unwrap_or_default() {
        if !matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// The state that the masks share. Tokens that a mask removes get the kind `End` until [`Masker::compact`].
pub(super) struct Masker<'a> {
    pub(super) file: FileId,
    pub(super) source: &'a str,
    pub(super) out: Vec<u8>,
    pub(super) tokens: Vec<Token>,
    /// The indices of the tokens removed since the last `compact`.
    removed: Vec<usize>,
    /// For a bracket, the index of its partner.
    pairs: Vec<u32>,
    scopes: Vec<Scope>,
    pub(super) visible: Visible<'a>,
    pub(super) options: &'a MaskOptions,
    /// Kernel signatures found: the offsets of the name and of the `(` of the parameters.
    pub(super) heads: Vec<super::mask_kernel::Signature>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) kernels: Vec<KernelHead>,
    pub(super) loop_macros: Vec<LoopMacro>,
    pub(super) statement_macros: Vec<StatementMacro>,
    pub(super) gaps: Vec<Gap>,
}

impl<'a> Masker<'a> {
    fn new(
        file: FileId,
        source: &'a str,
        out: Vec<u8>,
        tokens: Vec<Token>,
        visible: Visible<'a>,
        options: &'a MaskOptions,
    ) -> Self {
        let mut masker = Masker {
            file,
            source,
            out,
            tokens,
            visible,
            options,
            removed: Vec::new(),
            pairs: Vec::new(),
            scopes: Vec::new(),
            heads: Vec::new(),
            attributes: Vec::new(),
            kernels: Vec::new(),
            loop_macros: Vec::new(),
            statement_macros: Vec::new(),
            gaps: Vec::new(),
        };
        masker.structure();
        masker
    }

    /// Forgets removed tokens. Brackets are removed in pairs, so partners and scopes only move: in runs, for few
    /// tokens are removed.
    pub(super) fn compact(&mut self) {
        let mut removed = std::mem::take(&mut self.removed);
        if removed.is_empty() {
            return;
        }
        removed.sort_unstable();
        removed.dedup();
        let length = self.tokens.len();
        let mut moved: Vec<u32> = Vec::with_capacity(length);
        let (mut from, mut kept, mut first) = (0, 0, false);
        for at in removed.into_iter().chain([length]) {
            let run = from..at;
            moved.extend((kept as u32..).take(run.len()));
            moved.push(u32::MAX);
            if let Some(token) = self.tokens.get_mut(from).filter(|_| !run.is_empty()) {
                token.first |= std::mem::take(&mut first);
            }
            first |= self.tokens.get(at).is_some_and(|token| token.first);
            self.tokens.copy_within(run.clone(), kept);
            self.pairs.copy_within(run.clone(), kept);
            self.scopes.copy_within(run.clone(), kept);
            kept += run.len();
            from = at + 1;
        }
        self.tokens.truncate(kept);
        self.pairs.truncate(kept);
        self.scopes.truncate(kept);
        for pair in self.pairs.iter_mut().filter(|pair| **pair != u32::MAX) {
            *pair = moved.get(*pair as usize).copied().unwrap_or(u32::MAX);
        }
    }

    fn structure(&mut self) {
        self.pairs.resize(self.tokens.len(), u32::MAX);
        self.scopes.reserve(self.tokens.len());
        let mut scopes = Scopes::default();
        let mut open: Vec<(usize, u8)> = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            self.scopes.push(scopes.feed(*token));
            let Kind::Punct(byte) = token.kind else { continue };
            let wanted = match byte {
                b'(' | b'[' | b'{' => {
                    open.push((at, byte));
                    continue;
                }
                b')' => b'(',
                b']' => b'[',
                b'}' => b'{',
                _ => continue,
            };
            if wanted == b'{' {
                // A brace closes what was left open inside it.
                while open.last().is_some_and(|&(_, bracket)| bracket != b'{') {
                    open.pop();
                }
            }
            if let Some(&(partner, bracket)) = open.last()
                && bracket == wanted
            {
                open.pop();
                if let Some(pair) = self.pairs.get_mut(partner) {
                    *pair = at as u32;
                }
                if let Some(pair) = self.pairs.get_mut(at) {
                    *pair = partner as u32;
                }
            }
        }
    }

    pub(super) fn kind(&self, at: usize) -> Kind {
        self.tokens.get(at).map_or(Kind::End, |token| token.kind)
    }

    pub(super) fn is(&self, at: usize, byte: u8) -> bool {
        self.kind(at) == Kind::Punct(byte)
    }

    pub(super) fn is_word(&self, at: usize, word: Word) -> bool {
        self.kind(at) == Kind::Word(word)
    }

    /// An identifier that is no keyword.
    pub(super) fn is_name(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Word(Word::Plain | Word::Caps))
    }

    pub(super) fn is_first(&self, at: usize) -> bool {
        self.tokens.get(at).is_none_or(|token| token.first)
    }

    pub(super) fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).and_then(|token| self.source.get(token.range())).unwrap_or("")
    }

    pub(super) fn scope(&self, at: usize) -> Scope {
        self.scopes.get(at).copied().unwrap_or(Scope::File)
    }

    /// What stands between two tokens is statements, though it stands in the parentheses of a macro; what is in parentheses
    /// of its own is as it was.
    pub(super) fn make_body(&mut self, from: usize, to: usize) {
        let mut at = from;
        while at < to {
            if let Some(scope) = self.scopes.get_mut(at) {
                *scope = Scope::Body;
            }
            let is_closed = matches!(self.kind(at), Kind::Punct(b'(' | b'['));
            at = if is_closed { self.pair(at).unwrap_or(at) + 1 } else { at + 1 };
        }
    }

    /// The partner of the bracket at `at`.
    pub(super) fn pair(&self, at: usize) -> Option<usize> {
        self.pairs.get(at).copied().filter(|&pair| pair != u32::MAX).map(|pair| pair as usize)
    }

    /// The `)` of a `(` at `at`.
    pub(super) fn close(&self, at: usize) -> Option<usize> {
        if self.is(at, b'(') { self.pair(at) } else { None }
    }

    /// `::` at `at`.
    pub(super) fn is_scope_operator(&self, at: usize) -> bool {
        self.is(at, b':') && self.is(at + 1, b':')
    }

    /// The index after the `>` that closes the `<` at `open`, within one declaration.
    pub(super) fn angle_end(&self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        let mut at = open;
        while at < open + ANGLE_TOKENS {
            match self.kind(at) {
                Kind::Punct(b'<') => depth += 1,
                // `->` closes nothing.
                Kind::Punct(b'>') if !self.is(at.wrapping_sub(1), b'-') => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                Kind::Punct(b'(' | b'[' | b'{') => at = self.pair(at)?,
                Kind::Punct(b';' | b')' | b'}' | b']') | Kind::End => return None,
                _ => {}
            }
            at += 1;
        }
        None
    }

    pub(super) fn bytes(&self, from: usize, to: usize) -> Range<u32> {
        let start = self.tokens.get(from).map_or(0, |token| token.start);
        let end = self.tokens.get(to).map_or(start, |token| token.end);
        start..end.max(start)
    }

    /// Blanks the tokens `from..=to` and forgets them.
    pub(super) fn drop(&mut self, from: usize, to: usize) {
        for at in from..=to {
            let Some(token) = self.tokens.get_mut(at) else { return };
            if token.kind != Kind::End {
                token.kind = Kind::End;
                self.removed.push(at);
                blank(&mut self.out, token.range());
            }
        }
    }

    /// Writes ASCII text at a byte offset, where the room must have been blanked.
    pub(super) fn write(&mut self, offset: u32, text: &str) {
        let start = offset as usize;
        if let Some(room) = self.out.get_mut(start..start + text.len()) {
            room.copy_from_slice(text.as_bytes());
        }
    }

    /// The arguments between the `(` at `open` and its `)`.
    pub(super) fn arguments(&self, open: usize, close: usize) -> Vec<MacroArg> {
        let mut args = Vec::new();
        if self.bytes(open, close).len() > ARGUMENT_BYTES {
            return args;
        }
        let mut from = open + 1;
        let mut at = open + 1;
        while at <= close {
            match self.kind(at) {
                Kind::Punct(b'(' | b'[' | b'{') => at = self.pair(at).filter(|&to| to < close).unwrap_or(at),
                Kind::Punct(b',') => {
                    args.extend(self.argument(from, at));
                    from = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        args.extend(self.argument(from, close));
        args
    }

    /// The tokens `from..to` as an argument; `None` where there are none.
    fn argument(&self, from: usize, to: usize) -> Option<MacroArg> {
        let last = to.checked_sub(1).filter(|&last| last >= from)?;
        let span = self.bytes(from, last);
        let text = self.source.get(span.start as usize..span.end as usize)?.to_owned();
        Some(MacroArg { span, text })
    }

    pub(super) fn gap(&mut self, range: Range<u32>, reason: &str) {
        let span = Span { file: self.file, start: range.start, end: range.end };
        self.gaps.push(Gap { span, reason: reason.to_owned() });
    }

    /// The class of the macro at `at`; a function-like macro counts only where arguments follow.
    pub(super) fn class(&self, at: usize) -> Option<Class> {
        let name = self.text(at);
        self.visible.object(name).or_else(|| {
            let called = self.is(at + 1, b'(');
            called.then(|| self.visible.function(name)).flatten()
        })
    }

    /// A word that may be a macro without a value: spelt in capitals, and not known to be a value or a type.
    pub(super) fn may_blank(&self, at: usize) -> bool {
        match self.class(at) {
            Some(Class::Value | Class::Type) => false,
            Some(Class::Attribute | Class::Kernel | Class::Loop | Class::Condition | Class::Statement) => {
                true
            }
            None => self.is_word(at, Word::Caps),
        }
    }

    pub(super) fn record_statement(&mut self, name: usize, close: Option<usize>, file_scope: bool) {
        let args = close.map(|close| self.arguments(name + 1, close));
        let span = self.bytes(name, close.unwrap_or(name));
        let name = self.text(name).to_owned();
        self.statement_macros.push(StatementMacro { name, args, span, file_scope });
    }
}
