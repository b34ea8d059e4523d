//! The parse tree of one file -> its [`Unit`]. Never fails: what was not understood becomes an unknown with a
//! reason, or a gap, and everything around it is kept.
//!
//! The grammar reads some C++ wrongly without an error (`dim3 b(x, y);` as a function declaration,
//! `LOOP(i, n) {}` as a function definition, `a < b && c > (d)` as a template call); see `misread`.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::ast::*;
use crate::source::{FileId, Span};

use super::macros::Defines;
use super::mask::{AttributeKind, HeadKind, MacroArg, MaskOptions, Masked, mask};

mod class;
mod decl;
mod declarator;
mod expr;
mod flat;
mod function;
mod items;
mod literal;
mod misread;
mod stmt;
mod types;

use flat::{Flat, Node};

/// Nested deeper than this, an expression or statement is unknown: bounds the stack here and in every reader.
const MAX_DEPTH: u32 = 200;
/// Trees nested deeper than this are built on a thread with a stack of their own.
const SHALLOW: usize = 150;
const DEEP_STACK: usize = 64 << 20;

/// What masking took out of the text, by byte offset into the original. Every list is sorted by offset.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// `__align__(argument)`: where the word stood, and the argument's text.
    pub aligns: Vec<(u32, String)>,
    /// `__launch_bounds__(a, b)`: where the word stood, and the text of each argument.
    pub launch_bounds: Vec<(u32, Vec<String>)>,
    /// `__attribute__((packed))`
    pub packed: Vec<u32>,
    /// Loop macros; the parsed text has `while (1)`, `for (;;)` or `if (1)` at `head`.
    pub loops: Vec<LoopHead>,
    /// Macros used as statements, blanked in the parsed text.
    pub macros: Vec<MacroUse>,
    /// Functions that a marker macro made kernels.
    pub kernels: Vec<String>,
    /// Macros for `__restrict__`
    pub restricts: Vec<u32>,
    /// Macros that stood for these specifiers, say `static __device__`.
    pub specifiers: Vec<(u32, String)>,
}

impl Side {
    /// The side tables of a masked file.
    pub fn of(masked: &Masked) -> Side {
        let mut side = Side::default();
        for attribute in &masked.attributes {
            let at = attribute.start;
            match &attribute.kind {
                AttributeKind::Align(argument) => side.aligns.push((at, argument.clone())),
                AttributeKind::Packed => side.packed.push(at),
                AttributeKind::LaunchBounds(args) => side.launch_bounds.push((at, args.clone())),
                AttributeKind::Restrict => side.restricts.push(at),
                AttributeKind::Specifiers(words) => side.specifiers.push((at, words.clone())),
                AttributeKind::ClusterDims(_)
                | AttributeKind::BlockSize(_)
                | AttributeKind::MaxRegisters(_) => {}
            }
        }
        let text = |args: &[MacroArg]| args.iter().map(|arg| (arg.text.clone(), arg.span.clone())).collect();
        side.loops = masked
            .loop_macros
            .iter()
            .map(|this| LoopHead {
                head: this.span.clone(),
                name: this.name.clone(),
                args: text(&this.args),
                kind: this.kind,
            })
            .collect();
        let inside = masked.statement_macros.iter().filter(|this| !this.file_scope);
        side.macros = inside
            .map(|this| MacroUse {
                span: this.span.clone(),
                name: this.name.clone(),
                args: this.args.as_ref().map(|args| args.iter().map(|arg| arg.text.clone()).collect()),
            })
            .collect();
        let marked = masked.kernels.iter().filter(|kernel| kernel.marker.is_some());
        side.kernels = marked.map(|kernel| kernel.name.clone()).collect();
        side.sort();
        side
    }

    fn sort(&mut self) {
        self.aligns.sort_by_key(|(at, _)| *at);
        self.launch_bounds.sort_by_key(|(at, _)| *at);
        self.packed.sort_unstable();
        self.restricts.sort_unstable();
        self.specifiers.sort_by_key(|(at, _)| *at);
        self.loops.sort_by_key(|this| this.head.start);
        self.macros.sort_by_key(|this| this.span.start);
    }
}

/// `KERNEL_LOOP(i, n)` in front of a body.
#[derive(Clone, Debug)]
pub struct LoopHead {
    pub head: Range<u32>,
    pub name: String,
    /// The original text of each argument and where it stands.
    pub args: Vec<(String, Range<u32>)>,
    pub kind: HeadKind,
}

/// `NAME` or `NAME(args)` as a statement of its own.
#[derive(Clone, Debug)]
pub struct MacroUse {
    pub span: Range<u32>,
    pub name: String,
    /// The original text of each argument; `None` without parentheses.
    pub args: Option<Vec<String>>,
}

/// Builds the syntax of one file. `original` is its text, `masked` the text of the same length that was
/// parsed to `tree`. Never fails.
pub fn build(file: FileId, original: &str, masked: &str, tree: &tree_sitter::Tree, side: &Side) -> Unit {
    let flat = Flat::of(tree, masked);
    on_big_stack(flat.depth, || {
        let spans = Spans::Shifted { file, by: 0 };
        let mut builder = Builder::new(&flat, masked, original, side, spans);
        builder.unit()
    })
    .unwrap_or_default()
}

