//! The symbolic executor: scopes, variables, statements.
//!
//! One [`Exec`] runs one root: a host function with everything it calls, then the kernels it launches, or one kernel
//! alone. `alive` is the condition under which the current statement runs; a `return` under a condition narrows it for
//! what follows. Branches run both ways and merge by ternaries, so a value is one expression whatever path made it.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::call::Frame;
use super::dispatch::Kept;
use super::project::{Project, TranslationUnit};
use super::types::{StructTy, TemplateEnv, TemplateValue, Ty};
use super::value::{Aggregate, ArrayVal, Base, FunctionRef, Obj, Place, Scope, Slot, SlotId, Val};
use crate::index::expr::{Arena, ExprId, LoopId};
use crate::index::limits;
use crate::ir::ast::{self, Expr, ExprKind, Init, Name, Stmt, StmtKind, VarDecl};
use crate::ir::facts::{MemorySpace, Operation};
use crate::source::{FileId, Sources, Span};

/// One access as the source makes it, before any number.
#[derive(Clone, Debug)]
pub struct RawAccess {
    /// Into memory behind a pointer that the analysis lost.
    pub unseen_origin: bool,
    /// The bytes of the wider instruction that the compiler makes of it and its neighbours.
    pub merged: Option<i64>,
    pub span: Span,
    /// Calls that led here, outermost first.
    pub calls: Vec<Span>,
    pub space: MemorySpace,
    pub operation: Operation,
    /// Bytes one instruction moves per lane.
    pub width: i64,
    /// Bytes the source accesses: more than `width` for a struct that is moved in pieces.
    pub bytes: i64,
    pub base: u32,
    pub offset: ExprId,
    pub guard: ExprId,
    pub loops: Vec<LoopId>,
    pub aggregate: Option<Aggregate>,
    /// The element type as written.
    pub element: String,
    /// Byte ranges of a copied struct that are read later; `None`: not tracked, all of it.
    pub used: Option<Vec<(i64, i64)>>,
    pub kind: AccessKind,
    /// Conjuncts of the guard that only switch lanes off: the warp issues the access all the same.
    pub predicated: Vec<ExprId>,
    /// The element's size is not known: listed, not measured.
    pub unsized_element: bool,
    /// Accesses with different numbers have a barrier between them, or inline PTX that clobbers memory.
    pub fence: u32,
    /// The loops around it in which such a fence stands.
    pub fenced_loops: Vec<LoopId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Plain,
    /// `__ldg`: the read-only path.
    ReadOnly,
    /// `atomicAdd(p, 1)` whose result is unused.
    AtomicIncrement,
    AtomicCas,
    /// The warp reduces first and one lane goes: an integer, one address, result unused (hardware.md §5).
    AtomicReduced,
    /// A compare-and-swap loop: floating point or 64 bit in shared memory.
    AtomicLoop,
    AtomicOther,
    /// `cp.async`
    AsyncCopy,
    /// `ldmatrix`/`stmatrix` of that many matrices.
    Matrix(u8),
}

/// A launch as the host code makes it.
#[derive(Clone)]
pub struct Launch {
    pub span: Span,
    pub kernel: super::project::Entry<std::sync::Arc<ast::FunctionDef>>,
    pub template: Vec<TemplateValue>,
    pub grid: Option<[ExprId; 3]>,
    pub block: Option<[ExprId; 3]>,
    /// Bytes of dynamic shared memory.
    pub shared: Option<ExprId>,
    pub args: Vec<Val>,
    /// What the host tested on the way to it.
    pub conditions: Vec<ExprId>,
    pub loops: Vec<LoopId>,
    pub tu: TranslationUnit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Host,
    Device,
}

