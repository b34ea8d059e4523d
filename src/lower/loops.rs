//! Loops become recurrences: every variable that the body changes is `{init, next}` over the iterations.
//!
//! The body runs twice. The first pass, with a fresh symbol for every variable it may change, shows which ones it does
//! change and whether a lane can leave early; the second, with symbols only for those, records accesses. The evaluator
//! then runs the recurrences, so `s >>= 1`, `buf ^= 1` and two counters at once need no closed form.

use rustc_hash::FxHashSet;

use super::exec::{Exec, Mode};
use super::types::Ty;
use super::value::{Obj, Place, Pointer, SlotId, Val};
use crate::index::eval::Evaluator;
use crate::index::expr::{Deps, ExprId, Loop, LoopId, LoopVar, Symbol, loop_bit};
use crate::index::limits;
use crate::ir::ast::{self, BinaryOp, Expr, ExprKind, Name, Stmt, StmtKind, VarDecl};
use crate::ir::walk;
use std::rc::Rc;

/// Where lanes went that left the current loop body early.
#[derive(Clone, Debug, Default)]
pub struct Leaving {
    /// The condition under which lanes met `continue`.
    pub continued: Option<ExprId>,
    pub broke: bool,
    /// Lanes that met `break`, for a `switch`: they go on behind it.
    pub broken: Option<ExprId>,
}

/// A leaf of a slot's value that a loop may change.
#[derive(Clone)]
struct Carried {
    slot: SlotId,
    path: Vec<usize>,
    init: ExprId,
}