/// Parses and builds in one go, with a parser kept per thread.
pub fn parse(file: FileId, original: &str, masked: &str, side: &Side) -> Unit {
    match tree_of(masked) {
        Some(tree) => build(file, original, masked, &tree, side),
        None => Unit {
            gaps: vec![Gap { span: Span::new(file, 0, masked.len()), reason: "not parsed".to_owned() }],
            ..Unit::default()
        },
    }
}

/// Parses `text` as one expression whose every node has the span `at`. `None` where it is not cleanly one.
pub fn parse_expr(text: &str, at: Span) -> Option<Expr> {
    snippet_expr(text, Spans::Fixed(at), 0)
}

/// Parses `text` as statements; a last `;` may be missing. `None` where it does not parse cleanly.
pub fn parse_stmts(text: &str, at: Span) -> Option<Vec<Stmt>> {
    let end = if text.trim_end().ends_with([';', '}']) { "\n}" } else { "\n;}" };
    snippet("void f(){", text, end, Spans::Fixed(at), 0, |builder| {
        let body = builder.snippet_body()?;
        Some(builder.block(body))
    })
}

/// Parses `text` as a type: `const float4 *`, `T[4]`. `None` where it is not cleanly one.
pub fn parse_type(text: &str, at: Span) -> Option<Type> {
    snippet("using T=", text, "\n;", Spans::Fixed(at), 0, |builder| builder.snippet_type())
}

fn snippet_expr(text: &str, spans: Spans, depth: u32) -> Option<Expr> {
    if text.trim().is_empty() {
        return None;
    }
    snippet("void f(){return ", text, "\n;}", spans, depth, |builder| builder.snippet_return())
}

/// Parses `before text after` and hands the builder to `read`, unless an error was found. Spans that are
/// shifted are those of `text` itself.
fn snippet<T: Send>(
    before: &str,
    text: &str,
    after: &str,
    spans: Spans,
    depth: u32,
    read: impl FnOnce(&mut Builder) -> Option<T> + Send,
) -> Option<T> {
    let original = [before, text, after].concat();
    let mut whole = original.clone();
    let mut tree = tree_of(&whole)?;
    if tree.root_node().has_error() {
        // Types as arguments of macros, and what else files are masked for.
        let masked = mask(FileId(0), &whole, &Defines::default(), &MaskOptions::default()).text;
        whole = super::mask_types::settled(&masked);
        tree = tree_of(&whole)?;
    }
    let root = tree.root_node();
    // Text that closes the wrapper and opens another one is not one snippet.
    if root.has_error() || root.named_child_count() != 1 {
        return None;
    }
    let flat = Flat::of(&tree, &whole);
    let spans = match spans {
        Spans::Shifted { file, by } => Spans::Shifted { file, by: by - before.len() as i64 },
        Spans::Fixed(at) => Spans::Fixed(at),
    };
    let side = Side::default();
    on_big_stack(flat.depth, || {
        let mut builder = Builder::new(&flat, &whole, &original, &side, spans);
        builder.depth = depth;
        read(&mut builder)
    })
    .flatten()
}

/// `None` only where a thread that was started did not finish its work.
fn on_big_stack<T: Send>(depth: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    if depth <= SHALLOW {
        return Some(work());
    }
    let mut work = Some(work);
    let mut done = None;
    std::thread::scope(|scope| {
        let run = || done = work.take().map(|work| work());
        if let Ok(thread) = std::thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, run)
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
    });
    // Where no thread could be had, this stack has to do: the depth is bounded in any case.
    done.or_else(|| work.map(|work| work()))
}

fn language() -> tree_sitter::Language {
    tree_sitter_cuda::LANGUAGE.into()
}

fn tree_of(text: &str) -> Option<tree_sitter::Tree> {
    thread_local! {
        static PARSER: RefCell<Option<tree_sitter::Parser>> = const { RefCell::new(None) };
    }
    PARSER.with_borrow_mut(|slot| {
        if slot.is_none() {
            let mut parser = tree_sitter::Parser::new();
            parser.set_language(&language()).ok()?;
            *slot = Some(parser);
        }
        slot.as_mut()?.parse(text, None)
    })
}

/// How offsets in the parsed text become spans.
#[derive(Clone, Copy)]
enum Spans {
    Shifted { file: FileId, by: i64 },
    Fixed(Span),
}

/// A definition met inside another construct (`struct {…} s;`), waiting for its place.
enum Def {
    Struct(Arc<StructDef>),
    Enum(Arc<EnumDef>),
}