pub struct Exec<'p> {
    pub project: &'p Project,
    pub sources: &'p Sources,
    pub tu: TranslationUnit,
    pub mode: Mode,
    pub arena: Arena,
    pub bases: Vec<Base>,
    pub slots: Vec<Slot>,
    pub frames: Vec<Frame>,
    pub alive: ExprId,
    pub loops: Vec<LoopId>,
    /// 0: accesses and launches are recorded; above: a loop body is being probed.
    pub probing: usize,
    pub accesses: Vec<RawAccess>,
    pub launches: Vec<Launch>,
    pub steps: usize,
    /// Class members whose values are being worked out.
    pub(super) members: Vec<(String, Span, Name)>,
    /// Class templates instantiated so far.
    pub types: usize,
    /// Inline PTX accessed shared memory at an address that is not followed.
    pub has_unseen_shared: bool,
    /// Barriers and clobbers of memory so far, and the loops around them.
    pub fences: u32,
    pub fenced: FxHashSet<LoopId>,
    /// How deep the executor's own recursion is.
    pub depth: usize,
    pub step_limit: usize,
    pub dims: Dims,
    /// The dynamic shared memory of the launch about to be recorded.
    pub launch_shared: Option<ExprId>,
    /// Where the arguments of the call about to be bound stand.
    pub argument_spans: Vec<Span>,
    /// Macros whose expansion is being executed: a macro is not expanded in itself.
    pub expanding: Vec<Name>,
    /// Arguments of macros that stay syntax, by the names that stand for them.
    pub kept: FxHashMap<Name, Kept>,
    /// Conditions of branches so short that the compiler predicates them: all warps issue their accesses.
    pub predicated: Vec<ExprId>,
    /// Nothing of the kernel follows the statement being executed, but for further iterations of loops around it.
    pub at_end: bool,
    /// Functions of the host that were executed, by their names' places.
    pub entered: FxHashSet<Span>,
    /// Functions on the host side that lead to a launch.
    pub launching: std::sync::Arc<FxHashSet<Span>>,
    pub(super) journal: Vec<(SlotId, Val)>,
    pub(super) base_ids: FxHashMap<(Span, Name), u32>,
    /// Global variables of the host by the place of their name.
    pub(super) globals: FxHashMap<Span, SlotId>,
    pub(super) structs: FxHashMap<String, Rc<StructTy>>,
    pub(super) snippets: FxHashMap<(Name, String), Option<Rc<Expr>>>,
    /// Expressions that macros make other than they look, by place.
    pub(super) spliced: FxHashMap<Span, Option<Rc<Expr>>>,
    pub(super) bodies: FxHashMap<(Name, String), Option<Rc<Vec<Stmt>>>>,
    pub(super) constants: FxHashMap<(FileId, Name), Option<Val>>,
    pub(super) constants_open: Vec<(FileId, Name)>,
    pub(super) static_bases: FxHashMap<String, u32>,
}

/// What `blockIdx` and friends are in this run.
#[derive(Clone, Copy)]
pub struct Dims {
    pub block: [ExprId; 3],
    pub grid: [ExprId; 3],
}

impl<'p> Exec<'p> {
    pub fn new(project: &'p Project, sources: &'p Sources, tu: TranslationUnit, mode: Mode) -> Self {
        let mut arena = Arena::default();
        let alive = arena.constant(1);
        let dims = Dims::symbols(&mut arena);
        Exec {
            project,
            sources,
            tu,
            mode,
            arena,
            bases: Vec::new(),
            slots: Vec::new(),
            frames: Vec::new(),
            alive,
            loops: Vec::new(),
            probing: 0,
            accesses: Vec::new(),
            launches: Vec::new(),
            steps: 0,
            types: 0,
            has_unseen_shared: false,
            fences: 0,
            fenced: FxHashSet::default(),
            members: Vec::new(),
            depth: 0,
            step_limit: limits::HOST_STEPS,
            dims,
            launch_shared: None,
            argument_spans: Vec::new(),
            expanding: Vec::new(),
            kept: FxHashMap::default(),
            predicated: Vec::new(),
            at_end: false,
            entered: FxHashSet::default(),
            launching: Default::default(),
            journal: Vec::new(),
            base_ids: FxHashMap::default(),
            globals: FxHashMap::default(),
            structs: FxHashMap::default(),
            snippets: FxHashMap::default(),
            spliced: FxHashMap::default(),
            bodies: FxHashMap::default(),
            constants: FxHashMap::default(),
            constants_open: Vec::new(),
            static_bases: FxHashMap::default(),
        }
    }

    pub fn out_of_budget(&self) -> bool {
        self.steps >= self.step_limit || self.depth >= limits::EXECUTOR_DEPTH
    }