impl Exec<'_> {
    /// `break` or `continue`.
    pub fn leave(&mut self, is_continue: bool) {
        let alive = self.alive;
        let zero = self.arena.constant(0);
        let Some(mut leaving) = self.frames.last_mut().and_then(|frame| frame.leaving.pop()) else { return };
        let target = if is_continue { &mut leaving.continued } else { &mut leaving.broken };
        *target = Some(match *target {
            Some(before) => self.arena.or(before, alive),
            None => alive,
        });
        leaving.broke |= !is_continue;
        if let Some(frame) = self.frames.last_mut() {
            frame.leaving.push(leaving);
        }
        self.alive = zero;
    }

    /// A `switch`: lanes that break go on behind it; `continue` belongs to the loop around it.
    pub fn with_breaks(&mut self, f: impl FnOnce(&mut Self)) {
        if let Some(frame) = self.frames.last_mut() {
            frame.leaving.push(Leaving::default());
        }
        f(self);
        let Some(left) = self.frames.last_mut().and_then(|frame| frame.leaving.pop()) else { return };
        if let Some(broken) = left.broken {
            self.alive = self.arena.or(self.alive, broken);
        }
        if let Some(continued) = left.continued
            && let Some(outer) = self.frames.last_mut().and_then(|frame| frame.leaving.last_mut())
        {
            let before = outer.continued;
            let merged = before.map_or(continued, |before| self.arena.or(before, continued));
            if let Some(outer) = self.frames.last_mut().and_then(|frame| frame.leaving.last_mut()) {
                outer.continued = Some(merged);
            }
        }
    }

    pub fn run_loop(&mut self, cond: Option<&Expr>, step: Option<&Expr>, body: &Stmt, test_last: bool) {
        let mut names = FxHashSet::default();
        assigned_in_stmt(body, &mut names);
        cond.into_iter().chain(step).for_each(|expr| assigned_in_expr(expr, &mut names));
        self.loop_over(names, test_last, |exec| {
            let mut test = exec.arena.constant(1);
            if !test_last && let Some(cond) = cond {
                test = exec.condition(cond);
            }
            (test, move |exec: &mut Self| {
                exec.body(body);
                exec.end_iteration();
                if let Some(step) = step {
                    exec.discard(step);
                }
                if test_last && let Some(cond) = cond { exec.condition(cond) } else { exec.arena.constant(1) }
            })
        });
    }

    /// A host loop through a small table of block sizes or kernels: each iteration is run by itself, so that a launch has
    /// the entries that belong together. `false` where the loop is none.
    pub fn unroll(&mut self, cond: Option<&Expr>, step: Option<&Expr>, body: &Stmt) -> bool {
        let (Some(cond), Some(step)) = (cond, step) else { return false };
        if self.mode != super::exec::Mode::Host || self.probing > 0 || !self.reads_table(step, body) {
            return false;
        }
        for iteration in 0..limits::TABLE_ITERATIONS {
            let goes_on = self.condition(cond);
            match (self.arena.as_const(goes_on), iteration) {
                (None, 0) => return false,
                (None | Some(0), _) => return true,
                (Some(_), _) => {}
            }
            self.with_breaks(|exec| exec.body(body));
            self.discard(step);
        }
        true
    }

    /// A `for` of one iteration is no loop: that of `for (int i = 0; i < bytes / 16; ++i)` with 16 bytes. `false` where it has more,
    /// or how many it has is not known.
    pub fn run_once(&mut self, cond: Option<&Expr>, step: Option<&Expr>, body: &Stmt) -> bool {
        let (Some(cond), Some(step)) = (cond, step) else { return false };
        let mut counters = FxHashSet::default();
        assigned_in_expr(step, &mut counters);
        let mut assigned = FxHashSet::default();
        assigned_in_stmt(body, &mut assigned);
        assigned_in_expr(cond, &mut assigned);
        if counters.is_empty() || !counters.is_disjoint(&assigned) {
            return false;
        }
        let (saved, mark) = (self.alive, self.journal.len());
        self.probing += 1;
        let first = self.condition(cond);
        let is_first = self.arena.as_const(first).is_some_and(|value| value != 0);
        let is_last = is_first && {
            self.discard(step);
            let again = self.condition(cond);
            self.arena.as_const(again) == Some(0)
        };
        self.probing -= 1;
        self.roll_back(mark);
        self.alive = saved;
        if is_last {
            self.with_breaks(|exec| {
                exec.body(body);
                exec.end_iteration();
            });
            self.discard(step);
        }
        is_last
    }

    /// Is an array of known values indexed by what the loop steps?
    fn reads_table(&mut self, step: &Expr, body: &Stmt) -> bool {
        let mut counters = FxHashSet::default();
        assigned_in_expr(step, &mut counters);
        let mut tables = Vec::new();
        walk::expressions(std::slice::from_ref(body), &mut |expr| {
            let ExprKind::Index(base, indices) = &expr.kind else { return };
            let by_counter = indices.iter().any(|index| {
                matches!(&index.kind, ExprKind::Name(path) if path.as_simple().is_some_and(|name| counters.contains(&name)))
            });
            let mut base = base;
            while let ExprKind::Index(inner, _) = &base.kind {
                base = inner;
            }
            if by_counter && let ExprKind::Name(path) = &base.kind {
                tables.extend(path.as_simple());
            }
        });
        tables.into_iter().any(|name| {
            let slot = self.variable(name);
            slot.is_some_and(|slot| matches!(&self.slot(slot).value, Val::Array(of) if !of.known.is_empty()))
        })
    }

    /// Lanes that met `continue` are back for the step.
    pub(super) fn end_iteration(&mut self) {
        let continued = self
            .frames
            .last_mut()
            .and_then(|frame| frame.leaving.last_mut())
            .and_then(|leaving| leaving.continued.take());
        if let Some(continued) = continued {
            self.alive = self.arena.or(self.alive, continued);
        }
    }

    pub(super) fn loop_over<B>(
        &mut self,
        names: FxHashSet<Name>,
        test_last: bool,
        enter: impl Fn(&mut Self) -> (ExprId, B),
    ) where
        B: FnOnce(&mut Self) -> ExprId,
    {
        let slots = self.candidate_slots(&names);
        let saved = self.alive;
        // A loop that runs once or never, such as `do { … } while (0)`, is no loop.
        let mark = self.journal.len();
        self.probing += 1;
        let probe = self.pass(&slots, None, test_last, &enter);
        self.probing -= 1;
        self.roll_back(mark);
        self.alive = saved;
        let Some(probe) = probe else { return };
        if self.arena.as_const(probe.cond) == Some(0) {
            if test_last {
                self.once(&enter);
            }
            return;
        }
        let before = self.frames.last_mut().map(|frame| std::mem::take(&mut frame.returned_in_loop));
        let Some(run) = self.pass(&slots, Some(&probe), test_last, &enter) else { return };
        self.alive = saved;
        let returned = self.frames.last().is_some_and(|frame| frame.returned_in_loop);
        if returned {
            // Which lanes are left is not followed: like a branch on data.
            let inputs = self.anything();
            let stayed = self.arena.opaque(inputs);
            let stayed = self.arena.truth(stayed);
            self.alive = self.arena.and(saved, stayed);
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.returned_in_loop |= before.unwrap_or(false);
        }
        self.leave_loop(run);
    }

    fn once<B>(&mut self, enter: &impl Fn(&mut Self) -> (ExprId, B))
    where
        B: FnOnce(&mut Self) -> ExprId,
    {
        self.with_breaks(|exec| {
            let (_, body) = enter(exec);
            body(exec);
        });
    }

    /// The slots that names in the body refer to, with everything references lead to.
    fn candidate_slots(&mut self, names: &FxHashSet<Name>) -> Vec<SlotId> {
        let mut slots: Vec<SlotId> = Vec::new();
        let mut queue: Vec<SlotId> = names.iter().filter_map(|&name| self.variable(name)).collect();
        let closures: Vec<_> = queue.iter().filter_map(|&id| self.closure_slots(id)).flatten().collect();
        queue.extend(closures);
        if let Some(frame) = self.frames.last() {
            queue.extend(frame.this.as_ref().and_then(|place| root_slot(place)));
            queue.push(frame.result);
        }
        while let Some(id) = queue.pop() {
            if slots.contains(&id) {
                continue;
            }
            slots.push(id);
            if let Val::Ref(place) = &self.slot(id).value {
                queue.extend(root_slot(place));
            }
        }
        slots.sort();
        slots
    }

    /// The slot of a local variable or, on the host, of a global one.
    fn variable(&mut self, name: Name) -> Option<SlotId> {
        if let Some(slot) = self.lookup(name) {
            return Some(slot);
        }
        if self.mode != super::exec::Mode::Host {
            return None;
        }
        let entry = self.project.global(&self.tu, name)?;
        let (file, var) = (entry.file, entry.item.clone());
        let storage = var.storage;
        let elsewhere = storage.shared || storage.constant || storage.device || storage.managed;
        (!elsewhere && !storage.is_const && !storage.is_constexpr).then(|| self.global_slot(file, &var))
    }

    fn closure_slots(&self, id: SlotId) -> Option<Vec<SlotId>> {
        let Val::Lambda(closure) = &self.slot(id).value else { return None };
        let mut names = FxHashSet::default();
        closure.lambda.body.iter().for_each(|stmt| assigned_in_stmt(stmt, &mut names));
        Some(
            names
                .iter()
                .filter_map(|name| closure.scopes.iter().rev().find_map(|scope| scope.get(name).copied()))
                .collect(),
        )
    }

    fn pass<B>(
        &mut self,
        slots: &[SlotId],
        known: Option<&Pass>,
        test_last: bool,
        enter: &impl Fn(&mut Self) -> (ExprId, B),
    ) -> Option<Pass>
    where
        B: FnOnce(&mut Self) -> ExprId,
    {
        if self.out_of_budget() || self.loops.len() > 24 {
            return None;
        }
        let mut carried = Vec::new();
        for &slot in slots {
            let value = self.slot(slot).value.clone();
            self.leaves(slot, &value, &mut Vec::new(), &mut carried);
        }
        if let Some(known) = known {
            carried.retain(|leaf| {
                known.changed.iter().any(|(slot, path)| *slot == leaf.slot && *path == leaf.path)
            });
        }
        let id = LoopId(self.arena.loops.len() as u32);
        let one = self.arena.constant(1);
        let mut vars: Vec<LoopVar> = carried
            .iter()
            .map(|leaf| LoopVar {
                name: self.slot(leaf.slot).name,
                init: leaf.init,
                next: leaf.init,
                deps: self.arena.deps(leaf.init) | known.map_or(0, |known| known.deps_of(leaf)),
            })
            .collect();
        let early = known.is_some_and(|known| known.leaves_early);
        if early {
            let deps = known.map_or(0, |known| known.trips);
            vars.push(LoopVar { name: Name::new("running"), init: one, next: one, deps });
        }
        self.arena.loops.push(Loop {
            vars,
            cond: one,
            test_last,
            deps: known.map_or(0, |known| known.trips),
        });
        for (place, leaf) in carried.iter().enumerate() {
            let symbol = self.arena.symbol(Symbol::LoopVar(id, place as u32));
            self.write_leaf(leaf.slot, &leaf.path, symbol);
        }
        self.loops.push(id);
        if let Some(frame) = self.frames.last_mut() {
            frame.leaving.push(super::loops::Leaving::default());
        }
        let entry = self.alive;
        let (mut cond, body) = enter(self);
        let after = body(self);
        if test_last {
            cond = after;
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.leaving.pop();
        }
        self.loops.pop();
        Some(self.close(id, carried, entry, cond, early))
    }

    /// Reads what the iteration left and completes the loop's recurrences.
    fn close(&mut self, id: LoopId, carried: Vec<Carried>, entry: ExprId, cond: ExprId, early: bool) -> Pass {
        let leaves_early = self.alive != entry;
        let mut changed = Vec::new();
        let mut next = Vec::new();
        for (place, leaf) in carried.iter().enumerate() {
            let symbol = self.arena.symbol(Symbol::LoopVar(id, place as u32));
            let value = self.slot(leaf.slot).value.clone();
            let value = self.read_leaf(&value, &leaf.path).unwrap_or(symbol);
            if value != symbol {
                changed.push((leaf.slot, leaf.path.clone()));
            }
            next.push(value);
        }
        let (deps, trips) =
            self.loop_deps(id, &carried, &next, &[Some(cond), leaves_early.then_some(self.alive)]);
        let mut total = cond;
        if early {
            let running = self.arena.symbol(Symbol::LoopVar(id, carried.len() as u32));
            next.push(self.alive);
            total = self.arena.and(cond, running);
        }
        if let Some(of) = self.arena.loops.get_mut(id.0 as usize) {
            for (place, (var, next)) in of.vars.iter_mut().zip(next).enumerate() {
                var.next = next;
                var.deps = deps.get(place).copied().unwrap_or(trips);
            }
            of.cond = total;
            of.deps = trips;
        }
        Pass { id, carried, changed, cond: total, leaves_early, deps, trips }
    }

    /// What each carried variable depends on, and what the number of iterations does: an accumulator of loaded data does
    /// not make the counter beside it depend on data.
    fn loop_deps(
        &self,
        id: LoopId,
        carried: &[Carried],
        next: &[ExprId],
        stops: &[Option<ExprId>],
    ) -> (Vec<Deps>, Deps) {
        let own = |of: ExprId| self.arena.deps(of) & !loop_bit(id);
        let mut deps: Vec<Deps> =
            carried.iter().zip(next).map(|(leaf, &next)| self.arena.deps(leaf.init) | own(next)).collect();
        let uses: Vec<Vec<u32>> = next.iter().map(|&next| self.arena.loop_vars_in(next, id)).collect();
        // Each round passes dependences on by one step; there are no longer chains than variables.
        for _ in 0..carried.len() {
            let before = deps.clone();
            for (place, uses) in uses.iter().enumerate() {
                for &from in uses {
                    let from = before.get(from as usize).copied().unwrap_or(0);
                    if let Some(deps) = deps.get_mut(place) {
                        *deps |= from;
                    }
                }
            }
            if deps == before {
                break;
            }
        }
        let mut trips = 0;
        for &stop in stops.iter().flatten() {
            trips |= own(stop);
            for var in self.arena.loop_vars_in(stop, id) {
                trips |= deps.get(var as usize).copied().unwrap_or(0);
            }
        }
        (deps, trips)
    }

    /// After the loop every changed variable has its final value.
    fn leave_loop(&mut self, run: Pass) {
        for (place, leaf) in run.carried.iter().enumerate() {
            let value = self.arena.final_value(run.id, place as u32);
            let value = self.worked_out(value).unwrap_or(value);
            self.write_leaf(leaf.slot, &leaf.path, value);
        }
        // What was assigned from values of the last iteration, other than carried leaves, refers to loop symbols: such
        // leaves are all carried, since they were assigned in the body.
    }

    /// What a loop of the host computes from constants alone is one: kernels are given it by value.
    fn worked_out(&mut self, value: ExprId) -> Option<ExprId> {
        if self.mode != Mode::Host || self.arena.deps(value) != 0 {
            return None;
        }
        let mut eval = Evaluator::new(&self.arena);
        eval.need([value]);
        let value = eval.eval(value);
        (!value.undefined && value.data.is_none()).then(|| self.arena.constant(value.value[0]))
    }

    fn leaves(&mut self, slot: SlotId, value: &Val, path: &mut Vec<usize>, out: &mut Vec<Carried>) {
        if out.len() > 200 {
            return;
        }
        let init = match value {
            Val::Int(expr, _) => *expr,
            Val::Ptr(pointer) => pointer.offset,
            Val::Float(_, atom, _) | Val::Opaque(_, atom) => *atom,
            Val::Array(array) => array.rest,
            Val::Void => self.arena.constant(0),
            Val::Obj(obj) => {
                for (place, field) in obj.fields.iter().enumerate() {
                    path.push(place);
                    self.leaves(slot, field, path, out);
                    path.pop();
                }
                return;
            }
            Val::Ref(_) | Val::Lambda(_) | Val::Function(_) | Val::Group(_) => return,
        };
        out.push(Carried { slot, path: path.clone(), init });
    }

    fn read_leaf(&mut self, value: &Val, path: &[usize]) -> Option<ExprId> {
        match (value, path) {
            (Val::Obj(obj), [first, rest @ ..]) => self.read_leaf(obj.fields.get(*first)?, rest),
            (Val::Void, _) => Some(self.arena.constant(0)),
            (Val::Array(array), []) => Some(if array.known.is_empty() {
                array.rest
            } else {
                let mut inputs: Vec<ExprId> = vec![array.rest];
                let values: Vec<Val> = array.known.values().cloned().collect();
                inputs.extend(values.iter().map(|value| self.atom(value)));
                self.combine(&inputs)
            }),
            (value, _) => Some(self.atom(value)),
        }
    }

    fn write_leaf(&mut self, slot: SlotId, path: &[usize], expr: ExprId) {
        let ty = self.slot(slot).ty.clone();
        let value = self.slot(slot).value.clone();
        let value = with_leaf(value, path, expr, &ty);
        self.set_slot(slot, value);
    }

    pub fn range_for(&mut self, var: &VarDecl, range: &Expr, body: &Stmt) {
        let range = self.value(range);
        let atom = self.atom(&range);
        let item = self.arena.opaque(vec![atom]);
        let ty = self.ty(&var.ty);
        let mut names = FxHashSet::default();
        assigned_in_stmt(body, &mut names);
        self.scoped(|exec| {
            let value = match &ty {
                Ty::Int { .. } | Ty::Bool => Val::Int(item, ty.clone()),
                Ty::Float(kind) => Val::Float(None, item, *kind),
                _ => Val::Opaque(ty.clone(), item),
            };
            exec.declare(var.name, ty.clone(), value, false);
            exec.loop_over(names, false, |_| {
                (item, |exec: &mut Self| {
                    exec.body(body);
                    exec.end_iteration();
                    exec.arena.constant(1)
                })
            });
        });
    }
}

