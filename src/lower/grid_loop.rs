//! Loop macros: `KERNEL_LOOP(i, n) { … }`, with their definition or, where no file has it, by convention.

use rustc_hash::FxHashSet;

use super::exec::Exec;
use super::loops::assigned_in_stmt;
use super::types::{Ty, named_scalar};
use super::value::Val;
use crate::index::expr::{Axis, ExprId, Op, Symbol};
use crate::ir::ast::{Expr, ExprKind, Name, Stmt, StmtKind};
use crate::source::Span;

/// Which arguments of a loop macro are what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridLoop {
    pub counter: usize,
    pub bound: usize,
    /// The counter's type; `int` where `None`.
    pub ty: Option<usize>,
}

/// How a loop macro is read that has no definition: `KERNEL_LOOP(i, n) body` is `for (int i = global thread id; i < n; i += threads
/// of the grid) body`, and the counter's type may stand before the counter (`LOOP_T(long, i, n)`) or last
/// (`LOOP_TYPE(i, n, long)`, as PyTorch has it). `None` where the arguments are others.
pub fn grid_loop(name: Name, args: &[Expr]) -> Option<GridLoop> {
    let is_name = |arg: &Expr| matches!(&arg.kind, ExprKind::Name(path) if path.as_simple().is_some());
    // A built-in type is no expression, or a name that is known.
    let is_type = |arg: &Expr| match &arg.kind {
        ExprKind::Unknown(_) => true,
        ExprKind::Name(path) => named_scalar(path.name.as_str()).is_some(),
        _ => false,
    };
    match args {
        [counter, _] if is_name(counter) => Some(GridLoop { counter: 0, bound: 1, ty: None }),
        [counter, _, last]
            if is_name(counter) && (is_type(last) || name.as_str().ends_with("_LOOP_TYPE")) =>
        {
            Some(GridLoop { counter: 0, bound: 1, ty: Some(2) })
        }
        [_, counter, _] if is_name(counter) => Some(GridLoop { counter: 1, bound: 2, ty: Some(0) }),
        _ => None,
    }
}

impl Exec<'_> {
    pub fn loop_macro(&mut self, name: Name, args: &[Expr], body: &Stmt, at: Span) {
        let texts = self.argument_texts(name, args, at);
        if let Some(text) = self.expand_macro(name, Some(&texts), at)
            && let Some(mut head) = crate::syntax::parse_stmts(&format!("{text} ;"), at)
            && graft(&mut head, body)
        {
            self.block(&head);
            return;
        }
        self.grid_stride(name, args, body);
    }

    fn grid_stride(&mut self, of: Name, args: &[Expr], body: &Stmt) {
        let Some(GridLoop { counter, bound, ty }) = grid_loop(of, args) else {
            return self.unknown_loop(args, body);
        };
        let (Some(ExprKind::Name(path)), Some(bound)) =
            (args.get(counter).map(|arg| &arg.kind), args.get(bound))
        else {
            return self.body(body);
        };
        let name = path.name;
        let ty = ty.and_then(|place| self.counter_type(args.get(place)?)).unwrap_or(Ty::INT);
        let (start, stride) = self.grid_stride_terms();
        self.scoped(|exec| {
            exec.declare(name, ty.clone(), Val::Int(start, ty.clone()), false);
            let mut names = FxHashSet::default();
            assigned_in_stmt(body, &mut names);
            names.insert(name);
            exec.loop_over(names, false, |exec| {
                let limit = exec.value(bound);
                let limit = exec.atom(&limit);
                let slot = exec.lookup(name);
                let current = slot.map_or(start, |slot| {
                    let value = exec.slot(slot).value.clone();
                    exec.atom(&value)
                });
                let test = exec.arena.binary(Op::Lt, false, current, limit);
                let ty = ty.clone();
                (test, move |exec: &mut Self| {
                    exec.body(body);
                    exec.end_iteration();
                    if let Some(slot) = slot {
                        let value = exec.slot(slot).value.clone();
                        let now = exec.atom(&value);
                        let next = exec.arena.add(now, stride);
                        exec.set_slot(slot, Val::Int(next, ty));
                    }
                    exec.arena.constant(1)
                })
            });
        });
    }

    /// What the names that it declares are is not known, and differs between lanes.
    fn unknown_loop(&mut self, args: &[Expr], body: &Stmt) {
        self.scoped(|exec| {
            for arg in args {
                if let ExprKind::Name(path) = &arg.kind
                    && let Some(name) = path.as_simple()
                    && exec.lookup(name).is_none()
                {
                    let inputs = exec.anything();
                    let value = exec.arena.opaque(inputs);
                    exec.declare(name, Ty::INT, Val::Int(value, Ty::INT), false);
                }
            }
            exec.body(body);
        });
    }

    fn counter_type(&mut self, arg: &Expr) -> Option<Ty> {
        let ty = crate::syntax::parse_type(self.sources.text(arg.span), arg.span)?;
        Some(self.ty(&ty)).filter(|ty| matches!(ty, Ty::Int { .. }))
    }

    fn grid_stride_terms(&mut self) -> (ExprId, ExprId) {
        let tid = self.arena.symbol(Symbol::ThreadIdx(Axis::X));
        let bid = self.arena.symbol(Symbol::BlockIdx(Axis::X));
        let start = self.arena.mul(bid, self.dims.block[0]);
        let start = self.arena.add(start, tid);
        let stride = self.arena.mul(self.dims.block[0], self.dims.grid[0]);
        (start, stride)
    }
}

/// Puts `body` where the expansion of a loop macro has its empty statement: the innermost, last one.
fn graft(stmts: &mut Vec<Stmt>, body: &Stmt) -> bool {
    while stmts.len() > 1 && stmts.last().is_some_and(|stmt| matches!(stmt.kind, StmtKind::Empty)) {
        stmts.pop();
    }
    stmts.last_mut().is_some_and(|stmt| graft_into(stmt, body))
}

fn graft_into(stmt: &mut Stmt, body: &Stmt) -> bool {
    match &mut stmt.kind {
        StmtKind::For { body: inner, .. } | StmtKind::While { body: inner, .. } => match inner.kind {
            StmtKind::Empty => {
                **inner = body.clone();
                true
            }
            _ => graft_into(inner, body),
        },
        StmtKind::If { then, otherwise: None, .. } => match then.kind {
            StmtKind::Empty => {
                **then = body.clone();
                true
            }
            _ => graft_into(then, body),
        },
        _ => false,
    }
}
