//! Launches that host code makes.

use std::sync::Arc;

use super::exec::{Exec, Launch, Mode};
use super::project::Entry;
use super::types::TemplateValue;
use super::value::{FunctionRef, Val};
use crate::index::expr::ExprId;
use crate::ir::ast::{Expr, ExprKind, FunctionDef, Path};
use crate::source::Span;

impl Exec<'_> {
    pub fn launch(&mut self, callee: &Expr, config: &[Expr], args: &[Expr], at: Span) {
        let dims: Vec<Option<[ExprId; 3]>> = config.iter().take(2).map(|expr| self.extent(expr)).collect();
        let shared = config.get(2).map(|bytes| {
            let bytes = self.quietly(|exec| exec.value(bytes));
            self.atom(&bytes)
        });
        let values = self.arguments(args);
        let values = self.rvalues(&values, at);
        let [grid, block] = dims.as_slice() else { return };
        self.launch_shared = shared;
        self.record_launch(callee, *grid, *block, values, at);
        self.launch_shared = None;
    }

    pub fn record_launch(
        &mut self,
        callee: &Expr,
        grid: Option<[ExprId; 3]>,
        block: Option<[ExprId; 3]>,
        args: Vec<Val>,
        at: Span,
    ) {
        if self.probing > 0 || self.mode != Mode::Host || self.launches.len() > 4_000 {
            return;
        }
        let given = match &callee.kind {
            ExprKind::Name(path) if self.lookup(path.name).is_none() => match self.env().get(path.name) {
                Some(TemplateValue::Value(given @ Val::Function(_))) => given.clone(),
                _ => self.function_value(path),
            },
            _ => self.quietly(|exec| exec.value(callee)),
        };
        let given = match given {
            Val::Ref(place) => self.plain(Val::Ref(place), at),
            given => given,
        };
        let Val::Function(functions) = given else { return };
        for function in functions.iter() {
            self.push_launch(function, grid, block, &args, at);
        }
    }

    /// A function's name, with the template arguments that stand behind it, as a value.
    pub fn function_value(&mut self, path: &Path) -> Val {
        let template = match &path.args {
            Some(args) => {
                let found =
                    self.project.functions(&self.tu, path.name).first().map(|entry| entry.item.clone());
                found.map(|def| self.template_values(&def.template, args)).unwrap_or_default()
            }
            None => Vec::new(),
        };
        Val::Function([FunctionRef { name: path.name, template: template.into(), when: Vec::new() }].into())
    }

    pub(super) fn push_launch(
        &mut self,
        function: &FunctionRef,
        grid: Option<[ExprId; 3]>,
        block: Option<[ExprId; 3]>,
        args: &[Val],
        at: Span,
    ) {
        let candidates = self.project.functions(&self.tu, function.name);
        let is_kernel = |entry: &&&Entry<Arc<FunctionDef>>| entry.item.qualifiers.kernel;
        let kernel = candidates
            .iter()
            .filter(is_kernel)
            .find(|entry| entry.item.params.len() == args.len())
            .or_else(|| candidates.iter().find(is_kernel))
            .map(|entry| (**entry).clone());
        let Some(kernel) = kernel else { return };
        let template = function.template.to_vec();
        let mut conditions = self.arena.conjuncts(self.alive);
        conditions.extend(&function.when);
        self.launches.push(Launch {
            span: at,
            kernel,
            template,
            grid,
            block,
            shared: self.launch_shared,
            args: args.to_vec(),
            conditions,
            loops: self.loops.clone(),
            tu: self.tu.clone(),
        });
    }

    /// A launch extent: a `dim3`, a number, or `{x, y}`.
    pub fn extent(&mut self, expr: &Expr) -> Option<[ExprId; 3]> {
        let value = match &expr.kind {
            ExprKind::InitList(items) => {
                let values = items.iter().map(|(_, expr)| self.value(expr)).collect();
                self.dim3(values)
            }
            _ => self.value(expr),
        };
        self.extent_of(value)
    }

    pub fn extent_of(&mut self, value: Val) -> Option<[ExprId; 3]> {
        let one = self.arena.constant(1);
        match value {
            Val::Obj(obj) if obj.fields.len() >= 3 => {
                let mut out = [one; 3];
                for (slot, field) in out.iter_mut().zip(&obj.fields) {
                    *slot = match field {
                        // A dim3 that was never given its y is 1 there.
                        Val::Void => one,
                        field => self.atom(field),
                    };
                }
                Some(out)
            }
            Val::Int(x, _) => Some([x, one, one]),
            Val::Float(Some(known), ..) => Some([self.arena.constant(known as i64), one, one]),
            Val::Float(None, atom, _) => Some([atom, one, one]),
            _ => None,
        }
    }
}
