//! Expressions: from syntax to values.

use std::rc::Rc;

use super::exec::{Exec, Mode};
use super::types::{FloatKind, StructTy, TemplateValue, Ty};
use super::value::{ArrayVal, Closure, Obj, Place, Pointer, SlotId, Val};
use crate::index::expr::{Axis, ExprId, Node, Op, Symbol, Unknown};
use crate::ir::ast::{self, BinaryOp, CastStyle, Expr, ExprKind, Init, Name, Path, StructDef, UnaryOp};
use crate::source::Span;

impl Exec<'_> {
    /// Executes an expression whose value nobody reads.
    pub fn discard(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Unary(UnaryOp::PostInc, operand) => self.step(operand, 1, false, expr.span),
            ExprKind::Unary(UnaryOp::PostDec, operand) => self.step(operand, -1, false, expr.span),
            ExprKind::Call { callee, args } => self.call(expr, callee, args, true),
            // `T;` where T is a macro with declarations.
            ExprKind::Name(path) if self.is_statement_macro(path) => {
                if let Some(body) = self.macro_body(path.name, None, expr.span) {
                    self.statements(&body);
                }
                Val::Void
            }
            _ => self.value(expr),
        };
    }

    fn is_statement_macro(&self, path: &Path) -> bool {
        path.as_simple().is_some_and(|name| {
            self.lookup(name).is_none()
                && self
                    .project
                    .macro_at(&self.tu, name, self.file(), u32::MAX)
                    .is_some_and(|found| found.params.is_none())
        })
    }

    /// The truth of an expression, 0 or 1.
    pub fn condition(&mut self, expr: &Expr) -> ExprId {
        if let ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) = &expr.kind {
            return self.short_circuit(*op, a, b);
        }
        let value = self.value(expr);
        self.truth(&value)
    }

    fn short_circuit(&mut self, op: BinaryOp, a: &Expr, b: &Expr) -> ExprId {
        let first = self.condition(a);
        let (zero, one) = (self.arena.constant(0), self.arena.constant(1));
        let mut second = if op == BinaryOp::And { zero } else { one };
        let guard = if op == BinaryOp::And { first } else { self.arena.not(first) };
        self.branch(guard, |exec| second = exec.condition(b), |_| {});
        if op == BinaryOp::And { self.arena.and(first, second) } else { self.arena.or(first, second) }
    }

    pub fn truth(&mut self, value: &Val) -> ExprId {
        match value {
            Val::Int(expr, _) => self.arena.truth(*expr),
            Val::Float(Some(known), ..) => self.arena.constant(i64::from(*known != 0.0)),
            Val::Float(None, atom, _) | Val::Opaque(_, atom) => {
                if self.arena.as_const(*atom).is_some() {
                    let opaque = self.arena.opaque(Vec::new());
                    return self.arena.truth(opaque);
                }
                let opaque = self.data(*atom);
                self.arena.truth(opaque)
            }
            // A pointer is taken to be set.
            Val::Ptr(_) | Val::Ref(_) | Val::Lambda(_) | Val::Function(_) | Val::Group(_) => {
                self.arena.constant(1)
            }
            Val::Obj(_) | Val::Array(_) | Val::Void => {
                let atom = self.atom(value);
                let opaque = self.arena.opaque(vec![atom]);
                self.arena.truth(opaque)
            }
        }
    }

    /// Marks a value as data where it is not already.
    fn data(&mut self, atom: ExprId) -> ExprId {
        match self.arena.node(atom) {
            Node::Load { .. } | Node::Opaque { .. } => atom,
            _ => self.arena.opaque(vec![atom]),
        }
    }

    /// What a value depends on, as an integer expression: its value where it is an integer.
    pub fn atom(&mut self, value: &Val) -> ExprId {
        match value {
            Val::Int(expr, _) | Val::Opaque(_, expr) => *expr,
            Val::Float(Some(known), ..) if known.fract() == 0.0 && known.abs() < 1e15 => {
                self.arena.constant(*known as i64)
            }
            Val::Float(_, atom, _) => *atom,
            Val::Ptr(pointer) => pointer.offset,
            Val::Obj(obj) => {
                let fields: Vec<ExprId> = obj.fields.iter().take(8).map(|field| self.atom(field)).collect();
                self.combine(&fields)
            }
            Val::Array(array) => array.rest,
            Val::Ref(place) => match &**place {
                Place::Slot { slot, path } => {
                    let value = self.read_slot(*slot, path);
                    if matches!(value, Val::Ref(_)) { self.arena.constant(0) } else { self.atom(&value) }
                }
                Place::Memory { pointer, .. } => pointer.offset,
                Place::Value(value) => self.atom(value),
            },
            Val::Lambda(_) | Val::Function(_) | Val::Group(_) | Val::Void => self.arena.constant(0),
        }
    }

    /// One opaque value that depends on all of these; the value itself where only one is not constant.
    pub fn combine(&mut self, parts: &[ExprId]) -> ExprId {
        let mut inputs: Vec<ExprId> = Vec::new();
        for &part in parts {
            match self.arena.node(part) {
                Node::Const(_) => {}
                Node::Opaque { inputs: inner, .. } if inner.len() < 6 && !inner.is_empty() => {
                    inputs.extend(inner.iter())
                }
                _ => inputs.push(part),
            }
        }
        inputs.sort();
        inputs.dedup();
        match inputs.as_slice() {
            [] => self.arena.constant(0),
            [one] => *one,
            _ => self.arena.opaque(inputs),
        }
    }

    /// What a value depends on of which nothing is known: in device code it may differ between lanes.
    pub fn anything(&mut self) -> Vec<ExprId> {
        if self.mode == Mode::Device { vec![self.linear_thread()] } else { Vec::new() }
    }

    pub fn opaque_of(&mut self, ty: &Ty, inputs: Vec<ExprId>) -> Val {
        let atom = self.arena.opaque(inputs);
        match ty {
            Ty::Int { .. } | Ty::Bool => Val::Int(atom, ty.clone()),
            Ty::Float(kind) => Val::Float(None, atom, *kind),
            Ty::Struct(of) if !of.fields.is_empty() => {
                let of = of.clone();
                let fields = of.fields.iter().map(|field| self.opaque_of(&field.ty, vec![atom])).collect();
                Val::Obj(Rc::new(Obj { ty: of, fields, origin: None }))
            }
            _ => Val::Opaque(ty.clone(), atom),
        }
    }

    pub fn type_of(&mut self, value: &Val) -> Ty {
        match value {
            Val::Int(_, ty) | Val::Opaque(ty, _) => ty.clone(),
            Val::Float(_, _, kind) => Ty::Float(*kind),
            Val::Ptr(pointer) => Ty::Ptr(Rc::new(pointer.to.clone())),
            Val::Obj(obj) => Ty::Struct(obj.ty.clone()),
            Val::Array(array) => Ty::Array(Rc::new(array.of.clone()), array.len),
            Val::Ref(place) => self.type_of_place(&place.clone()),
            Val::Lambda(_) | Val::Function(_) | Val::Group(_) | Val::Void => Ty::Auto,
        }
    }

    pub fn value(&mut self, expr: &Expr) -> Val {
        self.steps += 1;
        match self.deeper(|exec| exec.value_of(expr)) {
            Some(value) => value,
            None => self.opaque_of(&Ty::Unknown("nested too deeply"), Vec::new()),
        }
    }

    fn value_of(&mut self, expr: &Expr) -> Val {
        match &expr.kind {
            ExprKind::Name(_) | ExprKind::Call { .. } | ExprKind::This => {
                let value = self.value_or_place(expr);
                self.rvalue(value, expr.span)
            }
            ExprKind::Index(..) | ExprKind::Field { .. } | ExprKind::Unary(UnaryOp::Deref, _) => {
                let place = self.place(expr);
                self.read_rvalue(&place, expr.span)
            }
            ExprKind::Int { value, unsigned, long } => {
                let size = if *long || *value > u64::from(u32::MAX) { 8 } else { 4 };
                Val::Int(self.arena.constant(*value as i64), Ty::Int { size, signed: !unsigned })
            }
            ExprKind::Float { value, double } => {
                let zero = self.arena.constant(0);
                Val::Float(Some(*value), zero, if *double { FloatKind::Double } else { FloatKind::Single })
            }
            ExprKind::Bool(value) => Val::Int(self.arena.constant(i64::from(*value)), Ty::Bool),
            ExprKind::Char(value) => Val::Int(self.arena.constant(*value), Ty::Int { size: 1, signed: true }),
            ExprKind::Str | ExprKind::Nullptr | ExprKind::New { .. } | ExprKind::Unknown(_) => {
                if let ExprKind::New { .. } = &expr.kind {
                    return self.opaque_of(&Ty::Unknown("host memory"), Vec::new());
                }
                if let ExprKind::Unknown(_) = &expr.kind {
                    let inputs = self.anything();
                    return self.opaque_of(&Ty::Unknown("syntax that is not understood"), inputs);
                }
                Val::Void
            }
            ExprKind::Unary(op, operand) => self.unary(*op, operand, expr.span),
            ExprKind::Binary(op, a, b) => match (self.respliced(expr), op) {
                (Some(spelt), _) => self.spliced_value(&spelt),
                (None, BinaryOp::And | BinaryOp::Or) => Val::Int(self.short_circuit(*op, a, b), Ty::Bool),
                (None, _) => {
                    let a = self.value(a);
                    let b = self.value(b);
                    self.binary(*op, a, b, expr.span)
                }
            },
            ExprKind::Assign(op, left, right) => self.assign(*op, left, right),
            ExprKind::Ternary(cond, a, b) => self.ternary(cond, a, b),
            ExprKind::Comma(list) => {
                let Some((last, first)) = list.split_last() else { return Val::Void };
                first.iter().for_each(|expr| self.discard(expr));
                self.value(last)
            }
            ExprKind::Launch { callee, config, args } => {
                self.launch(callee, config, args, expr.span);
                Val::Void
            }
            ExprKind::Cast { style, ty, operand } => self.cast(*style, ty, operand, expr.span),
            ExprKind::Construct { ty, args, .. } => {
                let ty = self.ty(ty);
                self.construct(&ty, args, expr.span)
            }
            ExprKind::InitList(items) => {
                let items: Vec<_> = items.iter().map(|(name, expr)| (*name, expr)).collect();
                match items.as_slice() {
                    [(None, only)] => self.value(only),
                    _ => {
                        let values: Vec<Val> = items.iter().map(|(_, expr)| self.value(expr)).collect();
                        let rest = self.arena.constant(0);
                        let len = Some(self.arena.constant(values.len() as i64));
                        let of = values.first().map_or(Ty::Auto, |value| self.type_of(&value.clone()));
                        let known =
                            values.into_iter().enumerate().map(|(i, value)| (i as i64, value)).collect();
                        Val::Array(Rc::new(super::value::ArrayVal { of, len, known, rest, origin: None }))
                    }
                }
            }
            // A bare name could be of a type or of a variable.
            ExprKind::SizeofType(ty) => match &**ty {
                ast::Type::Named(path)
                    if path.as_simple().is_some_and(|name| self.lookup(name).is_some()) =>
                {
                    self.size_of_operand(&Expr { span: expr.span, kind: ExprKind::Name(path.clone()) })
                }
                ty => {
                    let ty = self.ty(ty);
                    self.size_value(&ty)
                }
            },
            ExprKind::SizeofExpr(operand) => self.size_of_operand(operand),
            ExprKind::AlignofType(ty) => {
                let align = self.ty(ty).align();
                Val::Int(self.arena.constant(align), Ty::SIZE)
            }
            ExprKind::PackExpansion(pattern) => self.value(pattern),
            ExprKind::Lambda(lambda) => self.closure(lambda),
        }
    }

    fn closure(&mut self, lambda: &std::sync::Arc<ast::Lambda>) -> Val {
        let mut scopes = self.frames.last().map(|frame| frame.scopes.clone()).unwrap_or_default();
        let mut captured = super::value::Scope::default();
        for (name, expr) in &lambda.captures {
            let value = self.value(expr);
            let ty = self.type_of(&value);
            let slot = SlotId(self.slots.len() as u32);
            self.slots.push(super::value::Slot { name: *name, ty, value, is_reference: false });
            captured.insert(*name, slot);
        }
        scopes.push(captured);
        Val::Lambda(Rc::new(Closure { lambda: lambda.clone(), scopes, env: self.env() }))
    }

    fn size_of_operand(&mut self, operand: &Expr) -> Val {
        let ty = self.quietly(|exec| {
            let place = exec.place(operand);
            exec.type_of_place(&place)
        });
        self.size_value(&ty)
    }

    fn size_value(&mut self, ty: &Ty) -> Val {
        let size = match self.size_of(ty) {
            Some(size) => size,
            None => self.arena.opaque(Vec::new()),
        };
        Val::Int(size, Ty::SIZE)
    }

    fn rvalue(&mut self, value: Val, at: Span) -> Val {
        match value {
            Val::Ref(place) => self.read_rvalue(&place, at),
            value => value,
        }
    }

    fn read_rvalue(&mut self, place: &Place, at: Span) -> Val {
        // A local array decays to a pointer to it.
        if let Place::Slot { slot, path } = place
            && let Val::Array(_) = self.read_slot(*slot, path)
        {
            return Val::Ref(Rc::new(place.clone()));
        }
        self.read(place, at)
    }

    fn ternary(&mut self, cond: &Expr, a: &Expr, b: &Expr) -> Val {
        let cond = self.condition(cond);
        let (mut x, mut y) = (Val::Void, Val::Void);
        // The sides of `c ? s[i] : 0` are predicated.
        let depth = self.predicated.len();
        let negated = self.arena.not(cond);
        let (when, unless) = (self.arena.conjuncts(cond), self.arena.conjuncts(negated));
        self.branch(
            cond,
            |exec| {
                exec.predicated.extend(when);
                x = exec.value(a);
                exec.predicated.truncate(depth);
            },
            |exec| {
                exec.predicated.extend(unless);
                y = exec.value(b);
                exec.predicated.truncate(depth);
            },
        );
        match self.arena.as_const(cond) {
            Some(0) => y,
            Some(_) => x,
            None => self.merge(cond, x, y),
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr, at: Span) -> Val {
        match op {
            UnaryOp::Plus => self.value(operand),
            UnaryOp::Neg => match self.value(operand) {
                Val::Int(expr, ty) => {
                    let ty = promoted(&ty);
                    Val::Int(self.arena.scale(expr, -1), ty)
                }
                Val::Float(known, atom, size) => Val::Float(known.map(|known| -known), atom, size),
                other => self.unary_operator("operator-", other, at),
            },
            UnaryOp::Not => {
                let truth = self.condition(operand);
                Val::Int(self.arena.not(truth), Ty::Bool)
            }
            UnaryOp::BitNot => match self.value(operand) {
                Val::Int(expr, ty) => {
                    let negated = self.arena.scale(expr, -1);
                    let minus_one = self.arena.constant(-1);
                    let ty = promoted(&ty);
                    Val::Int(self.arena.add(negated, minus_one), ty)
                }
                other => self.unary_operator("operator~", other, at),
            },
            UnaryOp::AddrOf => {
                if let ExprKind::Name(path) = &operand.kind
                    && self.lookup(path.name).is_none()
                    && !self.project.functions(&self.tu, path.name).is_empty()
                {
                    return self.function_value(path);
                }
                match self.place(operand) {
                    Place::Memory { pointer, .. } => Val::Ptr(pointer),
                    place => Val::Ref(Rc::new(place)),
                }
            }
            UnaryOp::Deref => {
                let value = self.value(operand);
                let place = self.deref(value, at);
                self.read_rvalue(&place, at)
            }
            UnaryOp::PreInc => self.step(operand, 1, true, at),
            UnaryOp::PreDec => self.step(operand, -1, true, at),
            UnaryOp::PostInc => self.step(operand, 1, false, at),
            UnaryOp::PostDec => self.step(operand, -1, false, at),
        }
    }

    fn unary_operator(&mut self, name: &str, value: Val, at: Span) -> Val {
        if let Some(result) = self.call_operator(value.clone(), name, &[], at) {
            return self.rvalue(result, at);
        }
        let atom = self.atom(&value);
        let ty = self.type_of(&value);
        self.opaque_of(&ty, vec![atom])
    }

    /// `++x` and the like; the value before where `after` is false.
    fn step(&mut self, operand: &Expr, by: i64, after: bool, at: Span) -> Val {
        let place = self.place(operand);
        let old = self.read(&place, at);
        let by = Val::Int(self.arena.constant(by), Ty::INT);
        let new = self.binary(BinaryOp::Add, old.clone(), by, at);
        self.write(&place, new.clone(), at);
        if after { new } else { old }
    }

    fn assign(&mut self, op: Option<BinaryOp>, left: &Expr, right: &Expr) -> Val {
        let value = match &right.kind {
            ExprKind::InitList(items) => {
                let items: Vec<_> = items.iter().map(|(name, expr)| (*name, expr)).collect();
                let ty = self.quietly(|exec| {
                    let place = exec.place(left);
                    exec.type_of_place(&place)
                });
                self.aggregate(&ty, &items)
            }
            _ => self.value(right),
        };
        let place = self.place(left);
        let value = match op {
            None => value,
            Some(op) => {
                let old = self.read(&place, left.span);
                self.binary(op, old, value, left.span)
            }
        };
        self.write(&place, value.clone(), left.span);
        value
    }

    pub fn binary(&mut self, op: BinaryOp, a: Val, b: Val, at: Span) -> Val {
        match (&a, &b) {
            (Val::Ptr(pointer), Val::Int(index, _)) if matches!(op, BinaryOp::Add | BinaryOp::Sub) => {
                let index = if op == BinaryOp::Sub { self.arena.scale(*index, -1) } else { *index };
                let to = pointer.to.clone();
                Val::Ptr(self.offset_pointer(pointer.clone(), index, &to))
            }
            (Val::Int(index, _), Val::Ptr(pointer)) if op == BinaryOp::Add => {
                let to = pointer.to.clone();
                Val::Ptr(self.offset_pointer(pointer.clone(), *index, &to))
            }
            (Val::Ptr(x), Val::Ptr(y)) => self.pointer_pair(op, x, y),
            (Val::Ref(place), Val::Int(index, _)) if matches!(op, BinaryOp::Add | BinaryOp::Sub) => {
                self.local_pointer_step(place.clone(), *index, op == BinaryOp::Sub)
            }
            (Val::Ptr(_), Val::Void) | (Val::Void, Val::Ptr(_)) => {
                let differs = i64::from(op == BinaryOp::Ne);
                Val::Int(self.arena.constant(differs), Ty::Bool)
            }
            (Val::Int(x, tx), Val::Int(y, ty)) => self.integer(op, (*x, tx), (*y, ty)),
            (Val::Float(..), Val::Float(..) | Val::Int(..)) | (Val::Int(..), Val::Float(..)) => {
                self.floating(op, &a, &b)
            }
            (Val::Obj(_), _) | (_, Val::Obj(_)) => self.operator(op, a, b, at),
            _ => {
                let (x, y) = (self.atom(&a), self.atom(&b));
                let atom = self.combine(&[x, y]);
                match (is_comparison(op), &a, &b) {
                    (true, ..) => {
                        let data = self.data(atom);
                        Val::Int(data, Ty::Bool)
                    }
                    (false, Val::Int(_, ty), _) | (false, _, Val::Int(_, ty)) => {
                        let data = self.data(atom);
                        Val::Int(data, ty.clone())
                    }
                    _ => {
                        let ty = self.type_of(&a);
                        Val::Opaque(ty, atom)
                    }
                }
            }
        }
    }

    fn local_pointer_step(&mut self, place: Rc<Place>, index: ExprId, back: bool) -> Val {
        let index = if back { self.arena.scale(index, -1) } else { index };
        match &*place {
            Place::Slot { slot, path } => {
                use super::value::Step;
                let mut path = path.clone();
                match path.pop() {
                    Some(Step::Element(before)) => {
                        let sum = self.arena.add(before, index);
                        path.push(Step::Element(sum));
                    }
                    Some(other) => {
                        path.push(other);
                        path.push(Step::Element(index));
                    }
                    None => path.push(Step::Element(index)),
                }
                Val::Ref(Rc::new(Place::Slot { slot: *slot, path }))
            }
            other => Val::Ref(Rc::new(other.clone())),
        }
    }

    fn pointer_pair(&mut self, op: BinaryOp, x: &Pointer, y: &Pointer) -> Val {
        if x.base != y.base {
            let atom = self.arena.opaque(vec![x.offset, y.offset]);
            let ty = if is_comparison(op) { Ty::Bool } else { Ty::LONG };
            return Val::Int(atom, ty);
        }
        if op == BinaryOp::Sub {
            let bytes = self.arena.sub(x.offset, y.offset);
            let size = self.size_of(&x.to.clone());
            let count = match size {
                Some(size) => self.arena.binary(Op::Div, false, bytes, size),
                None => bytes,
            };
            return Val::Int(count, Ty::LONG);
        }
        self.integer(op, (x.offset, &Ty::LONG), (y.offset, &Ty::LONG))
    }

    fn integer(&mut self, op: BinaryOp, (x, tx): (ExprId, &Ty), (y, ty): (ExprId, &Ty)) -> Val {
        let result = common_type(tx, ty);
        let unsigned = matches!(result, Ty::Int { size: 4, signed: false });
        let arena = &mut self.arena;
        let value = match op {
            BinaryOp::Add => arena.add(x, y),
            BinaryOp::Sub => arena.sub(x, y),
            BinaryOp::Mul => {
                let product = arena.mul(x, y);
                // Hash-like arithmetic relies on wrapping; sizes do not reach this.
                let big =
                    |id: ExprId| arena.as_const(id).is_some_and(|value| value.unsigned_abs() >= 1 << 16);
                let wraps = big(x) ^ big(y);
                if wraps && matches!(result, Ty::Int { size: 4, .. }) && arena.as_const(product).is_none() {
                    arena.wrap(4, !unsigned, product)
                } else {
                    product
                }
            }
            BinaryOp::Div => arena.binary(Op::Div, unsigned, x, y),
            BinaryOp::Rem => arena.binary(Op::Rem, unsigned, x, y),
            BinaryOp::Shl => {
                let left = promoted(tx);
                let value = arena.binary(Op::Shl, false, x, y);
                let value = match (&left, arena.as_const(value)) {
                    (Ty::Int { size: 4, signed }, Some(_)) => arena.wrap(4, *signed, value),
                    _ => value,
                };
                return Val::Int(value, left);
            }
            BinaryOp::Shr => {
                let left = promoted(tx);
                let unsigned = matches!(left, Ty::Int { size: 4, signed: false });
                return Val::Int(self.arena.binary(Op::Shr, unsigned, x, y), left);
            }
            BinaryOp::BitAnd => arena.binary(Op::And, false, x, y),
            BinaryOp::BitOr => arena.binary(Op::Or, false, x, y),
            BinaryOp::BitXor => arena.binary(Op::Xor, false, x, y),
            BinaryOp::Eq => arena.binary(Op::Eq, unsigned, x, y),
            BinaryOp::Ne => arena.binary(Op::Ne, unsigned, x, y),
            BinaryOp::Lt => arena.binary(Op::Lt, unsigned, x, y),
            BinaryOp::Le => arena.binary(Op::Le, unsigned, x, y),
            BinaryOp::Gt => arena.binary(Op::Lt, unsigned, y, x),
            BinaryOp::Ge => arena.binary(Op::Le, unsigned, y, x),
            BinaryOp::And | BinaryOp::Or => {
                let (x, y) = (arena.truth(x), arena.truth(y));
                if op == BinaryOp::And { arena.and(x, y) } else { arena.or(x, y) }
            }
            BinaryOp::Other => arena.opaque(vec![x, y]),
        };
        let ty = if is_comparison(op) { Ty::Bool } else { result };
        Val::Int(value, ty)
    }

    fn floating(&mut self, op: BinaryOp, a: &Val, b: &Val) -> Val {
        let known = |exec: &Self, value: &Val| match value {
            Val::Float(known, ..) => *known,
            Val::Int(expr, _) => exec.arena.as_const(*expr).map(|value| value as f64),
            _ => None,
        };
        let size = |value: &Val| if let Val::Float(_, _, kind) = value { *kind } else { FloatKind::Single };
        let (x, y) = (known(self, a), known(self, b));
        if let (Some(x), Some(y)) = (x, y) {
            if is_comparison(op) {
                let truth = match op {
                    BinaryOp::Eq => x == y,
                    BinaryOp::Ne => x != y,
                    BinaryOp::Lt => x < y,
                    BinaryOp::Le => x <= y,
                    BinaryOp::Gt => x > y,
                    _ => x >= y,
                };
                return Val::Int(self.arena.constant(i64::from(truth)), Ty::Bool);
            }
            let result = match op {
                BinaryOp::Add => Some(x + y),
                BinaryOp::Sub => Some(x - y),
                BinaryOp::Mul => Some(x * y),
                BinaryOp::Div => Some(x / y),
                _ => None,
            };
            let zero = self.arena.constant(0);
            return Val::Float(result, zero, size(a).max(size(b)));
        }
        let (x, y) = (self.atom(a), self.atom(b));
        let atom = self.combine(&[x, y]);
        let atom = self.data(atom);
        if is_comparison(op) {
            return Val::Int(atom, Ty::Bool);
        }
        Val::Float(None, atom, size(a).max(size(b)))
    }

    fn operator(&mut self, op: BinaryOp, a: Val, b: Val, at: Span) -> Val {
        let name = match op {
            BinaryOp::Add => "operator+",
            BinaryOp::Sub => "operator-",
            BinaryOp::Mul => "operator*",
            BinaryOp::Div => "operator/",
            BinaryOp::Rem => "operator%",
            BinaryOp::Lt => "operator<",
            BinaryOp::Gt => "operator>",
            BinaryOp::Eq => "operator==",
            BinaryOp::Ne => "operator!=",
            BinaryOp::Shl => "operator<<",
            BinaryOp::Shr => "operator>>",
            _ => "operator?",
        };
        if let Some(result) = self.call_operator(a.clone(), name, std::slice::from_ref(&b), at) {
            return self.rvalue(result, at);
        }
        let atoms = [self.atom(&a), self.atom(&b)];
        self.mark_all_used(&a);
        self.mark_all_used(&b);
        if is_comparison(op) {
            return Val::Int(self.arena.opaque(atoms.to_vec()), Ty::Bool);
        }
        let ty = match &a {
            Val::Obj(_) => self.type_of(&a),
            _ => self.type_of(&b),
        };
        self.opaque_of(&ty, atoms.to_vec())
    }

    // Conversions.

    /// Is it a list in braces with a value for each field?
    fn is_list_for(&self, list: &ArrayVal, of: &StructTy) -> bool {
        list.origin.is_none()
            && list.known.len() == of.fields.len()
            && list.len.and_then(|len| self.arena.as_const(len)) == Some(of.fields.len() as i64)
    }

    pub fn convert(&mut self, value: Val, to: &Ty) -> Val {
        match (to, value) {
            // `cg::thread_block_tile<32> tile = …`: what a group is, its value says.
            (_, value @ Val::Group(_)) => value,
            (Ty::Bool, value @ (Val::Int(..) | Val::Float(..) | Val::Opaque(..))) => {
                Val::Int(self.truth(&value), Ty::Bool)
            }
            (Ty::Int { size, signed }, Val::Int(expr, from)) => {
                let narrower = from.scalar_size().is_some_and(|bytes| bytes > i64::from(*size));
                let sign_matters = *size < 4 && from.scalar_size() == Some(i64::from(*size));
                let expr = if (narrower && *size < 4) || sign_matters || self.arena.as_const(expr).is_some() {
                    self.arena.wrap(*size, *signed, expr)
                } else {
                    expr
                };
                Val::Int(expr, to.clone())
            }
            (Ty::Int { .. }, Val::Float(Some(known), ..)) => {
                Val::Int(self.arena.constant(known as i64), to.clone())
            }
            (Ty::Int { .. }, Val::Float(None, atom, _) | Val::Opaque(_, atom)) => {
                let data = self.data(atom);
                Val::Int(data, to.clone())
            }
            (Ty::Float(kind), Val::Int(expr, _)) => {
                Val::Float(self.arena.as_const(expr).map(|value| value as f64), expr, *kind)
            }
            (Ty::Float(kind), Val::Float(known, atom, _)) => Val::Float(known, atom, *kind),
            (Ty::Float(kind), Val::Opaque(_, atom)) => Val::Float(None, atom, *kind),
            (Ty::Ptr(to), Val::Ptr(pointer)) => {
                let keep = matches!(**to, Ty::Void | Ty::Auto | Ty::Unknown(_));
                let to = if keep { pointer.to.clone() } else { (**to).clone() };
                Val::Ptr(Pointer { to, ..pointer })
            }
            // `return {grid, block};`
            (Ty::Struct(of), Val::Array(list)) if self.is_list_for(&list, of) => {
                let fields = of.fields.iter().zip(list.known.values());
                let fields = fields.map(|(field, value)| self.convert(value.clone(), &field.ty)).collect();
                Val::Obj(Rc::new(Obj { ty: of.clone(), fields, origin: None }))
            }
            // `T *s = SharedMemory<T>();`
            (Ty::Ptr(_), Val::Obj(obj)) => match self.conversion(&obj) {
                Some(value @ Val::Ptr(_)) => self.convert(value, to),
                _ => Val::Obj(obj),
            },
            (Ty::Ptr(to), Val::Opaque(_, atom)) => {
                let base =
                    self.named_base(super::place::UNSEEN, crate::ir::facts::MemorySpace::Global, to, None);
                let offset =
                    if self.arena.as_const(atom).is_some() { atom } else { self.arena.scale(atom, 256) };
                Val::Ptr(Pointer { base, offset, to: (**to).clone() })
            }
            (Ty::Struct(of), Val::Int(expr, ty)) if of.is_vector && of.name == "dim3" => {
                self.dim3(vec![Val::Int(expr, ty)])
            }
            (Ty::Struct(of), value) if !matches!(&value, Val::Obj(obj) if obj.ty.name == of.name) => {
                match value {
                    Val::Obj(obj) if obj.fields.len() == of.fields.len() => {
                        Val::Obj(Rc::new(Obj { ty: of.clone(), ..(*obj).clone() }))
                    }
                    Val::Ref(place) => Val::Ref(place),
                    other => {
                        let atom = self.atom(&other);
                        self.opaque_of(to, vec![atom])
                    }
                }
            }
            (_, value) => value,
        }
    }

    fn cast(&mut self, style: CastStyle, ty: &ast::Type, operand: &Expr, at: Span) -> Val {
        if let ast::Type::Reference { .. } = ty {
            let place = self.place(&Expr {
                span: at,
                kind: ExprKind::Cast { style, ty: Box::new(ty.clone()), operand: Box::new(operand.clone()) },
            });
            return self.read_rvalue(&place, at);
        }
        let to = self.ty(ty);
        let value = self.value(operand);
        match (&to, value) {
            (Ty::Ptr(to), Val::Ptr(pointer)) => {
                let keep = matches!(**to, Ty::Void | Ty::Auto);
                let to = if keep { pointer.to.clone() } else { (**to).clone() };
                Val::Ptr(Pointer { to, ..pointer })
            }
            (Ty::Ptr(_), Val::Ref(place)) => match &*place {
                Place::Memory { pointer, .. } => self.convert(Val::Ptr(pointer.clone()), &to),
                _ => Val::Ref(place),
            },
            (Ty::Int { .. }, Val::Ptr(pointer)) => Val::Int(pointer.offset, to.clone()),
            (Ty::Void, _) => Val::Void,
            (_, value) => self.convert(value, &to),
        }
    }

    /// `T x(args)`, `T{args}`.
    pub fn construct(&mut self, ty: &Ty, args: &[Expr], at: Span) -> Val {
        match ty {
            Ty::Struct(of) if of.name == "dim3" => {
                let values = args.iter().map(|arg| self.value(arg)).collect();
                self.dim3(values)
            }
            Ty::Struct(of) => {
                let of = of.clone();
                let built = self.construct_accessor(&of, args, at);
                if let Some(value) = built.or_else(|| self.construct_object(&of, args, at)) {
                    return value;
                }
                if let [only] = args {
                    let value = self.value(only);
                    if let Val::Obj(obj) = &value
                        && obj.fields.len() == of.fields.len()
                    {
                        return value;
                    }
                    let is_scalar =
                        matches!(value, Val::Int(..) | Val::Float(..) | Val::Ptr(_) | Val::Lambda(_));
                    if is_scalar && is_aggregate(&of) {
                        return self.aggregate_of(&of, value);
                    }
                    let atom = self.atom(&value);
                    return self.opaque_of(ty, vec![atom]);
                }
                let items: Vec<_> = args.iter().map(|arg| (None, arg)).collect();
                match args {
                    [] if of.fields.is_empty() => {
                        Val::Obj(Rc::new(Obj { ty: of, fields: Vec::new(), origin: None }))
                    }
                    [] => self.uninitialized(ty),
                    _ => self.aggregate(ty, &items),
                }
            }
            Ty::Array(..) => {
                let items: Vec<_> = args.iter().map(|arg| (None, arg)).collect();
                self.aggregate(ty, &items)
            }
            _ => match args {
                [] => self.zero(ty),
                [only, ..] => {
                    let value = self.value(only);
                    self.convert(value, ty)
                }
            },
        }
    }

    /// `S{first}` of a class without constructors: the other members are zero.
    fn aggregate_of(&mut self, of: &Rc<StructTy>, first: Val) -> Val {
        let mut fields: Vec<Val> = of.fields.iter().map(|field| self.zero(&field.ty)).collect();
        if let (Some(slot), Some(field)) = (fields.first_mut(), of.fields.first()) {
            *slot = self.convert(first, &field.ty);
        }
        Val::Obj(Rc::new(Obj { ty: of.clone(), fields, origin: None }))
    }

    pub fn dim3(&mut self, values: Vec<Val>) -> Val {
        if let [Val::Obj(_)] = values.as_slice() {
            return values.into_iter().next().unwrap_or(Val::Void);
        }
        let Some(of) = super::types::vector_type("dim3") else { return Val::Void };
        let one = self.arena.constant(1);
        let mut fields: Vec<Val> = values
            .into_iter()
            .map(|value| {
                let value = self.convert(value, &Ty::UINT);
                match value {
                    Val::Int(..) => value,
                    other => Val::Int(self.atom(&other), Ty::UINT),
                }
            })
            .collect();
        fields.resize(3, Val::Int(one, Ty::UINT));
        Val::Obj(Rc::new(Obj { ty: Rc::new(of), fields, origin: None }))
    }

    // Names.

    /// A name's value; a place for variables, so that callers can write or take addresses.
    pub fn value_or_place(&mut self, expr: &Expr) -> Val {
        match &expr.kind {
            ExprKind::Name(path) => self.name(path, expr.span),
            ExprKind::This => match self.frames.last().and_then(|frame| frame.this.clone()) {
                Some(place) => Val::Ref(place),
                None => Val::Void,
            },
            ExprKind::Call { callee, args } => self.call(expr, callee, args, false),
            ExprKind::Index(..)
            | ExprKind::Field { .. }
            | ExprKind::Unary(UnaryOp::Deref | UnaryOp::PreInc | UnaryOp::PreDec, _)
            | ExprKind::Assign(..) => match self.place(expr) {
                Place::Value(value) => value,
                place => Val::Ref(Rc::new(place)),
            },
            _ => self.value(expr),
        }
    }

    fn name(&mut self, path: &Path, at: Span) -> Val {
        let simple = path.scope.is_empty();
        if let Some(value) = self.kept_value(path) {
            return value;
        }
        if simple && let Some(slot) = self.lookup(path.name) {
            return match (&self.slot(slot).value, self.slot(slot).is_reference) {
                (Val::Ref(place), true) => Val::Ref(place.clone()),
                _ => Val::Ref(Rc::new(Place::Slot { slot, path: Vec::new() })),
            };
        }
        if simple && let Some(value) = self.builtin_variable(path.name) {
            return value;
        }
        if simple && let Some(found) = self.env().get(path.name) {
            return match found {
                TemplateValue::Value(value) => value.clone(),
                TemplateValue::Type(_) => Val::Void,
            };
        }
        if simple && let Some(this) = self.frames.last().and_then(|frame| frame.this.clone()) {
            let place = self.member_if_any(&this, path.name);
            if let Some(place) = place {
                return match place {
                    Place::Value(value) => value,
                    place => Val::Ref(Rc::new(place)),
                };
            }
        }
        if let Some(value) = self.type_trait(path) {
            return value;
        }
        if !simple && let Some(value) = self.scoped_name(path) {
            return value;
        }
        if simple && let Some(value) = self.macro_value(path.name, at) {
            return value;
        }
        self.global_name(path)
    }

    fn member_if_any(&mut self, this: &Rc<Place>, name: Name) -> Option<Place> {
        let Ty::Struct(of) = self.type_of_place(this) else { return None };
        let known = of.field(name).is_some()
            || of.fields.iter().any(|field| field.name.as_str().is_empty())
            || self.static_member(&of, name).is_some();
        if !known {
            return None;
        }
        let place = self.member(Val::Ref(this.clone()), name);
        match &place {
            Place::Value(Val::Opaque(Ty::Unknown(_), _)) => None,
            _ => Some(place),
        }
    }

    /// `S::N`, `Enum::Item`, `ns::x`.
    fn scoped_name(&mut self, path: &Path) -> Option<Val> {
        let owner = path.scope.last()?;
        let owner_path = Path {
            scope: path.scope[..path.scope.len() - 1].to_vec(),
            name: owner.name,
            args: owner.args.clone(),
        };
        let Ty::Struct(of) = self.named_type(&owner_path) else { return None };
        if let Some(value) = self.static_member(&of, path.name) {
            return Some(value);
        }
        // An enumerator of that name belongs to another class.
        self.project.enumerator(&self.tu, path.name)?;
        let value = self.named_unknown(&format!("{}::{}", of.name, path.name));
        Some(Val::Int(value, Ty::INT))
    }

    fn global_name(&mut self, path: &Path) -> Val {
        let name = path.name;
        if let Some(entry) = self.project.enumerator(&self.tu, name) {
            let (def, place) = (entry.item.0.clone(), entry.item.1);
            let value = self.enumerator_value(&def, place);
            return Val::Int(value, Ty::INT);
        }
        // The project outlives the executor: a table of thousands of numbers is not copied for each look at it.
        let project = self.project;
        if let Some(entry) = project.global(&self.tu, name) {
            return self.global_value(entry.file, &entry.item);
        }
        if !self.project.functions(&self.tu, name).is_empty() {
            return self.function_value(path);
        }
        match name.as_str() {
            "INT_MAX" => Val::Int(self.arena.constant(i64::from(i32::MAX)), Ty::INT),
            "RAND_MAX" => Val::Int(self.arena.constant(i64::from(i32::MAX)), Ty::INT),
            "UINT_MAX" => Val::Int(self.arena.constant(i64::from(u32::MAX)), Ty::UINT),
            "NULL" | "nullptr" => Val::Void,
            "M_PI" => {
                let zero = self.arena.constant(0);
                Val::Float(Some(std::f64::consts::PI), zero, FloatKind::Double)
            }
            text => {
                // A name nobody defines here: fixed, but not known.
                let value = self.named_unknown(text);
                Val::Opaque(Ty::Unknown("a name that is not seen"), value)
            }
        }
    }

    /// The unknown of that name, with what is known about it noted.
    pub fn marked_unknown(&mut self, name: &str, mark: impl FnOnce(&mut Unknown)) -> ExprId {
        let value = self.named_unknown(name);
        if let Node::Symbol(Symbol::Unknown(index)) = *self.arena.node(value)
            && let Some(unknown) = self.arena.unknowns.get_mut(index as usize)
        {
            mark(unknown);
        }
        value
    }

    pub fn named_unknown(&mut self, name: &str) -> ExprId {
        if let Some(index) = self.arena.unknowns.iter().position(|unknown| unknown.name == name) {
            return self.arena.symbol(Symbol::Unknown(index as u32));
        }
        self.arena.unknown(name, None)
    }

    fn global_value(&mut self, file: crate::source::FileId, var: &ast::VarDecl) -> Val {
        let storage = var.storage;
        if storage.shared {
            let ty = self.ty(&var.ty);
            let base = self.base_of(var, &ty, crate::ir::facts::MemorySpace::Shared);
            let offset = self.arena.constant(0);
            return Val::Ref(Rc::new(Place::Memory {
                pointer: Pointer { base, offset, to: ty },
                aggregate: None,
            }));
        }
        if storage.constant || storage.device || storage.managed {
            let is_value = storage.is_const || storage.is_constexpr;
            if is_value && let Some(value) = self.constant_of(file, var) {
                return match value {
                    // Folded where the index is a constant; else it is read like any array.
                    Val::Array(array) if !storage.constant => self.in_memory(var, &array),
                    value => value,
                };
            }
            use crate::ir::facts::MemorySpace;
            let space = if storage.constant { MemorySpace::Constant } else { MemorySpace::Global };
            let ty = self.ty(&var.ty);
            let base = self.base_of(var, &ty, space);
            let offset = self.arena.constant(0);
            return Val::Ref(Rc::new(Place::Memory {
                pointer: Pointer { base, offset, to: ty },
                aggregate: None,
            }));
        }
        if let Some(value) = self.constant_of(file, var)
            && (storage.is_const || storage.is_constexpr)
        {
            return value;
        }
        if self.mode == Mode::Host {
            let slot = self.global_slot(file, var);
            return Val::Ref(Rc::new(Place::Slot { slot, path: Vec::new() }));
        }
        let ty = self.ty(&var.ty);
        self.symbolic(&ty, var.name.as_str(), None)
    }

    fn in_memory(&mut self, var: &ast::VarDecl, array: &super::value::ArrayVal) -> Val {
        let ty = self.ty(&var.ty);
        let base = self.base_of(var, &ty, crate::ir::facts::MemorySpace::Global);
        let origin = Some(Pointer { base, offset: self.arena.constant(0), to: ty });
        Val::Array(Rc::new(super::value::ArrayVal { origin, ..array.clone() }))
    }

    /// Where a global variable of the host lives while a host function is executed. It starts with its initialiser; one
    /// without is what some other function makes it.
    pub fn global_slot(&mut self, file: crate::source::FileId, var: &ast::VarDecl) -> SlotId {
        if let Some(&slot) = self.globals.get(&var.name_span) {
            return slot;
        }
        let ty = self.ty(&var.ty);
        let value = match (self.constant_of(file, var), &ty) {
            (Some(value), _) => value,
            (None, Ty::Array(..) | Ty::Struct(_)) => self.uninitialized(&ty),
            (None, _) => self.symbolic(&ty, var.name.as_str(), None),
        };
        let slot = SlotId(self.slots.len() as u32);
        self.slots.push(super::value::Slot { name: var.name, ty, value, is_reference: false });
        self.globals.insert(var.name_span, slot);
        slot
    }

    fn constant_of(&mut self, file: crate::source::FileId, var: &ast::VarDecl) -> Option<Val> {
        let key = (file, var.name);
        if let Some(known) = self.constants.get(&key) {
            return known.clone();
        }
        if self.constants_open.contains(&key) {
            return None;
        }
        self.constants_open.push(key);
        let ty = self.ty(&var.ty);
        let value = match &var.init {
            Init::None => None,
            Init::Assign(expr) => Some(match &expr.kind {
                ExprKind::InitList(items) => {
                    let items: Vec<_> = items.iter().map(|(name, expr)| (*name, expr)).collect();
                    self.quietly(|exec| exec.aggregate(&ty, &items))
                }
                _ => {
                    let value = self.quietly(|exec| exec.value(expr));
                    self.convert(value, &ty)
                }
            }),
            Init::Paren(args) | Init::Brace(args) => {
                Some(self.quietly(|exec| exec.construct(&ty, args, var.span)))
            }
        };
        self.constants_open.pop();
        self.constants.insert(key, value.clone());
        value
    }

    pub fn enumerator_value(&mut self, def: &ast::EnumDef, place: usize) -> ExprId {
        let items = def.items.get(..=place).unwrap_or(&def.items);
        let stated = items.iter().rposition(|(_, init)| init.is_some());
        let distance = self.arena.constant(place.saturating_sub(stated.unwrap_or(0)) as i64);
        let Some((name, Some(expr))) = stated.and_then(|at| items.get(at)) else { return distance };
        // What leads back to itself, for what is not understood on the way, is not known; nor is what takes too long.
        let member = (String::new(), def.span, *name);
        if self.out_of_budget() || self.members.contains(&member) {
            return self.named_unknown(name.as_str());
        }
        self.members.push(member);
        let known = self.quietly(|exec| exec.value(expr));
        self.members.pop();
        let value = self.atom(&known);
        self.arena.add(value, distance)
    }

    /// `threadIdx` and its kin.
    fn builtin_variable(&mut self, name: Name) -> Option<Val> {
        let triple = |parts: [ExprId; 3]| {
            let of = super::types::vector_type("dim3")?;
            let fields = parts.into_iter().map(|part| Val::Int(part, Ty::UINT)).collect();
            Some(Val::Obj(Rc::new(Obj { ty: Rc::new(of), fields, origin: None })))
        };
        match name.as_str() {
            "threadIdx" => {
                let parts = Axis::ALL.map(|axis| self.arena.symbol(Symbol::ThreadIdx(axis)));
                triple(parts)
            }
            "blockIdx" => {
                let parts = Axis::ALL.map(|axis| self.arena.symbol(Symbol::BlockIdx(axis)));
                triple(parts)
            }
            "blockDim" => triple(self.dims.block),
            "gridDim" => triple(self.dims.grid),
            "warpSize" => Some(Val::Int(self.arena.constant(32), Ty::INT)),
            _ => None,
        }
    }

    // Macros.

    fn macro_value(&mut self, name: Name, at: Span) -> Option<Val> {
        if self.expanding.contains(&name) {
            return None;
        }
        let expr = self.macro_expr(name, None, at)?;
        self.expanding.push(name);
        let value = self.value_or_place(&expr);
        self.expanding.pop();
        Some(value)
    }

    /// The expression that a macro stands for; parsed once per spelling.
    pub fn macro_expr(&mut self, name: Name, args: Option<&[String]>, at: Span) -> Option<Rc<Expr>> {
        let key = (name, format!("{}:{}", args.map_or_else(String::new, |args| args.join(",")), at.start));
        if let Some(known) = self.snippets.get(&key) {
            return known.clone();
        }
        let text = self.expand_macro(name, args, at);
        let expr = text.and_then(|text| crate::syntax::parse_expr(&text, at)).map(Rc::new);
        self.snippets.insert(key, expr.clone());
        expr
    }

    pub fn expand_macro(&self, name: Name, args: Option<&[String]>, at: Span) -> Option<String> {
        let lookup = |name: Name| self.project.macro_at(&self.tu, name, at.file, at.start);
        let item = lookup(name)?;
        if item.params.is_some() != args.is_some() {
            return None;
        }
        let text = super::macros::expand_call(&item, args, &lookup)?;
        Some(self.without_casts(&text))
    }

    /// `(n) + 1` could be a cast; it is none where `n` is a variable.
    pub fn without_casts(&self, text: &str) -> String {
        super::macros::without_casts(text, &|name| {
            self.lookup(name).is_some()
                || self.frames.iter().any(|frame| frame.scopes.iter().any(|scope| scope.contains_key(&name)))
                || matches!(self.env().get(name), Some(TemplateValue::Value(_)))
                || self.project.global(&self.tu, name).is_some()
        })
    }
}

fn is_comparison(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::And
            | BinaryOp::Or
    )
}

fn promoted(ty: &Ty) -> Ty {
    match ty {
        Ty::Int { size: 4 | 8, .. } => ty.clone(),
        _ => Ty::INT,
    }
}

/// The usual arithmetic conversions of C++.
fn common_type(a: &Ty, b: &Ty) -> Ty {
    let (a, b) = (promoted(a), promoted(b));
    match (&a, &b) {
        (Ty::Int { size: x, signed: sx }, Ty::Int { size: y, signed: sy }) => {
            let size = *x.max(y);
            let signed = if x == y {
                *sx && *sy
            } else if x > y {
                *sx
            } else {
                *sy
            };
            Ty::Int { size, signed }
        }
        _ => Ty::INT,
    }
}

/// A class that is initialised member by member.
fn is_aggregate(of: &StructTy) -> bool {
    let has_constructor = |def: &StructDef| def.methods.iter().any(|method| method.name == def.name);
    let has_base = of.fields.iter().any(|field| field.name.as_str().is_empty());
    !of.fields.is_empty() && !has_base && of.def.as_ref().is_some_and(|def| !has_constructor(def))
}