struct Pass {
    id: LoopId,
    carried: Vec<Carried>,
    changed: Vec<(SlotId, Vec<usize>)>,
    cond: ExprId,
    leaves_early: bool,
    /// Of each carried variable.
    deps: Vec<Deps>,
    /// Of the number of iterations.
    trips: Deps,
}

impl Pass {
    fn deps_of(&self, leaf: &Carried) -> Deps {
        let same = |known: &Carried| known.slot == leaf.slot && known.path == leaf.path;
        self.carried.iter().position(same).and_then(|place| self.deps.get(place)).copied().unwrap_or(0)
    }
}

fn root_slot(place: &Place) -> Option<SlotId> {
    match place {
        Place::Slot { slot, .. } => Some(*slot),
        Place::Memory { .. } | Place::Value(_) => None,
    }
}

fn with_leaf(value: Val, path: &[usize], expr: ExprId, ty: &Ty) -> Val {
    match (value, path) {
        (Val::Obj(obj), [first, rest @ ..]) => {
            let mut obj: Obj = (*obj).clone();
            let field_ty = obj.ty.fields.get(*first).map_or(Ty::Auto, |field| field.ty.clone());
            if let Some(field) = obj.fields.get_mut(*first) {
                *field = with_leaf(field.clone(), rest, expr, &field_ty);
            }
            Val::Obj(Rc::new(obj))
        }
        (Val::Int(_, ty), _) => Val::Int(expr, ty),
        (Val::Float(_, _, size), _) => Val::Float(None, expr, size),
        (Val::Ptr(pointer), _) => Val::Ptr(Pointer { offset: expr, ..pointer }),
        (Val::Array(array), _) => {
            let mut array = (*array).clone();
            array.known.clear();
            array.rest = expr;
            Val::Array(Rc::new(array))
        }
        (Val::Void, _) => match ty {
            Ty::Int { .. } | Ty::Bool => Val::Int(expr, ty.clone()),
            Ty::Float(kind) => Val::Float(None, expr, *kind),
            _ => Val::Void,
        },
        (Val::Opaque(ty, _), _) => Val::Opaque(ty, expr),
        (other, _) => other,
    }
}

