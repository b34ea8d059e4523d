//! Macros that take statements along as an argument, as dispatch over types and constants does:
//! `DISPATCH_DIM(dim, DIM, { kernel<DIM><<<…>>>(…); })` and `DISPATCH(type, "name", [&] { kernel<T><<<…>>>(…); })`.
//!
//! The macro is expanded as text with a name in the place of that argument, and the argument's own syntax stands in for
//! the name wherever the expansion has it: its positions stay those of the source.

use std::rc::Rc;
use std::sync::Arc;

use super::exec::Exec;
use super::value::Val;
use crate::index::limits;
use crate::ir::ast::{Expr, ExprKind, Name, Path, Stmt, StmtKind};
use crate::source::Span;

/// Begins the names that stand for arguments.
const KEPT: &str = "__argument_at_";

/// An argument that is kept as syntax.
#[derive(Clone)]
pub struct Kept {
    pub expr: Rc<Expr>,
    /// How often this expansion has evaluated it.
    pub uses: usize,
}

impl Exec<'_> {
    /// `NAME(args, { body })`, with `before` arguments before the block.
    pub fn block_macro(&mut self, name: Name, before: usize, body: &Stmt, at: Span) {
        let expanded = self.with_block(name, before, body, at);
        match expanded {
            Some(stmts) => self.block(&stmts),
            // Not seen: whatever it defines, the block runs.
            None => self.body(body),
        }
    }

    fn with_block(&mut self, name: Name, before: usize, body: &Stmt, at: Span) -> Option<Vec<Stmt>> {
        let written = self.sources.get(at.file).text.get(at.start as usize..)?.strip_prefix(name.as_str())?;
        let (mut texts, _) = super::macros::arguments(written)?;
        let stand_in = format!("{KEPT}{}", body.span.start);
        texts.truncate(before);
        texts.push(format!("{{ {stand_in}; }}"));
        let text = self.expand_macro(name, Some(&texts), at)?;
        let mut stmts = crate::syntax::parse_stmts(&text, at)?;
        let mut left = limits::LAUNCHES_PER_KERNEL;
        let found = graft_all(&mut stmts, Name::new(&stand_in), body, &mut left);
        (found > 0).then_some(stmts)
    }

    /// The arguments' texts, with a name for the last one if that is a lambda.
    pub fn keep_lambda(&mut self, args: &[Expr], texts: &mut Vec<String>) {
        let Some(last) = args.last() else { return };
        if !matches!(last.kind, ExprKind::Lambda(_)) || texts.len() < args.len() {
            return;
        }
        let name = Name::new(&format!("{KEPT}{}_{}", last.span.file.0, last.span.start));
        // A comma between braces is none between arguments: what is left of the lambda goes, too.
        texts.truncate(args.len() - 1);
        texts.push(name.as_str().to_owned());
        self.kept.insert(name, Kept { expr: Rc::new(last.clone()), uses: 0 });
    }

    /// The value of an argument that [`Exec::keep_lambda`] gave a name.
    pub fn kept_value(&mut self, path: &Path) -> Option<Val> {
        if self.kept.is_empty() || !path.scope.is_empty() {
            return None;
        }
        let kept = self.kept.get_mut(&path.name)?;
        kept.uses += 1;
        if kept.uses > limits::LAUNCHES_PER_KERNEL {
            return Some(Val::Void);
        }
        let expr = kept.expr.clone();
        // An argument is expanded before the macro that it is given to: that macro may be used in it again.
        let expanding = std::mem::take(&mut self.expanding);
        let value = self.value(&expr);
        self.expanding = expanding;
        Some(value)
    }
}

/// Puts `body` wherever the statements say `name;`, at most `left` times. Returns how often.
fn graft_all(stmts: &mut [Stmt], name: Name, body: &Stmt, left: &mut usize) -> usize {
    stmts.iter_mut().map(|stmt| graft_into(stmt, name, body, left)).sum()
}

fn graft_into(stmt: &mut Stmt, name: Name, body: &Stmt, left: &mut usize) -> usize {
    match &mut stmt.kind {
        StmtKind::Macro { name: found, args: None } if *found == name => {
            if *left == 0 {
                stmt.kind = StmtKind::Empty;
                return 0;
            }
            *left -= 1;
            *stmt = body.clone();
            1
        }
        StmtKind::Block(body_of) => graft_all(body_of, name, body, left),
        StmtKind::If { init, then, otherwise, .. } => init
            .iter_mut()
            .chain([then])
            .chain(otherwise)
            .map(|stmt| graft_into(stmt, name, body, left))
            .sum(),
        StmtKind::For { body: inner, .. }
        | StmtKind::RangeFor { body: inner, .. }
        | StmtKind::While { body: inner, .. }
        | StmtKind::DoWhile { body: inner, .. }
        | StmtKind::LoopMacro { body: inner, .. }
        | StmtKind::BlockMacro { body: inner, .. } => graft_into(inner, name, body, left),
        StmtKind::Switch { cases, .. } => {
            cases.iter_mut().map(|case| graft_all(&mut case.body, name, body, left)).sum()
        }
        StmtKind::Alternatives(branches) => {
            branches.iter_mut().map(|branch| graft_all(branch, name, body, left)).sum()
        }
        StmtKind::Expr(expr) => graft_lambda(expr, name, body, left),
        StmtKind::Return(Some(expr)) => graft_lambda(expr, name, body, left),
        StmtKind::Decl(_)
        | StmtKind::Return(None)
        | StmtKind::Empty
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Jump
        | StmtKind::Macro { .. }
        | StmtKind::Asm(_)
        | StmtKind::Alias(_)
        | StmtKind::Struct(_)
        | StmtKind::Enum(_)
        | StmtKind::Unknown(_) => 0,
    }
}

/// `[&] { … }()` and `run([&] { … })`: the block within a lambda of the macro.
fn graft_lambda(expr: &mut Expr, name: Name, body: &Stmt, left: &mut usize) -> usize {
    match &mut expr.kind {
        ExprKind::Lambda(lambda) => graft_all(&mut Arc::make_mut(lambda).body, name, body, left),
        ExprKind::Call { callee, args } => {
            let inside: usize = args.iter_mut().map(|arg| graft_lambda(arg, name, body, left)).sum();
            inside + graft_lambda(callee, name, body, left)
        }
        _ => 0,
    }
}