struct Builder<'a> {
    flat: &'a Flat,
    /// The text that was parsed.
    text: &'a str,
    original: &'a str,
    side: &'a Side,
    spans: Spans,
    names: FxHashMap<&'a str, Name>,
    unit: Unit,
    scope: Vec<Name>,
    namespaces: FxHashSet<Name>,
    class: Option<Name>,
    depth: u32,
    /// Inside a function's body: nested classes there do not enter the unit.
    in_body: bool,
    defs: Vec<Def>,
    /// The name that a `typedef` gives to the struct or enum it defines.
    typedef_name: Option<Name>,
    /// Words that stand for a type somewhere in the file; made when first asked for.
    type_words: Option<FxHashSet<&'a str>>,
}

impl<'a> Builder<'a> {
    fn new(flat: &'a Flat, text: &'a str, original: &'a str, side: &'a Side, spans: Spans) -> Self {
        Builder {
            flat,
            text,
            original,
            side,
            spans,
            names: FxHashMap::default(),
            unit: Unit::default(),
            scope: Vec::new(),
            namespaces: FxHashSet::default(),
            class: None,
            depth: 0,
            in_body: false,
            defs: Vec::new(),
            typedef_name: None,
            type_words: None,
        }
    }

    fn text(&self, node: Node) -> &'a str {
        self.text.get(node.range()).unwrap_or("")
    }

    fn span(&self, node: Node) -> Span {
        self.span_of(node.start, node.end)
    }

    fn span_of(&self, start: u32, end: u32) -> Span {
        match self.spans {
            Spans::Shifted { file, by } => {
                let at = |offset: u32| (i64::from(offset) + by).max(0) as usize;
                Span::new(file, at(start), at(end))
            }
            Spans::Fixed(at) => at,
        }
    }

    /// The spans of a piece of the parsed text that starts at `start`.
    fn spans_from(&self, start: u32) -> Spans {
        match self.spans {
            Spans::Shifted { file, by } => Spans::Shifted { file, by: by + i64::from(start) },
            Spans::Fixed(at) => Spans::Fixed(at),
        }
    }

    fn name(&mut self, node: Node) -> Name {
        let text = self.text(node);
        self.name_of(text)
    }

    fn name_of(&mut self, text: &'a str) -> Name {
        *self.names.entry(text).or_insert_with(|| Name::new(text))
    }

    fn gap(&mut self, node: Node, reason: impl Into<String>) {
        let span = self.span(node);
        self.unit.gaps.push(Gap { span, reason: reason.into() });
    }

    /// Runs `read` one level deeper; `None` past the limit, with a gap.
    fn deeper<T>(&mut self, node: Node, levels: u32, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth + levels > MAX_DEPTH {
            self.gap(node, TOO_DEEP);
            return None;
        }
        self.depth += levels;
        let result = read(self);
        self.depth -= levels;
        Some(result)
    }

    /// Parses a piece of text between two offsets of the parsed text as an expression.
    fn reparse(&mut self, start: u32, end: u32) -> Option<Expr> {
        let text = self.text.get(start as usize..end as usize)?;
        snippet_expr(text, self.spans_from(start), self.depth + 1)
    }

    /// Where a construct begins when the blanks that masking left in front of it are counted in.
    fn start_with_blanks(&self, node: Node) -> u32 {
        let before = self.text.as_bytes().get(..node.start as usize).unwrap_or(&[]);
        before.trim_ascii_end().len() as u32
    }

    fn align_in(&mut self, range: Range<u32>) -> Option<Expr> {
        let side = self.side;
        let at = side.aligns.partition_point(|(offset, _)| *offset < range.start);
        let (offset, text) = side.aligns.get(at).filter(|(offset, _)| *offset < range.end)?;
        let span = self.span_of(*offset, range.end.min(*offset + 9));
        parse_expr(text, span)
    }

    fn bounds_in(&mut self, range: Range<u32>) -> Vec<Expr> {
        let side = self.side;
        let at = side.launch_bounds.partition_point(|(offset, _)| *offset < range.start);
        let Some((offset, args)) = side.launch_bounds.get(at).filter(|(offset, _)| *offset < range.end)
        else {
            return Vec::new();
        };
        let span = self.span_of(*offset, range.end.min(*offset + 17));
        args.iter().map_while(|text| parse_expr(text, span)).collect()
    }

    /// Specifiers that a macro stood for, in front of or inside a declaration.
    fn specifiers_in(&self, range: Range<u32>) -> &'a str {
        let side = self.side;
        let at = side.specifiers.partition_point(|(offset, _)| *offset < range.start);
        side.specifiers.get(at).filter(|(offset, _)| *offset < range.end).map_or("", |(_, words)| words)
    }

    fn is_restrict_in(&self, range: Range<u32>) -> bool {
        let side = self.side;
        let at = side.restricts.partition_point(|offset| *offset < range.start);
        side.restricts.get(at).is_some_and(|offset| *offset < range.end)
    }

    fn is_packed_in(&self, range: Range<u32>) -> bool {
        self.side.packed.iter().any(|offset| range.contains(offset))
    }
}

/// The reason given past [`MAX_DEPTH`].
const TOO_DEEP: &str = "nested too deeply";
/// The reason given where the parser found an error.
const SYNTAX_ERROR: &str = "syntax error";