/// Names that a statement may assign: the roots of assignments, increments, address-of and call arguments.
pub fn assigned_in_stmt(stmt: &Stmt, out: &mut FxHashSet<Name>) {
    let mut list = |stmts: &[Stmt]| stmts.iter().for_each(|stmt| assigned_in_stmt(stmt, out));
    match &stmt.kind {
        StmtKind::Decl(vars) => {
            for var in vars {
                match &var.init {
                    ast::Init::None => {}
                    ast::Init::Assign(expr) => {
                        if matches!(var.ty, ast::Type::Reference { .. } | ast::Type::Pointer { .. }) {
                            root_name(expr, out);
                        }
                        assigned_in_expr(expr, out);
                    }
                    ast::Init::Paren(args) | ast::Init::Brace(args) => {
                        args.iter().for_each(|arg| assigned_in_expr(arg, out));
                    }
                }
            }
        }
        StmtKind::Expr(expr) => assigned_in_expr(expr, out),
        StmtKind::Block(body) => list(body),
        StmtKind::If { init, cond, then, otherwise, .. } => {
            assigned_in_expr(cond, out);
            init.iter().chain([then]).chain(otherwise).for_each(|stmt| assigned_in_stmt(stmt, out));
        }
        StmtKind::For { init, cond, step, body } => {
            init.iter().chain([body]).for_each(|stmt| assigned_in_stmt(stmt, out));
            cond.iter().chain(step).for_each(|expr| assigned_in_expr(expr, out));
        }
        StmtKind::RangeFor { range, body, .. } => {
            assigned_in_expr(range, out);
            assigned_in_stmt(body, out);
        }
        StmtKind::While { cond, body } | StmtKind::DoWhile { body, cond } => {
            assigned_in_expr(cond, out);
            assigned_in_stmt(body, out);
        }
        StmtKind::Return(Some(expr)) => assigned_in_expr(expr, out),
        StmtKind::Switch { cond, cases } => {
            assigned_in_expr(cond, out);
            for case in cases {
                case.body.iter().for_each(|stmt| assigned_in_stmt(stmt, out));
            }
        }
        StmtKind::LoopMacro { args, body, .. } | StmtKind::BlockMacro { args, body, .. } => {
            args.iter().for_each(|arg| root_name(arg, out));
            assigned_in_stmt(body, out);
        }
        StmtKind::Macro { args, .. } => {
            for text in args.iter().flatten() {
                let mut word = String::new();
                for c in text.chars().chain([' ']) {
                    if c.is_alphanumeric() || c == '_' {
                        word.push(c);
                    } else if !word.is_empty() {
                        out.insert(Name::new(&std::mem::take(&mut word)));
                    }
                }
            }
        }
        StmtKind::Alternatives(branches) => branches.iter().for_each(|branch| list(branch)),
        StmtKind::Asm(asm) => asm.outputs.iter().for_each(|(_, expr)| root_name(expr, out)),
        StmtKind::Empty
        | StmtKind::Return(None)
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Jump
        | StmtKind::Alias(_)
        | StmtKind::Struct(_)
        | StmtKind::Enum(_)
        | StmtKind::Unknown(_) => {}
    }
}

