//! Places: what can be read and written, and where accesses are recorded.

use std::rc::Rc;

use super::exec::{AccessKind, Exec, Mode, RawAccess};
use super::types::{StructTy, Ty};
use super::value::{Aggregate, ArrayVal, Base, Obj, Place, Pointer, SlotId, Step, Val};
use crate::index::expr::ExprId;
use crate::index::limits;
use crate::ir::ast::{Expr, ExprKind, Name, UnaryOp};
use crate::ir::facts::{MemorySpace, Operation};
use crate::source::Span;

/// The base of a pointer that the analysis lost: not even its memory space is known.
pub const UNSEEN: &str = "a pointer whose origin is not seen";

impl Exec<'_> {
    /// The place that an expression names.
    pub fn place(&mut self, expr: &Expr) -> Place {
        self.deeper(|exec| exec.place_of(expr)).unwrap_or(Place::Value(Val::Void))
    }

    fn place_of(&mut self, expr: &Expr) -> Place {
        match &expr.kind {
            ExprKind::Name(_) | ExprKind::This | ExprKind::Call { .. } | ExprKind::Lambda(_) => {
                match self.value_or_place(expr) {
                    Val::Ref(place) => (*place).clone(),
                    value => Place::Value(value),
                }
            }
            ExprKind::Index(base, indices) => {
                let base = self.value_or_place(base);
                let indices: Vec<Val> = indices.iter().map(|index| self.value(index)).collect();
                self.index(base, &indices, expr.span)
            }
            ExprKind::Unary(UnaryOp::Deref, operand) => {
                let value = self.value(operand);
                self.deref(value, expr.span)
            }
            ExprKind::Field { base, member, arrow } => {
                let base = self.value_or_place(base);
                let base = match base {
                    _ if !arrow => base,
                    Val::Ref(place) => match self.type_of_place(&place) {
                        // `it->second` on a pointer variable: read the pointer first.
                        Ty::Ptr(_) | Ty::Auto => {
                            let value = self.read(&place, expr.span);
                            Val::Ref(Rc::new(self.deref(value, expr.span)))
                        }
                        _ if matches!(*place, Place::Slot { .. }) => {
                            let value = self.read(&place, expr.span);
                            match value {
                                Val::Ptr(_) | Val::Ref(_) => Val::Ref(Rc::new(self.deref(value, expr.span))),
                                _ => Val::Ref(place),
                            }
                        }
                        _ => Val::Ref(place),
                    },
                    value => Val::Ref(Rc::new(self.deref(value, expr.span))),
                };
                let place = match member.name.as_member() {
                    Some(place) => self.nth_member(base, place),
                    None => self.member(base, member.name),
                };
                // Of every device that CUDA runs on (`cudaDeviceProp::warpSize`), and what projects copy from it.
                let is_warp = matches!(member.name.as_str(), "warpSize" | "warp_size");
                if is_warp && self.mode == Mode::Host && !matches!(place, Place::Slot { .. }) {
                    return Place::Value(Val::Int(self.arena.constant(32), Ty::INT));
                }
                place
            }
            ExprKind::Assign(..) | ExprKind::Unary(UnaryOp::PreInc | UnaryOp::PreDec, _) => {
                self.discard(expr);
                match &expr.kind {
                    ExprKind::Assign(_, left, _) | ExprKind::Unary(_, left) => {
                        self.quietly(|exec| exec.place(left))
                    }
                    _ => Place::Value(Val::Void),
                }
            }
            ExprKind::Comma(list) => {
                let Some((last, first)) = list.split_last() else { return Place::Value(Val::Void) };
                first.iter().for_each(|expr| {
                    self.discard(expr);
                });
                self.place(last)
            }
            ExprKind::Cast { ty, operand, .. } if matches!(**ty, crate::ir::ast::Type::Reference { .. }) => {
                let ty = self.ty(ty);
                let ty = if let Ty::Ref(to) = ty { (*to).clone() } else { ty };
                match self.place(operand) {
                    Place::Memory { pointer, .. } => {
                        Place::Memory { pointer: Pointer { to: ty, ..pointer }, aggregate: None }
                    }
                    Place::Slot { .. } | Place::Value(_) => {
                        let value = self.opaque_of(&ty, Vec::new());
                        Place::Value(value)
                    }
                }
            }
            ExprKind::Ternary(cond, a, b) => {
                let cond = self.condition(cond);
                let (a, b) = (self.place(a), self.place(b));
                match (a, b) {
                    (Place::Memory { pointer: x, aggregate }, Place::Memory { pointer: y, .. }) => {
                        let merged = self.merge(cond, Val::Ptr(x), Val::Ptr(y));
                        match merged {
                            Val::Ptr(pointer) => Place::Memory { pointer, aggregate },
                            other => Place::Value(other),
                        }
                    }
                    (a, b) => {
                        let (a, b) = (self.read(&a, expr.span), self.read(&b, expr.span));
                        Place::Value(self.merge(cond, a, b))
                    }
                }
            }
            _ => Place::Value(self.value(expr)),
        }
    }

    /// Runs without recording accesses: for expressions that were already executed.
    pub fn quietly<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.probing += 1;
        let mark = self.journal.len();
        let alive = self.alive;
        let out = f(self);
        self.roll_back(mark);
        self.alive = alive;
        self.probing -= 1;
        out
    }

    pub fn index(&mut self, base: Val, indices: &[Val], at: Span) -> Place {
        let index = match indices.first() {
            Some(index) => self.atom(index),
            None => self.arena.constant(0),
        };
        match base {
            Val::Ptr(pointer) => {
                let to = pointer.to.clone();
                Place::Memory { pointer: self.offset_pointer(pointer, index, &to), aggregate: None }
            }
            Val::Ref(place) => match (*place).clone() {
                Place::Memory { pointer, aggregate } => match pointer.to.clone() {
                    Ty::Array(of, _) => {
                        let inside = Pointer { to: (*of).clone(), ..pointer };
                        let pointer = self.offset_pointer(inside, index, &of);
                        let aggregate = aggregate.map(|aggregate| {
                            let step =
                                self.arena.as_const(index).zip(of.scalar_size()).map(|(i, size)| i * size);
                            Aggregate { field: aggregate.field.zip(step).map(|(a, b)| a + b), ..aggregate }
                        });
                        Place::Memory { pointer, aggregate }
                    }
                    Ty::Ptr(_) => {
                        let value = self.read(&Place::Memory { pointer, aggregate }, at);
                        self.index(value, indices, at)
                    }
                    Ty::Struct(_) => self.index_object(Val::Ref(place), indices, at),
                    to => {
                        // `T& r = *p; (&r)[1]` and code whose type is not known: treat it as a pointer.
                        Place::Memory { pointer: self.offset_pointer(pointer, index, &to), aggregate }
                    }
                },
                Place::Slot { slot, mut path } => {
                    let value = self.read_slot(slot, &path);
                    match value {
                        Val::Array(_) => {
                            path.push(Step::Element(index));
                            Place::Slot { slot, path }
                        }
                        Val::Ptr(_) | Val::Ref(_) => self.index(value, indices, at),
                        Val::Void if matches!(self.slot(slot).ty, Ty::Ptr(_)) => {
                            Place::Value(self.opaque_element(slot, index))
                        }
                        Val::Obj(_) | Val::Lambda(_) | Val::Opaque(..) => {
                            self.index_object(Val::Ref(place), indices, at)
                        }
                        other => {
                            let atom = self.atom(&other);
                            Place::Value(
                                self.opaque_of(&Ty::Unknown("element of a local object"), vec![atom, index]),
                            )
                        }
                    }
                }
                Place::Value(value @ Val::Ref(_)) => self.index(value, indices, at),
                Place::Value(Val::Array(array)) => self.element_place(&array, index),
                Place::Value(value) => self.index_object(value, indices, at),
            },
            Val::Array(array) => self.element_place(&array, index),
            other => self.index_object(other, indices, at),
        }
    }

    fn opaque_element(&mut self, slot: SlotId, index: ExprId) -> Val {
        let ty = match &self.slot(slot).ty {
            Ty::Ptr(to) => (**to).clone(),
            other => other.clone(),
        };
        self.opaque_of(&ty, vec![index])
    }

    fn index_object(&mut self, object: Val, indices: &[Val], at: Span) -> Place {
        if let Some(place) = indices.first().and_then(|index| self.accessor_element(&object, index, at)) {
            return place;
        }
        if let Some(value) = self.call_operator(object.clone(), "operator[]", indices, at) {
            return match value {
                Val::Ref(place) => (*place).clone(),
                value => Place::Value(value),
            };
        }
        let mut inputs = vec![self.atom(&object)];
        inputs.extend(indices.iter().map(|index| self.atom(index)).collect::<Vec<_>>());
        let value = self.opaque_of(&Ty::Unknown("element of an object whose type is not seen"), inputs);
        Place::Value(value)
    }

    pub fn offset_pointer(&mut self, pointer: Pointer, index: ExprId, of: &Ty) -> Pointer {
        let size = self.size_of(of);
        let bytes = match size {
            Some(size) => self.arena.mul(index, size),
            None => self.arena.opaque(vec![index]),
        };
        Pointer { offset: self.arena.add(pointer.offset, bytes), ..pointer }
    }

    pub fn deref(&mut self, value: Val, at: Span) -> Place {
        match value {
            Val::Ptr(pointer) => match pointer.to.clone() {
                Ty::Array(of, _) => {
                    Place::Memory { pointer: Pointer { to: Ty::Array(of, None), ..pointer }, aggregate: None }
                }
                _ => Place::Memory { pointer, aggregate: None },
            },
            Val::Ref(place) => match &*place {
                Place::Memory { pointer, aggregate } if matches!(pointer.to, Ty::Array(..)) => {
                    let (pointer, aggregate) = (pointer.clone(), aggregate.clone());
                    let of = match &pointer.to {
                        Ty::Array(of, _) => (**of).clone(),
                        other => other.clone(),
                    };
                    Place::Memory { pointer: Pointer { to: of, ..pointer }, aggregate }
                }
                Place::Slot { slot, path } => {
                    // A pointer to a local: the local; an array: its first element.
                    let (slot, mut path) = (*slot, path.clone());
                    if let Val::Array(_) = self.read_slot(slot, &path) {
                        let zero = self.arena.constant(0);
                        path.push(Step::Element(zero));
                    }
                    Place::Slot { slot, path }
                }
                other => other.clone(),
            },
            Val::Array(array) => {
                let zero = self.arena.constant(0);
                Place::Value(self.element_of(&array, zero))
            }
            object @ Val::Obj(_) => {
                if let Some(value) = self.call_operator(object.clone(), "operator*", &[], at) {
                    return match value {
                        Val::Ref(place) => (*place).clone(),
                        value => Place::Value(value),
                    };
                }
                let atom = self.atom(&object);
                Place::Value(self.opaque_of(&Ty::Unknown("dereferenced object"), vec![atom]))
            }
            other => {
                let atom = self.atom(&other);
                Place::Value(self.opaque_of(&Ty::Unknown("pointer whose origin is not seen"), vec![atom]))
            }
        }
    }

    /// What the name at `place` of a structured binding stands for.
    fn nth_member(&mut self, base: Val, place: usize) -> Place {
        let name = match &self.type_of(&base) {
            Ty::Struct(of) => of.fields.get(place).map(|field| field.name),
            _ => None,
        };
        match name {
            Some(name) => self.member(base, name),
            None => {
                let atom = self.atom(&base);
                Place::Value(self.opaque_of(&Ty::Unknown("member of a type that is not seen"), vec![atom]))
            }
        }
    }

    /// `base.name`, where `base` is a value or a reference to a place.
    pub fn member(&mut self, base: Val, name: Name) -> Place {
        match base {
            Val::Ref(place) => match (*place).clone() {
                Place::Memory { pointer, aggregate } => match &pointer.to {
                    Ty::Struct(of) => self.memory_member(&pointer.clone(), of.clone(), aggregate, name),
                    _ => {
                        let atom = pointer.offset;
                        Place::Value(
                            self.opaque_of(&Ty::Unknown("member of a type that is not seen"), vec![atom]),
                        )
                    }
                },
                Place::Slot { slot, mut path } => match self.read_slot(slot, &path) {
                    Val::Obj(obj) => match find_field(&obj.ty, name) {
                        Some(steps) => {
                            path.extend(steps.into_iter().map(Step::Field));
                            let place = Place::Slot { slot, path };
                            // A reference member leads on.
                            match self.read_place_slot(&place) {
                                Some(Val::Ref(inner)) => (*inner).clone(),
                                _ => place,
                            }
                        }
                        None => self.class_constant(&obj.ty, name),
                    },
                    value => self.value_member(value, name),
                },
                Place::Value(value) => self.value_member(value, name),
            },
            value => self.value_member(value, name),
        }
    }

    fn value_member(&mut self, value: Val, name: Name) -> Place {
        match value {
            Val::Obj(obj) => match find_field(&obj.ty, name) {
                Some(steps) => {
                    let mut value = Val::Obj(obj);
                    for step in steps {
                        value = match value {
                            Val::Obj(obj) => {
                                self.mark_used(&obj, step);
                                obj.fields.get(step).cloned().unwrap_or(Val::Void)
                            }
                            other => other,
                        };
                    }
                    match value {
                        Val::Ref(place) => (*place).clone(),
                        value => Place::Value(value),
                    }
                }
                None => self.class_constant(&obj.ty, name),
            },
            Val::Ref(_) => self.member(value, name),
            Val::Ptr(pointer) => {
                self.member(Val::Ref(Rc::new(Place::Memory { pointer, aggregate: None })), name)
            }
            other => {
                let atom = self.atom(&other);
                Place::Value(self.opaque_of(&Ty::Unknown("member of a type that is not seen"), vec![atom]))
            }
        }
    }

    fn class_constant(&mut self, of: &Rc<StructTy>, name: Name) -> Place {
        match self.static_member(of, name) {
            Some(value) => Place::Value(value),
            None => Place::Value(self.opaque_of(&Ty::Unknown("member that is not seen"), Vec::new())),
        }
    }

    fn memory_member(
        &mut self,
        pointer: &Pointer,
        of: Rc<StructTy>,
        aggregate: Option<Aggregate>,
        name: Name,
    ) -> Place {
        let Some(steps) = find_field(&of, name) else { return self.class_constant(&of, name) };
        let mut offset = Some(0);
        let mut ty = Ty::Struct(of.clone());
        for step in steps {
            let Ty::Struct(inner) = &ty else { break };
            let Some(field) = inner.fields.get(step).cloned() else { break };
            offset = offset.zip(field.offset).map(|(a, b)| a + b);
            ty = field.ty;
        }
        let Some(offset) = offset else {
            return Place::Value(self.opaque_of(&ty, vec![pointer.offset]));
        };
        let bytes = self.arena.constant(offset);
        let aggregate = match aggregate {
            Some(outer) => Aggregate { field: outer.field.map(|field| field + offset), ..outer },
            None => Aggregate { ty: of, element: pointer.offset, field: Some(offset) },
        };
        let target =
            Pointer { base: pointer.base, offset: self.arena.add(pointer.offset, bytes), to: ty.clone() };
        if let Ty::Ref(to) = ty {
            let loaded = self.loaded(&Pointer { to: Ty::Ptr(to), ..target });
            return match loaded {
                Val::Ptr(pointer) => Place::Memory { pointer, aggregate: None },
                value => Place::Value(value),
            };
        }
        Place::Memory { pointer: target, aggregate: Some(aggregate) }
    }

    // Reading.

    pub fn read(&mut self, place: &Place, at: Span) -> Val {
        match place {
            Place::Value(value) => match value {
                Val::Ref(inner) if !matches!(**inner, Place::Value(_)) => value.clone(),
                _ => value.clone(),
            },
            Place::Slot { slot, path } => self.read_slot(*slot, path),
            Place::Memory { pointer, aggregate } => match &pointer.to {
                Ty::Array(of, _) => Val::Ptr(Pointer { to: (**of).clone(), ..pointer.clone() }),
                _ => {
                    let access =
                        self.record(Operation::Load, pointer, aggregate.clone(), AccessKind::Plain, at);
                    let value = self.loaded(pointer);
                    match (value, access) {
                        (Val::Obj(obj), Some(access)) => Val::Obj(self.with_origin(obj, access, 0)),
                        (value, _) => value,
                    }
                }
            },
        }
    }

    fn with_origin(&mut self, obj: Rc<Obj>, access: usize, start: i64) -> Rc<Obj> {
        let mut obj = (*obj).clone();
        obj.origin = Some((access, start));
        for (field, ty) in obj.fields.iter_mut().zip(&obj.ty.fields) {
            if let (Val::Obj(inner), Some(offset)) = (&*field, ty.offset) {
                *field = Val::Obj(self.with_origin(inner.clone(), access, start + offset));
            }
        }
        if let Some(access) = self.accesses.get_mut(access)
            && start == 0
        {
            access.used = Some(Vec::new());
        }
        Rc::new(obj)
    }

    /// A field of a copy is read: the load that made the copy needs its bytes.
    fn mark_used(&mut self, obj: &Obj, field: usize) {
        let Some((access, start)) = obj.origin else { return };
        let Some(field) = obj.ty.fields.get(field) else { return };
        if matches!(field.ty, Ty::Struct(_)) && !matches!(&field.ty, Ty::Struct(of) if of.fields.is_empty()) {
            return;
        }
        let (Some(offset), Some(size)) = (field.offset, self.constant_size(&field.ty)) else { return };
        if let Some(used) = self.accesses.get_mut(access).and_then(|access| access.used.as_mut()) {
            used.push((start + offset, size));
        }
    }

    /// The whole copy escapes: all of it was needed.
    pub fn mark_all_used(&mut self, value: &Val) {
        if let Val::Obj(obj) = value
            && let Some((access, start)) = obj.origin
            && let Some(size) = obj.ty.size
            && let Some(used) = self.accesses.get_mut(access).and_then(|access| access.used.as_mut())
        {
            used.push((start, size));
        }
    }

    fn read_place_slot(&mut self, place: &Place) -> Option<Val> {
        match place {
            Place::Slot { slot, path } => Some(self.read_slot(*slot, path)),
            Place::Memory { .. } | Place::Value(_) => None,
        }
    }

    pub fn read_slot(&mut self, slot: SlotId, path: &[Step]) -> Val {
        let mut value = self.slot(slot).value.clone();
        for step in path {
            value = match (value, step) {
                (Val::Obj(obj), Step::Field(field)) => {
                    self.mark_used(&obj, *field);
                    obj.fields.get(*field).cloned().unwrap_or(Val::Void)
                }
                (Val::Array(array), Step::Element(index)) => self.element_of(&array, *index),
                (other, _) => {
                    let atom = self.atom(&other);
                    return self.opaque_of(&Ty::Unknown("part of a local value"), vec![atom]);
                }
            };
        }
        if let Val::Void = value {
            let ty = self.slot_type(slot, path);
            if ty.is_integer() {
                // Not written yet as far as the analysis sees.
                let inputs = self.anything();
                return self.opaque_of(&ty, inputs);
            }
        }
        value
    }

    fn slot_type(&self, slot: SlotId, path: &[Step]) -> Ty {
        let mut ty = self.slot(slot).ty.clone();
        for step in path {
            ty = match (&ty, step) {
                (Ty::Struct(of), Step::Field(field)) => {
                    of.fields.get(*field).map_or(Ty::Auto, |f| f.ty.clone())
                }
                (Ty::Array(of, _), Step::Element(_)) => (**of).clone(),
                _ => Ty::Auto,
            };
        }
        ty
    }

    pub fn type_of_place(&mut self, place: &Place) -> Ty {
        match place {
            Place::Slot { slot, path } => self.slot_type(*slot, path),
            Place::Memory { pointer, .. } => pointer.to.clone(),
            Place::Value(value) => self.type_of(value),
        }
    }

    fn element_place(&mut self, array: &ArrayVal, index: ExprId) -> Place {
        match &array.origin {
            Some(origin) if self.arena.as_const(index).is_none() => {
                let pointer = self.offset_pointer(origin.clone(), index, &array.of);
                Place::Memory { pointer: Pointer { to: array.of.clone(), ..pointer }, aggregate: None }
            }
            _ => Place::Value(self.element_of(array, index)),
        }
    }

    fn element_of(&mut self, array: &ArrayVal, index: ExprId) -> Val {
        if let Some(at) = self.arena.as_const(index)
            && let Some(value) = array.known.get(&at)
        {
            return value.clone();
        }
        // A row of an array of arrays, before anything is written into it.
        if let (Ty::Array(of, len), Some(_)) = (&array.of, self.arena.as_const(index)) {
            let origin = array.origin.clone().map(|origin| self.offset_pointer(origin, index, &array.of));
            let known = Default::default();
            let row = ArrayVal { of: (**of).clone(), len: *len, known, rest: array.rest, origin };
            return Val::Array(Rc::new(row));
        }
        if let Some(value) = self.table(array, index) {
            return value;
        }
        let mut inputs = vec![array.rest, index];
        if self.arena.as_const(index).is_none() {
            let values: Vec<Val> = array.known.values().take(16).cloned().collect();
            inputs.extend(values.iter().map(|value| self.atom(value)));
        }
        self.opaque_of(&array.of, inputs)
    }

    /// A small table of known values, indexed: a chain of ternaries.
    fn table(&mut self, array: &ArrayVal, index: ExprId) -> Option<Val> {
        let len = array.len.and_then(|len| self.arena.as_const(len))?;
        if self.arena.as_const(index).is_some() || len != array.known.len() as i64 || !(1..=16).contains(&len)
        {
            return None;
        }
        let may_merge =
            |value: &Val| matches!(value, Val::Int(..) | Val::Function(_) | Val::Obj(_) | Val::Array(_));
        let mut out: Option<Val> = None;
        for (&at, value) in array.known.iter().rev() {
            if !may_merge(value) {
                return None;
            }
            out = Some(match out {
                None => value.clone(),
                Some(rest) => {
                    let at = self.arena.constant(at);
                    let here = self.arena.binary(crate::index::expr::Op::Eq, false, index, at);
                    self.merge(here, value.clone(), rest)
                }
            });
        }
        match (out?, &array.of) {
            (Val::Int(value, _), of) => Some(Val::Int(value, of.clone())),
            (value, _) => Some(value),
        }
    }

    /// What memory holds at a pointer.
    pub fn loaded(&mut self, pointer: &Pointer) -> Val {
        let atom = self.arena.load(pointer.base, pointer.offset);
        match &pointer.to {
            Ty::Int { .. } | Ty::Bool => Val::Int(atom, pointer.to.clone()),
            Ty::Float(kind) => Val::Float(None, atom, *kind),
            Ty::Ptr(to) => {
                let base = self.loaded_base(pointer.base, to);
                // The pointer's own value is data: aligned like an allocation, different where the data differ.
                let offset = self.arena.scale(atom, 256);
                Val::Ptr(Pointer { base, offset, to: (**to).clone() })
            }
            Ty::Struct(of) if !of.fields.is_empty() => {
                let of = of.clone();
                let fields = of
                    .fields
                    .iter()
                    .map(|field| {
                        let step = self.arena.constant(field.offset.unwrap_or(0));
                        let offset = self.arena.add(pointer.offset, step);
                        self.loaded(&Pointer { base: pointer.base, offset, to: field.ty.clone() })
                    })
                    .collect();
                Val::Obj(Rc::new(Obj { ty: of, fields, origin: None }))
            }
            Ty::Array(of, len) => Val::Array(Rc::new(ArrayVal {
                of: (**of).clone(),
                len: *len,
                known: Default::default(),
                rest: atom,
                origin: None,
            })),
            other => Val::Opaque(other.clone(), atom),
        }
    }

    fn loaded_base(&mut self, from: u32, to: &Ty) -> u32 {
        let name = self.bases.get(from as usize).map_or_else(|| "?".to_owned(), |base| base.name.clone());
        let name = format!("{name}[…]");
        self.named_base(&name, MemorySpace::Global, to, None)
    }

    /// A base that stands for one name in this run.
    pub fn named_base(&mut self, name: &str, space: MemorySpace, to: &Ty, param: Option<usize>) -> u32 {
        if let Some(&id) = self.static_bases.get(name) {
            return id;
        }
        let id = self.bases.len() as u32;
        self.bases.push(Base {
            name: name.to_owned(),
            space,
            span: None,
            param,
            is_allocation: true,
            is_contiguous_tensor: false,
            extents: Vec::new(),
            element: to.clone(),
        });
        self.static_bases.insert(name.to_owned(), id);
        id
    }

    // Writing.

    pub fn write(&mut self, place: &Place, value: Val, at: Span) {
        match place {
            Place::Value(_) => {}
            Place::Memory { pointer, aggregate } => {
                self.mark_all_used(&value);
                self.record(Operation::Store, pointer, aggregate.clone(), AccessKind::Plain, at);
            }
            Place::Slot { slot, path } => {
                let ty = self.slot_type(*slot, path);
                let value = match (&ty, value) {
                    (Ty::Auto | Ty::Unknown(_), value) => value,
                    (ty, value) => self.convert(value, &ty.clone()),
                };
                let old = self.slot(*slot).value.clone();
                let new = self.replaced(old, path, value);
                self.set_slot(*slot, new);
            }
        }
    }

    fn replaced(&mut self, old: Val, path: &[Step], value: Val) -> Val {
        let Some((step, rest)) = path.split_first() else { return value };
        match (old, step) {
            (Val::Obj(obj), Step::Field(field)) => {
                let mut obj = (*obj).clone();
                if let Some(target) = obj.fields.get_mut(*field) {
                    let inner = std::mem::replace(target, Val::Void);
                    let new = self.replaced(inner, rest, value);
                    if let Some(target) = obj.fields.get_mut(*field) {
                        *target = new;
                    }
                }
                Val::Obj(Rc::new(obj))
            }
            (Val::Array(array), Step::Element(index)) => {
                let mut array = (*array).clone();
                let of = array.of.clone();
                match self.arena.as_const(*index) {
                    Some(at) if array.known.len() < limits::LOCAL_ELEMENTS => {
                        let inner = array.known.remove(&at).unwrap_or(Val::Void);
                        let inner = if matches!(inner, Val::Void) && !rest.is_empty() {
                            self.uninitialized(&of)
                        } else {
                            inner
                        };
                        let new = self.replaced(inner, rest, value);
                        array.known.insert(at, new);
                    }
                    _ => {
                        let atom = self.atom(&value);
                        let known: Vec<Val> = std::mem::take(&mut array.known).into_values().collect();
                        let mut inputs = vec![array.rest, atom];
                        inputs.extend(known.iter().take(16).map(|value| self.atom(value)));
                        array.rest = self.combine(&inputs);
                    }
                }
                Val::Array(Rc::new(array))
            }
            (other, _) => other,
        }
    }

    // Recording.

    pub fn record(
        &mut self,
        operation: Operation,
        pointer: &Pointer,
        aggregate: Option<Aggregate>,
        kind: AccessKind,
        at: Span,
    ) -> Option<usize> {
        if self.probing > 0 || self.mode != Mode::Device || self.accesses.len() >= limits::ACCESSES_PER_KERNEL
        {
            return None;
        }
        if self.arena.as_const(self.alive) == Some(0) {
            return None;
        }
        let space = self.bases.get(pointer.base as usize)?.space;
        let size = self.constant_size(&pointer.to);
        let bytes = size.unwrap_or(4);
        let width = piece_width(bytes, pointer.to.align());
        let calls = self.frames.iter().filter_map(|frame| frame.call).collect();
        self.accesses.push(RawAccess {
            merged: None,
            span: at,
            calls,
            space,
            operation,
            width,
            bytes,
            base: pointer.base,
            offset: pointer.offset,
            guard: self.alive,
            loops: self.loops.clone(),
            aggregate,
            element: pointer.to.name(),
            used: None,
            kind,
            predicated: self.predicated.clone(),
            unsized_element: size.is_none(),
            fence: self.fences,
            fenced_loops: Vec::new(),
            unseen_origin: self.bases.get(pointer.base as usize).is_some_and(|base| base.name == UNSEEN),
        });
        Some(self.accesses.len() - 1)
    }
}

/// The widest instruction for an object: its alignment, at most 16 bytes (hardware.md §5).
pub fn piece_width(bytes: i64, align: i64) -> i64 {
    let widest = align.clamp(1, 16);
    let mut width = 1;
    while width * 2 <= widest && bytes % (width * 2) == 0 {
        width *= 2;
    }
    width
}

/// The path to a field, through anonymous members and base classes.
fn find_field(of: &StructTy, name: Name) -> Option<Vec<usize>> {
    if let Some((place, _)) = of.field(name) {
        return Some(vec![place]);
    }
    for (place, field) in of.fields.iter().enumerate() {
        if field.name.as_str().is_empty()
            && let Ty::Struct(inner) = &field.ty
            && let Some(mut path) = find_field(inner, name)
        {
            path.insert(0, place);
            return Some(path);
        }
    }
    None
}