    /// Runs `f` one level deeper; `None` where that is too deep for the stack.
    pub fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth >= limits::EXECUTOR_DEPTH {
            return None;
        }
        self.depth += 1;
        let out = f(self);
        self.depth -= 1;
        Some(out)
    }

    pub fn env(&self) -> Rc<TemplateEnv> {
        self.frames.last().map(|frame| frame.env.clone()).unwrap_or_default()
    }

    // Variables.

    pub fn lookup(&self, name: Name) -> Option<SlotId> {
        self.frames.last()?.scopes.iter().rev().find_map(|scope| scope.get(&name).copied())
    }

    pub fn declare(&mut self, name: Name, ty: Ty, value: Val, is_reference: bool) -> SlotId {
        let id = SlotId(self.slots.len() as u32);
        self.slots.push(Slot { name, ty, value, is_reference });
        if let Some(scope) = self.frames.last_mut().and_then(|frame| frame.scopes.last_mut()) {
            scope.insert(name, id);
        }
        id
    }

    pub fn slot(&self, id: SlotId) -> &Slot {
        &self.slots[id.0 as usize]
    }

    pub fn set_slot(&mut self, id: SlotId, value: Val) {
        let slot = &mut self.slots[id.0 as usize];
        let old = std::mem::replace(&mut slot.value, value);
        self.journal.push((id, old));
    }

    /// Undoes the journal down to `mark`; what the slots held is returned.
    pub(super) fn roll_back(&mut self, mark: usize) -> FxHashMap<SlotId, Val> {
        let mut changed = FxHashMap::default();
        for (id, old) in self.journal.drain(mark..).rev() {
            let current = std::mem::replace(&mut self.slots[id.0 as usize].value, old);
            changed.entry(id).or_insert(current);
        }
        changed
    }

    pub fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        if let Some(frame) = self.frames.last_mut() {
            frame.scopes.push(Scope::default());
        }
        let out = f(self);
        if let Some(frame) = self.frames.last_mut() {
            frame.scopes.pop();
        }
        out
    }

    // Statements.

    pub fn block(&mut self, body: &[Stmt]) {
        self.scoped(|exec| exec.statements(body));
    }

    pub fn statements(&mut self, body: &[Stmt]) {
        let at_end = self.at_end;
        let is_last = |stmt: &Stmt| !matches!(stmt.kind, StmtKind::Empty | StmtKind::Return(None));
        let last = body.iter().rposition(is_last).unwrap_or(0);
        for (place, stmt) in body.iter().enumerate() {
            if self.arena.as_const(self.alive) == Some(0) {
                break;
            }
            self.at_end = at_end && place >= last;
            self.statement(stmt);
        }
        self.at_end = at_end;
    }

    pub fn statement(&mut self, stmt: &Stmt) {
        self.steps += 1;
        if self.out_of_budget() {
            return;
        }
        self.deeper(|exec| exec.statement_of(stmt));
    }

    fn statement_of(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Empty
            | StmtKind::Jump
            | StmtKind::Unknown(_)
            | StmtKind::Alias(_)
            | StmtKind::Struct(_)
            | StmtKind::Enum(_) => self.local_definition(stmt),
            StmtKind::Decl(vars) => vars.iter().for_each(|var| self.declaration(var)),
            StmtKind::Expr(expr) => {
                self.discard(expr);
            }
            StmtKind::Block(body) => self.block(body),
            StmtKind::If { is_constexpr: _, init, cond, then, otherwise } => self.scoped(|exec| {
                if let Some(init) = init {
                    exec.statement(init);
                }
                let cond = exec.condition(cond);
                let (first, depth) = (exec.accesses.len(), exec.predicated.len());
                // Behind a branch at the kernel's end there is nothing to reach: the warp leaves.
                let at_end = exec.at_end && exec.loops.is_empty();
                let short = otherwise.is_none() && !at_end && is_predicated(then);
                if short {
                    exec.predicated.extend(exec.arena.conjuncts(cond));
                }
                exec.branch(
                    cond,
                    |exec| exec.nested(then),
                    |exec| {
                        if let Some(otherwise) = otherwise {
                            exec.nested(otherwise);
                        }
                    },
                );
                if short {
                    exec.keep_predicated(first, depth);
                }
                exec.predicated.truncate(depth);
            }),
            StmtKind::For { init, cond, step, body } => self.scoped(|exec| {
                if let Some(init) = init {
                    exec.statement(init);
                }
                let (of, by) = (cond.as_ref(), step.as_ref());
                if !exec.unroll(of, by, body) && !exec.run_once(of, by, body) {
                    exec.run_loop(cond.as_ref(), step.as_ref(), body, false);
                }
            }),
            StmtKind::RangeFor { var, range, body } => self.range_for(var, range, body),
            StmtKind::While { cond, body } => self.run_loop(Some(cond), None, body, false),
            StmtKind::DoWhile { body, cond } => self.run_loop(Some(cond), None, body, true),
            StmtKind::Return(value) => self.return_statement(value.as_ref()),
            StmtKind::Break => self.leave(false),
            StmtKind::Continue => self.leave(true),
            StmtKind::Switch { cond, cases } => self.switch(cond, cases),
            StmtKind::LoopMacro { name, args, body } => self.loop_macro(*name, args, body, stmt.span),
            StmtKind::BlockMacro { name, args, body } => {
                self.block_macro(*name, args.len(), body, stmt.span);
            }
            StmtKind::Macro { name, args } => self.statement_macro(*name, args.as_deref(), stmt.span),
            StmtKind::Alternatives(branches) => {
                if let Some(first) = branches.first() {
                    self.statements(first);
                }
            }
            StmtKind::Asm(asm) => self.inline_asm(asm, stmt.span),
        }
    }

    /// A barrier, or a clobber of memory: the compiler moves no access to memory across it.
    pub fn fence(&mut self) {
        self.fences += 1;
        self.fenced.extend(self.loops.iter().copied());
    }

    /// A branch that touches global memory is a branch, but for a lone store; one within shared memory is predicated
    /// (measured on reductions of both kinds).
    fn keep_predicated(&mut self, first: usize, depth: usize) {
        let Some(inside) = self.accesses.get_mut(first..) else { return };
        let lone_store = matches!(inside, [only] if only.operation == Operation::Store);
        if lone_store || inside.iter().all(|access| access.space == MemorySpace::Shared) {
            return;
        }
        inside.iter_mut().for_each(|access| access.predicated.truncate(depth));
    }

    fn nested(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Block(body) => self.block(body),
            _ => self.scoped(|exec| exec.statement(stmt)),
        }
    }

    pub fn body(&mut self, stmt: &Stmt) {
        self.nested(stmt);
    }

    fn local_definition(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Alias(alias) if alias.template.is_empty() => {
                let ty = self.ty(&alias.ty);
                self.bind_template(alias.name, TemplateValue::Type(ty));
            }
            StmtKind::Struct(def) => {
                let ty = self.instantiate(def, self.file(), &[], self.env());
                self.bind_template(def.name, TemplateValue::Type(ty));
            }
            StmtKind::Enum(def) => {
                for (place, (name, _)) in def.items.iter().enumerate() {
                    let value = self.enumerator_value(def, place);
                    self.declare(*name, Ty::INT, Val::Int(value, Ty::INT), false);
                }
            }
            _ => {}
        }
    }

    pub fn file(&self) -> FileId {
        self.frames.last().map_or(self.tu.root, |frame| frame.file)
    }

    /// A place in the current file for syntax that stands nowhere.
    pub fn nowhere(&self) -> Span {
        Span::new(self.project.file_of(self.file()), 0, 0)
    }

    /// Adds a name to the current function's template environment.
    fn bind_template(&mut self, name: Name, value: TemplateValue) {
        let Some(frame) = self.frames.last_mut() else { return };
        let mut env = (*frame.env).clone();
        env.args.insert(name, value);
        frame.env = Rc::new(env);
    }

    fn declaration(&mut self, var: &VarDecl) {
        if var.storage.shared {
            self.shared_declaration(var);
            return;
        }
        if let ast::Type::Reference { to, .. } = &var.ty {
            let init = match &var.init {
                Init::Assign(expr) => Some(&**expr),
                Init::Paren(args) | Init::Brace(args) => args.first(),
                Init::None => None,
            };
            let ty = self.ty(to);
            let place = init.map_or(Place::Value(Val::Void), |expr| self.place(expr));
            self.declare(var.name, ty, Val::Ref(Rc::new(place)), true);
            return;
        }
        let ty = self.ty(&var.ty);
        let value = self.initial(&ty, &var.init, var.name_span);
        let ty = if matches!(ty, Ty::Auto) { self.type_of(&value) } else { ty };
        let value = match value {
            Val::Ptr(mut pointer) if matches!(ty, Ty::Ptr(_)) => {
                if let Ty::Ptr(to) = &ty
                    && !matches!(**to, Ty::Auto | Ty::Void)
                {
                    pointer.to = (**to).clone();
                }
                Val::Ptr(pointer)
            }
            other => other,
        };
        self.declare(var.name, ty, value, false);
    }

    fn shared_declaration(&mut self, var: &VarDecl) {
        let ty = self.ty(&var.ty);
        let base = self.base_of(var, &ty, MemorySpace::Shared);
        let zero = self.arena.constant(0);
        let pointer = super::value::Pointer { base, offset: zero, to: ty.clone() };
        let place = Place::Memory { pointer, aggregate: None };
        self.declare(var.name, ty, Val::Ref(Rc::new(place)), true);
    }

    /// The base of a declared array or variable in device memory; one per declaration.
    pub fn base_of(&mut self, var: &VarDecl, ty: &Ty, space: MemorySpace) -> u32 {
        // All `extern __shared__` arrays of a kernel are one piece of memory, but they are named as written.
        if let Some(&id) = self.base_ids.get(&(var.name_span, var.name)) {
            return id;
        }
        let mut extents = Vec::new();
        let mut element = ty.clone();
        while let Ty::Array(of, extent) = element {
            extents.extend(extent);
            element = (*of).clone();
        }
        let id = self.bases.len() as u32;
        self.bases.push(Base {
            name: var.name.to_string(),
            space,
            span: Some(var.span),
            param: None,
            is_allocation: true,
            is_contiguous_tensor: false,
            extents,
            element,
        });
        self.base_ids.insert((var.name_span, var.name), id);
        id
    }

    fn initial(&mut self, ty: &Ty, init: &Init, at: Span) -> Val {
        match init {
            Init::None => self.uninitialized(ty),
            Init::Assign(expr) => match &expr.kind {
                ast::ExprKind::InitList(items) => {
                    let items: Vec<_> = items.iter().map(|(name, expr)| (*name, expr)).collect();
                    self.aggregate(ty, &items)
                }
                _ => {
                    let value = self.value(expr);
                    self.convert(value, ty)
                }
            },
            Init::Paren(args) | Init::Brace(args) => self.construct(ty, args, at),
        }
    }

    /// `{a, b}` for a type.
    pub fn aggregate(&mut self, ty: &Ty, items: &[(Option<Name>, &Expr)]) -> Val {
        match ty {
            Ty::Struct(of) => {
                let mut fields: Vec<Val> = of.fields.iter().map(|_| Val::Void).collect();
                for (place, (name, expr)) in items.iter().enumerate() {
                    let place = name.and_then(|name| of.field(name)).map_or(place, |(place, _)| place);
                    if let Some(field) = of.fields.get(place) {
                        let value = self.element_value(&field.ty, expr);
                        if let Some(slot) = fields.get_mut(place) {
                            *slot = value;
                        }
                    }
                }
                if of.fields.is_empty() {
                    return self.opaque_of(ty, Vec::new());
                }
                Val::Obj(Rc::new(Obj { ty: of.clone(), fields, origin: None }))
            }
            Ty::Array(of, len) => {
                let rest = self.arena.constant(0);
                let len = match len {
                    Some(len) => *len,
                    None => self.arena.constant(items.len() as i64),
                };
                let mut array = ArrayVal {
                    of: (**of).clone(),
                    len: Some(len),
                    known: Default::default(),
                    rest,
                    origin: None,
                };
                for (place, (_, expr)) in items.iter().enumerate().take(limits::LOCAL_ELEMENTS) {
                    let value = self.element_value(of, expr);
                    array.known.insert(place as i64, value);
                }
                Val::Array(Rc::new(array))
            }
            _ => match items.first() {
                Some((_, expr)) => {
                    let value = self.value(expr);
                    self.convert(value, ty)
                }
                None => self.zero(ty),
            },
        }
    }

    fn element_value(&mut self, ty: &Ty, expr: &Expr) -> Val {
        match &expr.kind {
            ast::ExprKind::InitList(items) => {
                let items: Vec<_> = items.iter().map(|(name, expr)| (*name, expr)).collect();
                self.aggregate(ty, &items)
            }
            _ => {
                let value = self.value(expr);
                self.convert(value, ty)
            }
        }
    }

    pub fn zero(&mut self, ty: &Ty) -> Val {
        let zero = self.arena.constant(0);
        match ty {
            Ty::Int { .. } | Ty::Bool => Val::Int(zero, ty.clone()),
            Ty::Float(kind) => Val::Float(Some(0.0), zero, *kind),
            _ => self.uninitialized(ty),
        }
    }

    pub fn uninitialized(&mut self, ty: &Ty) -> Val {
        match ty {
            Ty::Struct(of) if !of.fields.is_empty() => {
                let of = of.clone();
                let fields = of.fields.iter().map(|field| self.uninitialized(&field.ty)).collect();
                Val::Obj(Rc::new(Obj { ty: of, fields, origin: None }))
            }
            Ty::Array(of, len) => {
                let rest = self.arena.constant(0);
                Val::Array(Rc::new(ArrayVal {
                    of: (**of).clone(),
                    len: *len,
                    known: Default::default(),
                    rest,
                    origin: None,
                }))
            }
            _ => Val::Void,
        }
    }

    // Control flow.

    /// Runs both sides and merges what they leave.
    pub fn branch(&mut self, cond: ExprId, then: impl FnOnce(&mut Self), otherwise: impl FnOnce(&mut Self)) {
        match self.arena.as_const(cond) {
            Some(0) => return otherwise(self),
            Some(_) => return then(self),
            None => {}
        }
        let saved = self.alive;
        let mark = self.journal.len();
        let entered = self.arena.and(saved, cond);
        self.alive = entered;
        let leaving = self.leaving();
        then(self);
        let returned_then = self.leaving() == leaving;
        let alive_then = self.alive;
        let changed_then = self.roll_back(mark);
        let negated = self.arena.not(cond);
        let skipped = self.arena.and(saved, negated);
        self.alive = skipped;
        let leaving = self.leaving();
        otherwise(self);
        let returned_otherwise = self.leaving() == leaving;
        let alive_otherwise = self.alive;
        let changed_otherwise = self.roll_back(mark);
        self.alive = match (alive_then == entered, alive_otherwise == skipped) {
            (true, true) => saved,
            _ => self.arena.or(alive_then, alive_otherwise),
        };
        let gone_then = returned_then && self.arena.as_const(alive_then) == Some(0);
        let gone_otherwise = returned_otherwise && self.arena.as_const(alive_otherwise) == Some(0);
        let result = self.frames.last().map(|frame| frame.result);
        let mut ids: Vec<SlotId> = changed_then.keys().chain(changed_otherwise.keys()).copied().collect();
        ids.sort();
        ids.dedup();
        for id in ids {
            let old = self.slot(id).value.clone();
            let a = changed_then.get(&id).cloned().unwrap_or_else(|| old.clone());
            let b = changed_otherwise.get(&id).cloned().unwrap_or(old);
            // A side that left the function has no say in what follows but its result.
            let merged = match (gone_then, gone_otherwise) {
                _ if Some(id) == result => self.merge(cond, a, b),
                (true, false) => b,
                (false, true) => a,
                _ => self.merge(cond, a, b),
            };
            self.set_slot(id, merged);
        }
    }

    /// Where lanes have left the innermost loop or switch so far.
    fn leaving(&self) -> (Option<ExprId>, Option<ExprId>) {
        let innermost = self.frames.last().and_then(|frame| frame.leaving.last());
        innermost.map_or((None, None), |leaving| (leaving.continued, leaving.broken))
    }

    /// `cond ? a : b` for any two values.
    pub fn merge(&mut self, cond: ExprId, a: Val, b: Val) -> Val {
        match (a, b) {
            (Val::Void, other) | (other, Val::Void) => other,
            (Val::Int(x, tx), Val::Int(y, ty)) => {
                if let Some(chosen) = self.argument_over_default(x, y) {
                    return Val::Int(chosen, tx);
                }
                let ty = if tx.scalar_size() >= ty.scalar_size() { tx } else { ty };
                Val::Int(self.arena.select(cond, x, y), ty)
            }
            (Val::Float(x, ax, size), Val::Float(y, ay, other)) => {
                if x.is_some() && x == y {
                    return Val::Float(x, ax, size);
                }
                let atom = self.combine(&[cond, ax, ay]);
                Val::Float(None, atom, size.max(other))
            }
            (Val::Ptr(x), Val::Ptr(y)) => {
                let base = self.merge_bases(x.base, y.base);
                let offset = self.arena.select(cond, x.offset, y.offset);
                Val::Ptr(super::value::Pointer { base, offset, to: x.to })
            }
            (Val::Obj(x), Val::Obj(y)) if x.fields.len() == y.fields.len() => {
                let fields = x
                    .fields
                    .iter()
                    .zip(&y.fields)
                    .map(|(a, b)| self.merge(cond, a.clone(), b.clone()))
                    .collect();
                let origin = if x.origin == y.origin { x.origin } else { None };
                Val::Obj(Rc::new(Obj { ty: x.ty.clone(), fields, origin }))
            }
            (Val::Array(x), Val::Array(y)) => {
                let keys: Vec<i64> =
                    x.known.keys().filter(|key| y.known.contains_key(key)).copied().collect();
                let mut known = std::collections::BTreeMap::new();
                for key in keys {
                    if let (Some(a), Some(b)) = (x.known.get(&key), y.known.get(&key)) {
                        known.insert(key, self.merge(cond, a.clone(), b.clone()));
                    }
                }
                let rest = self.combine(&[cond, x.rest, y.rest]);
                Val::Array(Rc::new(ArrayVal { of: x.of.clone(), len: x.len, known, rest, origin: None }))
            }
            (Val::Ptr(pointer), _) | (_, Val::Ptr(pointer)) => Val::Ptr(pointer),
            (Val::Function(x), Val::Function(y)) => {
                let otherwise = self.arena.not(cond);
                let under = |functions: &[FunctionRef], cond: ExprId| -> Vec<FunctionRef> {
                    let when = |function: &FunctionRef| FunctionRef {
                        when: function.when.iter().copied().chain([cond]).collect(),
                        ..function.clone()
                    };
                    functions.iter().map(when).collect()
                };
                let (x, y) = (under(&x, cond), under(&y, otherwise));
                let mut names = x.clone();
                names.extend(y.iter().filter(|one| !x.iter().any(|known| known.is_same(one))).cloned());
                Val::Function(names.into())
            }
            (a @ (Val::Lambda(_) | Val::Function(_) | Val::Group(_) | Val::Ref(_)), _) => a,
            (a, b) => {
                let (x, y) = (self.atom(&a), self.atom(&b));
                let atom = self.arena.select(cond, x, y);
                match (&a, &b) {
                    (Val::Int(_, ty), _) | (_, Val::Int(_, ty)) => Val::Int(atom, ty.clone()),
                    (Val::Float(_, _, size), _) | (_, Val::Float(_, _, size)) => {
                        Val::Float(None, atom, *size)
                    }
                    _ => {
                        let ty = self.type_of(&a);
                        Val::Opaque(ty, atom)
                    }
                }
            }
        }
    }

    /// `argc > 1 ? atoi(argv[1]) : 1`: a default this small is a smoke test; the argument decides.
    fn argument_over_default(&self, x: ExprId, y: ExprId) -> Option<ExprId> {
        let is_argument = |id: ExprId| match self.arena.node(id) {
            crate::index::expr::Node::Symbol(crate::index::expr::Symbol::Unknown(index)) => {
                let unknown = self.arena.unknowns.get(*index as usize);
                unknown.is_some_and(|unknown| {
                    unknown.name.starts_with("ato") || unknown.name.starts_with("strto")
                })
            }
            _ => false,
        };
        let small = |id: ExprId| self.arena.as_const(id).is_some_and(|value| value < 8);
        match (is_argument(x) && small(y), is_argument(y) && small(x)) {
            (true, _) => Some(x),
            (_, true) => Some(y),
            _ => None,
        }
    }

    fn merge_bases(&mut self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        let (Some(x), Some(y)) = (self.bases.get(a as usize), self.bases.get(b as usize)) else { return a };
        let key = format!("{}|{}", x.name, y.name);
        if let Some(&id) = self.static_bases.get(&key) {
            return id;
        }
        // Swapping two buffers back and forth must not make ever longer names.
        if x.name.contains(&y.name) {
            return a;
        }
        if y.name.contains(&x.name) {
            return b;
        }
        let merged = Base {
            name: key.clone(),
            is_allocation: x.is_allocation && y.is_allocation,
            is_contiguous_tensor: false,
            space: x.space.min(y.space),
            ..x.clone()
        };
        self.bases.push(merged);
        let id = self.bases.len() as u32 - 1;
        self.static_bases.insert(key, id);
        id
    }

    /// The cases of a switch, those that macros stand for (`DISPATCH_CASE(8)`) among them.
    fn expand_cases(&mut self, cases: &[ast::Case]) -> Vec<ast::Case> {
        let mut out = Vec::new();
        for case in cases {
            let mut open = ast::Case { value: case.value.clone(), body: Vec::new() };
            for stmt in &case.body {
                match self.cases_of_macro(stmt) {
                    Some(mut inner) => {
                        let last = inner.pop();
                        out.push(open);
                        out.append(&mut inner);
                        open = last.unwrap_or(ast::Case { value: None, body: Vec::new() });
                    }
                    None => open.body.push(stmt.clone()),
                }
            }
            out.push(open);
        }
        // What stands for nothing but macros that were cases.
        out.retain(|case| case.value.is_some() || !case.body.is_empty());
        out
    }

    /// `case 8: { … }` from a macro that is a statement of its own.
    fn cases_of_macro(&mut self, stmt: &Stmt) -> Option<Vec<ast::Case>> {
        let StmtKind::Macro { name, args } = &stmt.kind else { return None };
        let text = self.expand_macro(*name, args.as_deref(), stmt.span)?;
        let text = text.trim_start();
        if !text.starts_with("case") && !text.starts_with("default") {
            return None;
        }
        let whole = crate::syntax::parse_stmts(&format!("switch (0) {{ {text} }}"), stmt.span)?;
        match whole.into_iter().next().map(|stmt| stmt.kind) {
            Some(StmtKind::Switch { cases, .. }) if !cases.is_empty() => Some(cases),
            _ => None,
        }
    }

    fn switch(&mut self, cond: &Expr, cases: &[ast::Case]) {
        let has_macro =
            |case: &ast::Case| case.body.iter().any(|stmt| matches!(stmt.kind, StmtKind::Macro { .. }));
        if cases.iter().any(has_macro) {
            let cases = self.expand_cases(cases);
            return self.switch_over(cond, &cases);
        }
        self.switch_over(cond, cases);
    }

    fn switch_over(&mut self, cond: &Expr, cases: &[ast::Case]) {
        let value = self.value(cond);
        let subject = self.atom(&value);
        let mut none = self.arena.constant(1);
        let tests: Vec<Option<ExprId>> = cases
            .iter()
            .map(|case| {
                let value = self.value(case.value.as_ref()?);
                let label = self.atom(&value);
                let test = self.arena.binary(crate::index::expr::Op::Eq, false, subject, label);
                let differs = self.arena.not(test);
                none = self.arena.and(none, differs);
                Some(test)
            })
            .collect();
        let never = self.arena.constant(0);
        let mut falling = never;
        self.with_breaks(|exec| {
            for (case, test) in cases.iter().zip(tests) {
                let entered = exec.arena.or(test.unwrap_or(none), falling);
                let mut falls = never;
                exec.branch(
                    entered,
                    |exec| {
                        let start = exec.alive;
                        exec.scoped(|exec| exec.statements(&case.body));
                        falls = if exec.alive == start { entered } else { never };
                    },
                    |_| {},
                );
                falling = falls;
            }
        });
    }

    fn return_statement(&mut self, value: Option<&Expr>) {
        let is_number = self
            .frames
            .last()
            .is_some_and(|frame| matches!(frame.ret, Ty::Int { .. } | Ty::Float(_) | Ty::Bool | Ty::Ptr(_)));
        // A number is read where it is returned; a getter is read where it is called, as nvcc's line table has it (measured).
        let is_read_here =
            |expr: &Expr| is_number && !matches!(expr.kind, ExprKind::Name(_) | ExprKind::Field { .. });
        let value =
            value.map(|expr| if is_read_here(expr) { self.value(expr) } else { self.value_or_place(expr) });
        let alive = self.alive;
        let zero = self.arena.constant(0);
        let open = self.loops.len();
        if let Some(frame) = self.frames.last_mut() {
            frame.returned_in_loop |= open > frame.outer_loops;
            let slot = frame.result;
            if let Some(value) = value {
                let ty = frame.ret.clone();
                let value =
                    if matches!(ty, Ty::Auto | Ty::Ref(_)) { value } else { self.convert(value, &ty) };
                let old = self.slot(slot).value.clone();
                let merged = match old {
                    Val::Void => value,
                    old => self.merge(alive, value, old),
                };
                self.set_slot(slot, merged);
            }
        }
        self.alive = zero;
    }

    // Declarations of this kind also come from macros.

    /// The statements that a macro stands for; parsed once per spelling and place.
    pub fn macro_body(&mut self, name: Name, args: Option<&[String]>, at: Span) -> Option<Rc<Vec<Stmt>>> {
        let key = (name, format!("{}:{}", args.map_or_else(String::new, |args| args.join(",")), at.start));
        if let Some(known) = self.bodies.get(&key) {
            return known.clone();
        }
        let text = self.expand_macro(name, args, at).filter(|text| !text.trim().is_empty());
        let body = text.and_then(|text| crate::syntax::parse_stmts(&text, at)).map(Rc::new);
        self.bodies.insert(key, body.clone());
        body
    }

    fn statement_macro(&mut self, name: Name, args: Option<&[String]>, at: Span) {
        if let Some(body) = self.macro_body(name, args, at) {
            // The definitions belong to the surrounding block.
            self.statements(&body);
        }
    }
}

