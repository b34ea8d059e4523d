//! Objects: their methods, operators, constructors and static members.

use std::rc::Rc;
use std::sync::Arc;

use super::exec::{Exec, Mode};
use super::types::{StructTy, TemplateEnv, Ty};
use super::value::{Closure, Obj, Place, SlotId, Val};
use super::vendor;
use crate::index::limits;
use crate::ir::ast::{self, Expr, FunctionDef, Name, Path, StructDef, TemplateArg};
use crate::source::Span;

impl Exec<'_> {
    pub(super) fn call_method(
        &mut self,
        base: &Expr,
        callee: &Expr,
        member: &Path,
        args: &[Expr],
        at: Span,
    ) -> Val {
        let object = self.value_or_place(base);
        let object = match object {
            Val::Ref(place) => {
                // `p->m()`: the object behind the pointer.
                let inner = match &*place {
                    Place::Slot { slot, path } => self.read_slot(*slot, path),
                    Place::Memory { .. } | Place::Value(_) => Val::Void,
                };
                match inner {
                    Val::Ref(inner) => Val::Ref(inner),
                    Val::Ptr(pointer) => Val::Ref(Rc::new(Place::Memory { pointer, aggregate: None })),
                    Val::Group(group) => Val::Group(group),
                    _ => Val::Ref(place),
                }
            }
            Val::Ptr(pointer) => Val::Ref(Rc::new(Place::Memory { pointer, aggregate: None })),
            other => other,
        };
        if member.name.as_str() == "operator()"
            && let Some(closure) = self.closure_in(&object)
        {
            let values = self.arguments(args);
            return self.call_closure(&closure, member.args.as_deref().unwrap_or(&[]), values, at);
        }
        if let Val::Group(group) = object {
            args.iter().for_each(|arg| {
                self.value(arg);
            });
            return self.group_method(group, member.name);
        }
        let ty = self.type_of(&object);
        if let Ty::Struct(of) = &ty {
            if let Some(value) = self.accessor_method(&object, member.name, args, at) {
                return value;
            }
            if args.is_empty()
                && let Some(part) = vendor::part(of, member.name)
            {
                let place = self.member(object, part);
                return self.read(&place, at);
            }
            let methods = self.methods(of, member.name, args.len());
            if !methods.is_empty() {
                let this = match object {
                    Val::Ref(place) => place,
                    value => Rc::new(self.temporary(value)),
                };
                let values = self.arguments(args);
                let Some(method) = self.choose_method(of, methods, &values) else {
                    return self.opaque_call(&values);
                };
                return self.inline_method(&method, of, this, member.args.as_deref(), values, at);
            }
            // A member that is a callable: a lambda or a functor.
            if of.field(member.name).is_some() {
                let target = self.value_or_place(callee);
                let values = self.arguments(args);
                return self.call_value(target, values, at);
            }
        }
        if let Ty::Struct(of) = &ty
            && let Some(value) = self.declared_object(of, member.name, args.len())
        {
            args.iter().for_each(|arg| {
                self.value(arg);
            });
            return value;
        }
        let receiver = self.atom(&object);
        let result = self.unknown_call(args, at);
        let atom = self.atom(&result);
        let atom = self.combine(&[receiver, atom]);
        Val::Opaque(Ty::Unknown("result of a method that is not seen"), atom)
    }

    /// The lambda that a variable holds.
    fn closure_in(&mut self, object: &Val) -> Option<Rc<Closure>> {
        match object {
            Val::Lambda(closure) => Some(closure.clone()),
            Val::Ref(place) => match &**place {
                Place::Slot { slot, path } => match self.read_slot(*slot, path) {
                    Val::Lambda(closure) => Some(closure),
                    _ => None,
                },
                Place::Value(value) => self.closure_in(value),
                Place::Memory { .. } => None,
            },
            _ => None,
        }
    }

    /// What an object's conversion operator makes of it.
    pub fn conversion(&mut self, obj: &Rc<Obj>) -> Option<Val> {
        let method = self.methods(&obj.ty, Name::new("operator"), 0).into_iter().next()?;
        let this = Rc::new(Place::Value(Val::Obj(obj.clone())));
        let at = method.name_span;
        Some(self.inline_method(&method, &obj.ty.clone(), this, None, Vec::new(), at))
    }

    pub fn call_operator(&mut self, object: Val, name: &str, args: &[Val], at: Span) -> Option<Val> {
        self.argument_spans.clear();
        let name = Name::new(name);
        if let Ty::Struct(of) = self.type_of(&object) {
            if of.is_vector && !of.fields.first().is_some_and(|field| field.ty.is_integer()) {
                let value = self.plain(object, at);
                self.mark_all_used(&value);
                return None;
            }
            let methods = self.methods(&of, name, args.len());
            if let Some(method) = self.choose_method(&of, methods, args) {
                let this = match object {
                    Val::Ref(place) => place,
                    value => Rc::new(self.temporary(value)),
                };
                return Some(self.inline_method(&method, &of, this, None, args.to_vec(), at));
            }
        }
        if matches!(name.as_str(), "operator()" | "operator[]" | "operator=") {
            return None;
        }
        let mut all = vec![object];
        all.extend_from_slice(args);
        let types: Vec<Ty> = all.iter().map(|value| self.type_of(value)).collect();
        let candidates = self.project.functions(&self.tu, name);
        let entry = candidates.into_iter().find(|entry| self.is_operator_of(&entry.item, &types)).cloned()?;
        Some(self.call_function(&entry, None, all, at))
    }

    pub(super) fn mark_entered(&mut self, def: &FunctionDef) {
        if self.probing == 0 && self.mode == Mode::Host && self.launching.contains(&def.name_span) {
            self.entered.insert(def.name_span);
        }
    }

    /// A method with the template arguments that its name spells.
    pub(super) fn inline_method(
        &mut self,
        method: &Arc<FunctionDef>,
        of: &Rc<StructTy>,
        this: Rc<Place>,
        explicit: Option<&[TemplateArg]>,
        args: Vec<Val>,
        at: Span,
    ) -> Val {
        let depth = self.frames.iter().filter(|frame| frame.function == method.name).count();
        if self.frames.len() > limits::CALL_DEPTH || depth > 3 || self.out_of_budget() {
            return self.opaque_call(&args);
        }
        self.mark_entered(method);
        let explicit = explicit.map(|args| self.template_values(&method.template, args)).unwrap_or_default();
        let mut env = (*self.bind_template_args(&method.template, &method.params, &explicit, &args)).clone();
        env.outer = Some(of.env.clone());
        self.push_frame(method.name, of.file, Rc::new(env), Some(at));
        if let Some(frame) = self.frames.last_mut() {
            frame.this = Some(this);
        }
        let ret = self.ty(&method.ret);
        self.bind_params(&method.params, args, at);
        if let Some(frame) = self.frames.last_mut() {
            frame.ret = ret;
        }
        self.finish_call(method.body.as_deref().unwrap_or(&[]))
    }

    /// What a method of the host's gives that is declared only, as a virtual one: which object is not seen, but of what class it is.
    fn declared_object(&mut self, of: &Rc<StructTy>, name: Name, count: usize) -> Option<Val> {
        if self.mode != Mode::Host {
            return None;
        }
        let (owner, method) = declaration(of, name, count)?;
        let env = TemplateEnv { outer: Some(owner.env.clone()), ..TemplateEnv::default() };
        self.push_frame(method.name, owner.file, Rc::new(env), None);
        let ret = self.ty(&method.ret);
        if let Some(frame) = self.frames.pop() {
            self.expanding = frame.expanding;
        }
        let is_object = matches!(&ret, Ty::Ptr(to) if matches!(**to, Ty::Struct(_)));
        is_object.then(|| self.symbolic(&ret, name.as_str(), None))
    }

    pub fn construct_object(&mut self, of: &Rc<StructTy>, args: &[Expr], at: Span) -> Option<Val> {
        let def = of.def.clone()?;
        let constructors = self.methods(of, def.name, args.len());
        if constructors.is_empty() {
            return None;
        }
        let ty = Ty::Struct(of.clone());
        let value = self.uninitialized(&ty);
        let id = SlotId(self.slots.len() as u32);
        self.slots.push(super::value::Slot { name: def.name, ty, value, is_reference: false });
        let this = Rc::new(Place::Slot { slot: id, path: Vec::new() });
        let values = self.arguments(args);
        let constructor = self.choose_method(of, constructors, &values)?;
        let mut env =
            (*self.bind_template_args(&constructor.template, &constructor.params, &[], &values)).clone();
        env.outer = Some(of.env.clone());
        self.push_frame(constructor.name, of.file, Rc::new(env), Some(at));
        if let Some(frame) = self.frames.last_mut() {
            frame.this = Some(this.clone());
            frame.ret = Ty::Void;
        }
        self.bind_params(&constructor.params, values, at);
        for (field, init) in &constructor.initializers {
            let place = self.member(Val::Ref(this.clone()), *field);
            let ty = self.type_of_place(&place);
            let value = self.construct(&ty, init, at);
            self.write(&place, value, at);
        }
        self.finish_call(constructor.body.as_deref().unwrap_or(&[]));
        Some(self.slot(id).value.clone())
    }

    /// `static constexpr` members and enumerators of a class.
    pub fn static_member(&mut self, of: &Rc<StructTy>, name: Name) -> Option<Val> {
        let def = of.def.clone()?;
        // One whose value leads back to it, for what is not understood on the way, has none.
        let member = (of.name.clone(), def.span, name);
        if self.members.contains(&member) {
            return None;
        }
        self.members.push(member);
        let value = self.static_member_of(of, &def, name);
        self.members.pop();
        value
    }

    fn static_member_of(&mut self, of: &Rc<StructTy>, def: &StructDef, name: Name) -> Option<Val> {
        if let Some(constant) = def.constants.iter().find(|constant| constant.name == name) {
            let env = of.env.clone();
            let constant = constant.clone();
            if self.frames.len() > 2 * limits::CALL_DEPTH {
                return None;
            }
            return Some(self.with_env(env, |exec| {
                if let Some(frame) = exec.frames.last_mut() {
                    frame.this = Some(Rc::new(Place::Value(Val::Obj(Rc::new(Obj {
                        ty: of.clone(),
                        fields: Vec::new(),
                        origin: None,
                    })))));
                }
                let ty = exec.ty(&constant.ty);
                match &constant.init {
                    ast::Init::Assign(expr) => {
                        let value = exec.quietly(|exec| exec.value(expr));
                        exec.convert(value, &ty)
                    }
                    ast::Init::Paren(args) | ast::Init::Brace(args) => {
                        exec.construct(&ty, args, constant.span)
                    }
                    ast::Init::None => exec.opaque_of(&ty, Vec::new()),
                }
            }));
        }
        for item in &def.enums {
            if let Some(place) = item.items.iter().position(|(item, _)| *item == name) {
                let env = of.env.clone();
                let value = self.with_env(env, |exec| exec.enumerator_value(item, place));
                return Some(Val::Int(value, Ty::INT));
            }
        }
        of.fields.iter().find_map(|field| match &field.ty {
            Ty::Struct(base) if field.name.as_str().is_empty() => self.static_member(&base.clone(), name),
            _ => None,
        })
    }
}

/// A method that a class or one of its bases declares without a body, with the class that does.
fn declaration(of: &Rc<StructTy>, name: Name, count: usize) -> Option<(Rc<StructTy>, Arc<FunctionDef>)> {
    let def = of.def.as_ref()?;
    let mut declared = def.methods.iter().filter(|method| method.body.is_none() && method.name == name);
    if let Some(method) = declared.find(|method| method.params.len() == count) {
        return Some((of.clone(), method.clone()));
    }
    of.fields.iter().filter(|field| field.name.as_str().is_empty()).find_map(|field| match &field.ty {
        Ty::Struct(base) => declaration(base, name, count),
        _ => None,
    })
}