pub fn assigned_in_expr(expr: &Expr, out: &mut FxHashSet<Name>) {
    use ast::UnaryOp;
    match &expr.kind {
        ExprKind::Assign(_, left, right) => {
            root_name(left, out);
            assigned_in_expr(left, out);
            assigned_in_expr(right, out);
        }
        ExprKind::Unary(op, operand) => {
            if matches!(
                op,
                UnaryOp::PreInc | UnaryOp::PreDec | UnaryOp::PostInc | UnaryOp::PostDec | UnaryOp::AddrOf
            ) {
                root_name(operand, out);
            }
            assigned_in_expr(operand, out);
        }
        ExprKind::Binary(op, a, b) => {
            // `stream >> x`
            if *op == BinaryOp::Shr {
                root_name(b, out);
            }
            assigned_in_expr(a, out);
            assigned_in_expr(b, out);
        }
        ExprKind::Ternary(a, b, c) => [a, b, c].into_iter().for_each(|expr| assigned_in_expr(expr, out)),
        ExprKind::Comma(list) => list.iter().for_each(|expr| assigned_in_expr(expr, out)),
        ExprKind::Index(base, indices) => {
            assigned_in_expr(base, out);
            indices.iter().for_each(|expr| assigned_in_expr(expr, out));
        }
        ExprKind::Field { base, .. } => assigned_in_expr(base, out),
        ExprKind::Call { callee, args } => {
            match &callee.kind {
                ExprKind::Field { base, .. } => root_name(base, out),
                _ => root_name(callee, out),
            }
            for arg in args {
                root_name(arg, out);
                assigned_in_expr(arg, out);
            }
        }
        ExprKind::Launch { config, args, .. } => {
            config.iter().chain(args).for_each(|expr| assigned_in_expr(expr, out));
        }
        ExprKind::Cast { operand, .. } | ExprKind::SizeofExpr(operand) | ExprKind::PackExpansion(operand) => {
            assigned_in_expr(operand, out);
        }
        ExprKind::Construct { args, .. } => args.iter().for_each(|expr| assigned_in_expr(expr, out)),
        ExprKind::InitList(items) => items.iter().for_each(|(_, expr)| assigned_in_expr(expr, out)),
        ExprKind::Lambda(lambda) => lambda.body.iter().for_each(|stmt| assigned_in_stmt(stmt, out)),
        ExprKind::New { .. }
        | ExprKind::Int { .. }
        | ExprKind::Float { .. }
        | ExprKind::Bool(_)
        | ExprKind::Char(_)
        | ExprKind::Str
        | ExprKind::Nullptr
        | ExprKind::This
        | ExprKind::Name(_)
        | ExprKind::SizeofType(_)
        | ExprKind::AlignofType(_)
        | ExprKind::Unknown(_) => {}
    }
}

fn root_name(expr: &Expr, out: &mut FxHashSet<Name>) {
    match &expr.kind {
        ExprKind::Name(path) => {
            out.insert(path.name);
        }
        ExprKind::Index(base, _) | ExprKind::Field { base, .. } => root_name(base, out),
        ExprKind::Unary(_, operand) | ExprKind::Cast { operand, .. } => root_name(operand, out),
        ExprKind::Ternary(_, a, b) | ExprKind::Binary(_, a, b) => {
            root_name(a, out);
            root_name(b, out);
        }
        ExprKind::Comma(list) => list.iter().for_each(|expr| root_name(expr, out)),
        _ => {}
    }
}