impl Dims {
    pub fn symbols(arena: &mut Arena) -> Dims {
        use crate::index::expr::{Axis, Symbol};
        Dims {
            block: Axis::ALL.map(|axis| arena.symbol(Symbol::BlockDim(axis))),
            grid: Axis::ALL.map(|axis| arena.symbol(Symbol::GridDim(axis))),
        }
    }
}

/// Is the branch so short that nvcc predicates it: up to four plain assignments, no loop or return, no division but by a
/// literal (it becomes a call), and no call but of what becomes an instruction or two?
fn is_predicated(stmt: &Stmt) -> bool {
    let one = std::slice::from_ref(stmt);
    let body = match &stmt.kind {
        StmtKind::Block(body) => body.as_slice(),
        _ => one,
    };
    if body.len() > 4 || !body.iter().all(|stmt| matches!(stmt.kind, StmtKind::Expr(_) | StmtKind::Empty)) {
        return false;
    }
    let (mut size, mut plain) = (0, true);
    crate::ir::walk::expressions(body, &mut |expr| {
        size += 1;
        plain &= match &expr.kind {
            ast::ExprKind::Call { callee, args } => match &callee.kind {
                ast::ExprKind::Name(path) => is_short(path.name.as_str()),
                // `block.thread_index()`
                ast::ExprKind::Field { .. } => args.is_empty(),
                _ => false,
            },
            ast::ExprKind::Lambda(_) | ast::ExprKind::Launch { .. } => false,
            ast::ExprKind::Binary(ast::BinaryOp::Div | ast::BinaryOp::Rem, _, b)
            | ast::ExprKind::Assign(Some(ast::BinaryOp::Div | ast::BinaryOp::Rem), _, b) => {
                matches!(b.kind, ast::ExprKind::Int { .. } | ast::ExprKind::Float { .. })
            }
            _ => true,
        };
    });
    plain && size <= 40
}

/// Functions that are an instruction or two, and functors such as `op(a, b)`.
fn is_short(name: &str) -> bool {
    const SHORT: &[&str] = &[
        "min",
        "max",
        "fmin",
        "fmax",
        "fminf",
        "fmaxf",
        "abs",
        "fabs",
        "fabsf",
        "fma",
        "fmaf",
        "op",
        "umin",
        "umax",
        "__hadd",
        "__hmul",
        "make_float2",
        "make_float3",
        "make_float4",
        "make_double2",
        "make_double3",
        "make_double4",
        "make_int2",
        "make_int4",
        "make_uint2",
        "make_uint4",
        "__hmax",
        "__hmin",
        "__hfma",
        "__fmaf_rn",
        "__fadd_rn",
        "__fmul_rn",
        "int",
        "float",
        "double",
    ];
    SHORT.contains(&name)
}
