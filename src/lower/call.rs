//! Calls: inlining, templates, methods, launches; and what types names stand for.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::exec::{Exec, Launch, Mode};
use super::loops::Leaving;
use super::project::Entry;
use super::types::{FieldTy, StructTy, TemplateEnv, TemplateValue, Ty, named_scalar, vector_type};
use super::value::{ArrayVal, Closure, FunctionRef, Obj, Place, Pointer, Scope, SlotId, Val};
use crate::index::expr::ExprId;
use crate::index::limits;
use crate::ir::ast::{
    self, Expr, ExprKind, FunctionDef, Name, Path, StructDef, TemplateArg, TemplateParamKind, Type, VarDecl,
};
use crate::ir::facts::MemorySpace;
use crate::source::{FileId, Span};

/// One function being executed.
pub struct Frame {
    pub scopes: Vec<Scope>,
    pub env: Rc<TemplateEnv>,
    pub this: Option<Rc<Place>>,
    pub ret: Ty,
    pub result: SlotId,
    /// Where it was called; `None` for the root.
    pub call: Option<Span>,
    pub file: FileId,
    pub leaving: Vec<Leaving>,
    pub function: Name,
    /// Loops open when it was called.
    pub outer_loops: usize,
    /// Lanes have returned from inside a loop: which ones, and with what, is not followed.
    pub returned_in_loop: bool,
    /// The macros that the caller was inside of.
    pub expanding: Vec<Name>,
    /// What its parameter packs hold.
    pub packs: FxHashMap<Name, Vec<Val>>,
}

impl Exec<'_> {
    pub fn push_frame(&mut self, function: Name, file: FileId, env: Rc<TemplateEnv>, call: Option<Span>) {
        let result = SlotId(self.slots.len() as u32);
        self.slots.push(super::value::Slot {
            name: Name::new("result"),
            ty: Ty::Auto,
            value: Val::Void,
            is_reference: false,
        });
        self.frames.push(Frame {
            scopes: vec![Scope::default()],
            env,
            this: None,
            ret: Ty::Auto,
            result,
            call,
            file,
            leaving: Vec::new(),
            function,
            outer_loops: self.loops.len(),
            returned_in_loop: false,
            expanding: std::mem::take(&mut self.expanding),
            packs: FxHashMap::default(),
        });
    }

    pub fn call(&mut self, whole: &Expr, callee: &Expr, args: &[Expr], discarded: bool) -> Val {
        match &callee.kind {
            ExprKind::Name(path) => self.call_name(path, whole, args, discarded),
            ExprKind::Field { base, member, arrow: _ } => {
                self.call_method(base, callee, member, args, whole.span)
            }
            _ => {
                let target = self.value_or_place(callee);
                let args = self.arguments(args);
                self.call_value(target, args, whole.span)
            }
        }
    }

    /// Arguments as values, or references to places where they name one.
    fn arguments(&mut self, args: &[Expr]) -> Vec<Val> {
        let mut values = Vec::new();
        let mut spans = Vec::new();
        for arg in args {
            let pack = match &arg.kind {
                ExprKind::PackExpansion(pattern) => self.pack(pattern),
                _ => None,
            };
            match pack {
                Some(pack) => values.extend(pack),
                None => values.push(self.value_or_place(arg)),
            }
            spans.resize(values.len(), arg.span);
        }
        self.argument_spans = spans;
        values
    }

    /// The arguments that `args` or `std::forward<Args>(args)` stands for, each.
    fn pack(&self, pattern: &Expr) -> Option<Vec<Val>> {
        match &pattern.kind {
            ExprKind::Name(path) => self.frames.last()?.packs.get(&path.as_simple()?).cloned(),
            ExprKind::Call { args, .. } => args.iter().find_map(|arg| self.pack(arg)),
            ExprKind::Cast { operand, .. } => self.pack(operand),
            _ => None,
        }
    }

    fn rvalues(&mut self, args: &[Val], at: Span) -> Vec<Val> {
        args.iter().map(|arg| self.plain(arg.clone(), at)).collect()
    }

    /// Reads a reference; memory reads are recorded.
    pub fn plain(&mut self, value: Val, at: Span) -> Val {
        match value {
            Val::Ref(place) => match &*place {
                Place::Slot { slot, path } if matches!(self.read_slot(*slot, path), Val::Array(_)) => {
                    Val::Ref(place)
                }
                place => self.read(&place.clone(), at),
            },
            value => value,
        }
    }

    fn call_name(&mut self, path: &Path, whole: &Expr, args: &[Expr], discarded: bool) -> Val {
        let name = path.name;
        let at = whole.span;
        // A macro before a variable of its name: `#define img(y, x) img[(y) * w + (x)]`.
        if path.scope.is_empty() && path.args.is_none() && self.is_function_macro(name, at) {
            return self.call_macro(name, args, at, discarded);
        }
        if let Some(target) = self.kept_value(path) {
            let args = self.arguments(args);
            return self.call_value(target, args, at);
        }
        if path.scope.is_empty() && self.lookup(name).is_some() {
            let target = self.value_or_place(&Expr { span: at, kind: ExprKind::Name(path.clone()) });
            let args = self.arguments(args);
            return self.call_value(target, args, at);
        }
        if path.scope.is_empty()
            && let Some(TemplateValue::Value(value)) = self.env().get(name).cloned()
        {
            let args = self.arguments(args);
            return self.call_value(value, args, at);
        }
        if let Some(value) = self.builtin_call(path, args, at, discarded) {
            return value;
        }
        let own_method = self.frames.last().and_then(|frame| frame.this.clone());
        if path.scope.is_empty()
            && let Some(this) = own_method
            && let Ty::Struct(of) = self.type_of_place(&this)
            && let Some(method) = self.method(&of, name, args.len())
        {
            let values = self.arguments(args);
            return self.inline_method(&method, &of, this, values, at);
        }
        if let Some(def) = self.choose_function(path, args.len()) {
            let values = self.arguments(args);
            return self.call_function(&def, path.args.as_deref(), values, at);
        }
        // `T(x)` for a user type, or a static method `S<T>::f(x)`.
        let ty = self.named_type(path);
        if !matches!(ty, Ty::Unknown(_)) {
            return self.construct(&ty, args, at);
        }
        if let Some(owner) = path.scope.last() {
            let owner_path = Path {
                scope: path.scope[..path.scope.len() - 1].to_vec(),
                name: owner.name,
                args: owner.args.clone(),
            };
            if let Ty::Struct(of) = self.named_type(&owner_path)
                && let Some(method) = self.method(&of, name, args.len())
            {
                let values = self.arguments(args);
                // No object, but what the class names is in scope.
                let this = Obj { ty: of.clone(), fields: Vec::new(), origin: None };
                let this = Rc::new(Place::Value(Val::Obj(Rc::new(this))));
                return self.inline_method(&method, &of, this, values, at);
            }
        }
        self.unknown_call(args, at)
    }

    /// A function that is not seen: it may change what it is given a pointer or reference to.
    fn unknown_call(&mut self, args: &[Expr], at: Span) -> Val {
        let values = self.arguments(args);
        let mut inputs = Vec::new();
        for (value, arg) in values.into_iter().zip(args) {
            match value {
                // `dispatch(type, [&] { kernel<<<…>>>(…); })`: it may call what it is given.
                Val::Lambda(closure) if self.mode == Mode::Host && closure.lambda.params.is_empty() => {
                    self.call_closure(&closure, Vec::new(), at);
                }
                Val::Ref(place) => {
                    let address_taken = matches!(arg.kind, ExprKind::Unary(ast::UnaryOp::AddrOf, _))
                        || matches!(*place, Place::Slot { .. });
                    let value = self.plain(Val::Ref(place.clone()), arg.span);
                    self.mark_all_used(&value);
                    inputs.push(self.atom(&value));
                    if address_taken && matches!(arg.kind, ExprKind::Unary(ast::UnaryOp::AddrOf, _)) {
                        self.forget(&place, &inputs.clone(), at);
                    }
                }
                value => {
                    self.mark_all_used(&value);
                    inputs.push(self.atom(&value));
                }
            }
        }
        if self.mode == Mode::Device {
            // It may read threadIdx itself.
            inputs.push(self.linear_thread());
        }
        let atom = self.arena.opaque(inputs);
        Val::Opaque(Ty::Unknown("result of a function that is not seen"), atom)
    }

    /// The place may hold anything now.
    pub fn forget(&mut self, place: &Place, inputs: &[ExprId], at: Span) {
        if let Place::Slot { .. } = place {
            let ty = self.type_of_place(place);
            let value = self.opaque_of(&ty, inputs.to_vec());
            self.write(place, value, at);
        }
    }

    pub fn is_function_macro(&self, name: Name, at: Span) -> bool {
        !self.expanding.contains(&name)
            && self
                .project
                .macro_at(&self.tu, name, at.file, at.start)
                .is_some_and(|found| found.params.is_some())
    }

    fn call_macro(&mut self, name: Name, args: &[Expr], at: Span, discarded: bool) -> Val {
        self.expanding.push(name);
        let value = self.call_expansion(name, args, at, discarded);
        self.expanding.pop();
        value
    }

    fn call_expansion(&mut self, name: Name, args: &[Expr], at: Span, discarded: bool) -> Val {
        let mut texts = self.argument_texts(name, args, at);
        self.keep_lambda(args, &mut texts);
        if let Some(expr) = self.macro_expr(name, Some(&texts), at) {
            return if discarded {
                self.discard(&expr);
                Val::Void
            } else {
                self.value_or_place(&expr)
            };
        }
        if discarded && let Some(body) = self.macro_body(name, Some(&texts), at) {
            self.statements(&body);
            return Val::Void;
        }
        // Not parseable as written: what it wraps still runs (`CHECK(cudaMalloc(…))`).
        self.unknown_call(args, at)
    }

    /// The arguments of a macro as the preprocessor sees them. An expression's span would lose its outer parentheses, and
    /// `IDX((i - 1), j)` its meaning.
    pub fn argument_texts(&self, name: Name, args: &[Expr], at: Span) -> Vec<String> {
        let written = self.sources.text(at).trim_start().strip_prefix(name.as_str());
        match written.and_then(super::macros::arguments) {
            Some((texts, _)) => texts,
            None => args.iter().map(|arg| self.sources.text(arg.span).to_owned()).collect(),
        }
    }

    pub fn call_value(&mut self, target: Val, args: Vec<Val>, at: Span) -> Val {
        match target {
            Val::Lambda(closure) => self.call_closure(&closure, args, at),
            Val::Function(names) => {
                let [function] = &*names else { return self.opaque_call(&args) };
                match self.choose_function(&Path::simple(function.name), args.len()) {
                    Some(def) => self.call_instance(&def, function.template.to_vec(), args, at),
                    None => self.opaque_call(&args),
                }
            }
            Val::Ref(place) => {
                let value = match &*place {
                    Place::Slot { slot, path } => self.read_slot(*slot, path),
                    Place::Value(value) => value.clone(),
                    Place::Memory { .. } => Val::Ref(place.clone()),
                };
                match value {
                    Val::Lambda(_) | Val::Function(_) => self.call_value(value, args, at),
                    Val::Ref(inner) if !Rc::ptr_eq(&inner, &place) => {
                        self.call_value(Val::Ref(inner), args, at)
                    }
                    _ => match self.call_operator(Val::Ref(place), "operator()", &args, at) {
                        Some(value) => value,
                        None => self.opaque_call(&args),
                    },
                }
            }
            object => match self.call_operator(object, "operator()", &args, at) {
                Some(value) => value,
                None => self.opaque_call(&args),
            },
        }
    }

    fn opaque_call(&mut self, args: &[Val]) -> Val {
        let inputs = args.iter().map(|arg| self.atom(arg)).collect();
        let atom = self.arena.opaque(inputs);
        Val::Opaque(Ty::Unknown("result of a function that is not seen"), atom)
    }

    fn call_closure(&mut self, closure: &Rc<Closure>, args: Vec<Val>, at: Span) -> Val {
        if self.frames.len() > limits::CALL_DEPTH {
            return self.opaque_call(&args);
        }
        let name = Name::new("lambda");
        self.push_frame(name, self.file(), closure.env.clone(), Some(at));
        if let Some(frame) = self.frames.last_mut() {
            frame.scopes = closure.scopes.clone();
            frame.scopes.push(Scope::default());
        }
        self.bind_params(&closure.lambda.params, args, at);
        self.finish_call(&closure.lambda.body)
    }

    /// Runs a body in the frame just pushed and takes its result.
    fn finish_call(&mut self, body: &[ast::Stmt]) -> Val {
        let saved = self.alive;
        let at_end = std::mem::replace(&mut self.at_end, false);
        self.statements(body);
        self.at_end = at_end;
        self.alive = saved;
        let Some(frame) = self.frames.pop() else { return Val::Void };
        self.expanding = frame.expanding;
        match self.slot(frame.result).value.clone() {
            Val::Void if !matches!(frame.ret, Ty::Void | Ty::Auto) => self.opaque_of(&frame.ret, Vec::new()),
            value => value,
        }
    }

    fn bind_params(&mut self, params: &[VarDecl], args: Vec<Val>, at: Span) {
        let spans = std::mem::take(&mut self.argument_spans);
        let mut args = args.into_iter();
        for (place, param) in params.iter().enumerate() {
            let at = spans.get(place).copied().unwrap_or(at);
            if is_pack(param) {
                let rest: Vec<Val> = args.by_ref().collect();
                if let Some(frame) = self.frames.last_mut() {
                    frame.packs.insert(param.name, rest);
                }
                continue;
            }
            let arg = args.next();
            if let Type::Reference { to, .. } = &param.ty {
                let ty = self.ty(to);
                let place = match arg {
                    Some(Val::Ref(place)) => place,
                    Some(value) => Rc::new(self.temporary(value)),
                    None => Rc::new(Place::Value(Val::Void)),
                };
                self.declare(param.name, ty, Val::Ref(place), true);
                continue;
            }
            let ty = self.ty(&param.ty);
            let ty = match ty {
                Ty::Array(of, _) => Ty::Ptr(of),
                ty => ty,
            };
            let value = match arg {
                // `f(&x)`: the parameter points to what it was given.
                Some(Val::Ref(place)) if self.is_address_for(&place, &ty) => Val::Ref(place),
                Some(value) => {
                    let value = self.plain(value, at);
                    self.convert(value, &ty)
                }
                None => match &param.init {
                    ast::Init::Assign(expr) => {
                        let value = self.value(expr);
                        self.convert(value, &ty)
                    }
                    _ => Val::Void,
                },
            };
            let ty = if matches!(ty, Ty::Auto | Ty::Unknown(_)) { self.type_of(&value) } else { ty };
            self.declare(param.name, ty, value, false);
        }
    }

    /// Is the address of this variable, and not its value, what a parameter of this type takes?
    fn is_address_for(&mut self, place: &Place, param: &Ty) -> bool {
        if !matches!(place, Place::Slot { .. }) {
            return false;
        }
        let depth = |ty: &Ty| {
            let (mut ty, mut depth) = (ty.clone(), 0);
            while let Ty::Ptr(to) = ty {
                ty = (*to).clone();
                depth += 1;
            }
            let known = !matches!(ty, Ty::Auto | Ty::Unknown(_));
            known.then_some(depth)
        };
        match (depth(&self.type_of_place(place)), depth(param)) {
            (Some(of_place), Some(of_param)) => of_place + 1 == of_param,
            (None, _) | (_, None) => false,
        }
    }

    /// A value given a slot of its own, so that a reference can refer to it.
    fn temporary(&mut self, value: Val) -> Place {
        if let Val::Ptr(_) | Val::Int(..) | Val::Obj(_) = &value {
            let ty = self.type_of(&value);
            let id = SlotId(self.slots.len() as u32);
            self.slots.push(super::value::Slot {
                name: Name::new("temporary"),
                ty,
                value,
                is_reference: false,
            });
            return Place::Slot { slot: id, path: Vec::new() };
        }
        Place::Value(value)
    }

    fn choose_function(&mut self, path: &Path, count: usize) -> Option<Entry<Arc<FunctionDef>>> {
        let project = self.project;
        let candidates = project.functions(&self.tu, path.name);
        let scope = path.scope.last().map(|part| part.name);
        let fits = |entry: &&&Entry<Arc<FunctionDef>>| {
            let def = &entry.item;
            let needs = |param: &&VarDecl| matches!(param.init, ast::Init::None) && !is_pack(param);
            let required = def.params.iter().filter(needs).count();
            def.class.is_none()
                && (count <= def.params.len() || def.params.last().is_some_and(is_pack))
                && count >= required
                && scope.is_none_or(|scope| def.scope.is_empty() || def.scope.contains(&scope))
        };
        let mut fitting: Vec<_> = candidates.iter().filter(fits).collect();
        let side = |def: &FunctionDef| match self.mode {
            Mode::Device => def.qualifiers.device || def.qualifiers.is_constexpr,
            Mode::Host => !def.qualifiers.kernel && (def.qualifiers.host || !def.qualifiers.device),
        };
        if fitting.iter().any(|entry| side(&entry.item)) {
            fitting.retain(|entry| side(&entry.item));
        }
        let given = path.args.as_deref().unwrap_or(&[]);
        let special = fitting.iter().find(|entry| self.is_specialized_for(&entry.item, given));
        let special = special.map(|entry| (***entry).clone());
        // A specialisation is for its own arguments only; where they are deduced, the general template stands in.
        let general =
            fitting.iter().find(|entry| entry.item.specialization.is_none() && entry.item.body.is_some());
        special.or_else(|| general.or_else(|| fitting.first()).map(|entry| (***entry).clone()))
    }

    /// Is this the specialisation for the template arguments of a call?
    fn is_specialized_for(&mut self, def: &FunctionDef, given: &[TemplateArg]) -> bool {
        let Some(wanted) = &def.specialization else { return false };
        if wanted.is_empty() || given.len() < wanted.len() {
            return false;
        }
        wanted.iter().zip(given).all(|(wanted, given)| self.is_same_argument(wanted, given))
    }

    fn is_same_argument(&mut self, wanted: &TemplateArg, given: &TemplateArg) -> bool {
        let value = |exec: &mut Self, arg: &TemplateArg| {
            let is_value = matches!(arg, TemplateArg::Value(_));
            exec.template_value(arg, is_value)
        };
        match (value(self, wanted), value(self, given)) {
            (TemplateValue::Type(Ty::Unknown(_) | Ty::Auto), _)
            | (_, TemplateValue::Type(Ty::Unknown(_) | Ty::Auto)) => false,
            (TemplateValue::Type(a), TemplateValue::Type(b)) => a.name() == b.name(),
            (TemplateValue::Value(a), TemplateValue::Value(b)) => {
                let (a, b) = (self.atom(&a), self.atom(&b));
                a == b
            }
            (TemplateValue::Type(_), TemplateValue::Value(_))
            | (TemplateValue::Value(_), TemplateValue::Type(_)) => false,
        }
    }

    fn call_function(
        &mut self,
        entry: &Entry<Arc<FunctionDef>>,
        explicit: Option<&[TemplateArg]>,
        args: Vec<Val>,
        at: Span,
    ) -> Val {
        let explicit = explicit.map(|args| self.template_values(&entry.item, args)).unwrap_or_default();
        self.call_instance(entry, explicit, args, at)
    }

    fn call_instance(
        &mut self,
        entry: &Entry<Arc<FunctionDef>>,
        explicit: Vec<TemplateValue>,
        args: Vec<Val>,
        at: Span,
    ) -> Val {
        let def = entry.item.clone();
        let depth = self.frames.iter().filter(|frame| frame.function == def.name).count();
        let host_only = self.mode == Mode::Host && !self.launching.contains(&def.name_span);
        let long =
            host_only && def.body_span.is_some_and(|span| span.end - span.start > limits::LONG_HOST_FUNCTION);
        if self.frames.len() > limits::CALL_DEPTH || depth > 2 || self.out_of_budget() || long {
            let plain = self.rvalues(&args, at);
            if long {
                self.forget_references(&def, &args, at);
            }
            return self.opaque_call(&plain);
        }
        self.mark_entered(&def);
        let spans = std::mem::take(&mut self.argument_spans);
        let env = self.bind_template_args(&def, &explicit, &args);
        self.push_frame(def.name, entry.file, env, Some(at));
        let ret = self.ty(&def.ret);
        self.argument_spans = spans;
        self.bind_params(&def.params, args, at);
        if let Some(frame) = self.frames.last_mut() {
            frame.ret = ret;
        }
        self.finish_call(def.body.as_deref().unwrap_or(&[]))
    }

    fn forget_references(&mut self, def: &FunctionDef, args: &[Val], at: Span) {
        for (param, arg) in def.params.iter().zip(args) {
            let mutable = matches!(
                &param.ty,
                Type::Reference { is_const: false, .. } | Type::Pointer { is_const: false, .. }
            );
            if let (Val::Ref(place), true) = (arg, mutable) {
                self.forget(&place.clone(), &[], at);
            }
        }
    }

    // Templates.

    pub fn template_values(&mut self, def: &FunctionDef, args: &[TemplateArg]) -> Vec<TemplateValue> {
        args.iter()
            .enumerate()
            .map(|(place, arg)| {
                let wants_value = matches!(
                    def.template.get(place).map(|param| &param.kind),
                    Some(TemplateParamKind::Value { .. })
                );
                self.template_value(arg, wants_value)
            })
            .collect()
    }

    fn template_value(&mut self, arg: &TemplateArg, wants_value: bool) -> TemplateValue {
        match arg {
            TemplateArg::Value(expr) => TemplateValue::Value(self.quietly(|exec| exec.value(expr))),
            TemplateArg::Type(Type::Named(path))
                if wants_value || matches!(self.named_type(path), Ty::Unknown(_)) =>
            {
                // A type parameter of a function whose own arguments are not seen stays a type.
                if let Some(TemplateValue::Type(ty)) =
                    path.as_simple().and_then(|name| self.env().get(name).cloned())
                {
                    return TemplateValue::Type(ty);
                }
                let span = Span::new(self.file(), 0, 0);
                let expr = Expr { span, kind: ExprKind::Name(path.clone()) };
                TemplateValue::Value(self.quietly(|exec| exec.value(&expr)))
            }
            TemplateArg::Type(ty) => TemplateValue::Type(self.ty(ty)),
        }
    }

    pub fn bind_template_args(
        &mut self,
        def: &FunctionDef,
        explicit: &[TemplateValue],
        args: &[Val],
    ) -> Rc<TemplateEnv> {
        if def.template.is_empty() {
            return Rc::default();
        }
        let mut env = TemplateEnv::default();
        for (param, value) in def.template.iter().zip(explicit) {
            env.args.insert(param.name, value.clone());
        }
        for (param, arg) in def.params.iter().zip(args) {
            let ty = self.type_of(arg);
            self.deduce(&param.ty, &ty, arg, def, &mut env);
        }
        for param in &def.template {
            if env.args.contains_key(&param.name) {
                continue;
            }
            let value = match &param.kind {
                TemplateParamKind::Type { default: Some(ty) } => {
                    Some(TemplateValue::Type(self.with_env(Rc::new(env.clone()), |exec| exec.ty(ty))))
                }
                TemplateParamKind::Value { default: Some(expr), .. } => Some(TemplateValue::Value(
                    self.with_env(Rc::new(env.clone()), |exec| exec.quietly(|exec| exec.value(expr))),
                )),
                TemplateParamKind::Value { ty: Type::Bool, .. } => {
                    let value = self.marked_unknown(param.name.as_str(), |unknown| unknown.is_bool = true);
                    Some(TemplateValue::Value(Val::Int(value, Ty::Bool)))
                }
                TemplateParamKind::Value { .. } => {
                    let value =
                        self.marked_unknown(param.name.as_str(), |unknown| unknown.is_template = true);
                    Some(TemplateValue::Value(Val::Int(value, Ty::INT)))
                }
                TemplateParamKind::Type { default: None } if !param.is_pack => {
                    Some(TemplateValue::Type(Ty::Unknown(super::types::TEMPLATE_PARAMETER)))
                }
                TemplateParamKind::Type { .. } | TemplateParamKind::Template => None,
            };
            if let Some(value) = value {
                env.args.insert(param.name, value);
            }
        }
        Rc::new(env)
    }

    pub fn with_env<T>(&mut self, env: Rc<TemplateEnv>, f: impl FnOnce(&mut Self) -> T) -> T {
        self.push_frame(Name::new(""), self.file(), env, None);
        let out = f(self);
        if let Some(frame) = self.frames.pop() {
            self.expanding = frame.expanding;
        }
        out
    }

    fn deduce(&mut self, pattern: &Type, ty: &Ty, arg: &Val, def: &FunctionDef, env: &mut TemplateEnv) {
        match (pattern, ty) {
            (Type::Reference { to, .. }, ty) => self.deduce(to, ty, arg, def, env),
            (Type::Named(path), ty) => {
                if let Some(name) = path.as_simple()
                    && def.template.iter().any(|param| param.name == name)
                {
                    let value = match (ty, arg) {
                        (Ty::Auto | Ty::Unknown(_), Val::Lambda(_) | Val::Function(_)) => {
                            TemplateValue::Value(arg.clone())
                        }
                        (Ty::Auto | Ty::Unknown(_), _) => return,
                        (Ty::Array(of, _), _) => TemplateValue::Type(Ty::Ptr(of.clone())),
                        _ => TemplateValue::Type(ty.clone()),
                    };
                    env.args.entry(name).or_insert(value);
                } else if let (Some(patterns), Ty::Struct(of)) = (&path.args, ty)
                    && let Some(struct_def) = &of.def
                {
                    let pairs: Vec<_> = patterns
                        .iter()
                        .zip(&struct_def.template)
                        .filter_map(|(pattern, param)| {
                            Some((pattern.clone(), of.env.get(param.name)?.clone()))
                        })
                        .collect();
                    for (pattern, value) in pairs {
                        self.deduce_arg(&pattern, &value, def, env);
                    }
                }
            }
            (Type::Pointer { to, .. }, Ty::Ptr(inner)) => self.deduce(to, inner, &Val::Void, def, env),
            (Type::Pointer { to, .. }, Ty::Array(inner, _)) => self.deduce(to, inner, &Val::Void, def, env),
            (Type::Array { of, extent }, Ty::Array(inner, len)) => {
                self.deduce(of, inner, &Val::Void, def, env);
                if let (Some(extent), Some(len)) = (extent, len)
                    && let ExprKind::Name(path) = &extent.kind
                {
                    env.args.entry(path.name).or_insert(TemplateValue::Value(Val::Int(*len, Ty::SIZE)));
                }
            }
            _ => {}
        }
    }

    fn deduce_arg(
        &mut self,
        pattern: &TemplateArg,
        value: &TemplateValue,
        def: &FunctionDef,
        env: &mut TemplateEnv,
    ) {
        match (pattern, value) {
            (TemplateArg::Type(pattern), TemplateValue::Type(ty)) => {
                self.deduce(pattern, ty, &Val::Void, def, env);
            }
            (TemplateArg::Type(Type::Named(path)), TemplateValue::Value(_)) => {
                if let Some(name) = path.as_simple()
                    && def.template.iter().any(|param| param.name == name)
                {
                    env.args.entry(name).or_insert(value.clone());
                }
            }
            (TemplateArg::Value(Expr { kind: ExprKind::Name(path), .. }), TemplateValue::Value(_))
                if def.template.iter().any(|param| param.name == path.name) =>
            {
                env.args.entry(path.name).or_insert(value.clone());
            }
            _ => {}
        }
    }

    // Methods.

    fn call_method(&mut self, base: &Expr, callee: &Expr, member: &Path, args: &[Expr], at: Span) -> Val {
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
        if let Val::Group(group) = object {
            args.iter().for_each(|arg| {
                self.value(arg);
            });
            return self.group_method(group, member.name);
        }
        let ty = self.type_of(&object);
        if let Ty::Struct(of) = &ty {
            if let Some(method) = self.method(of, member.name, args.len()) {
                let this = match object {
                    Val::Ref(place) => place,
                    value => Rc::new(self.temporary(value)),
                };
                let values = self.arguments(args);
                return self.inline_method(&method, &of.clone(), this, values, at);
            }
            // A member that is a callable: a lambda or a functor.
            if of.field(member.name).is_some() {
                let target = self.value_or_place(callee);
                let values = self.arguments(args);
                return self.call_value(target, values, at);
            }
        }
        let receiver = self.atom(&object);
        let result = self.unknown_call(args, at);
        let atom = self.atom(&result);
        let atom = self.combine(&[receiver, atom]);
        Val::Opaque(Ty::Unknown("result of a method that is not seen"), atom)
    }

    /// What an object's conversion operator makes of it.
    pub fn conversion(&mut self, obj: &Rc<Obj>) -> Option<Val> {
        let method = self.method(&obj.ty, Name::new("operator"), 0)?;
        let this = Rc::new(Place::Value(Val::Obj(obj.clone())));
        let at = method.name_span;
        Some(self.inline_method(&method, &obj.ty.clone(), this, Vec::new(), at))
    }

    /// A method by name that takes that many arguments, in the class or its bases.
    fn method(&self, of: &StructTy, name: Name, count: usize) -> Option<Arc<FunctionDef>> {
        let def = of.def.as_ref()?;
        let fits = |method: &&Arc<FunctionDef>| {
            let needs = |param: &&VarDecl| matches!(param.init, ast::Init::None) && !is_pack(param);
            let required = method.params.iter().filter(needs).count();
            let open = method.params.last().is_some_and(is_pack);
            let fits = count >= required && (open || count <= method.params.len());
            method.name == name && method.body.is_some() && fits
        };
        let inside = def.methods.iter().find(fits).cloned();
        let outside = || {
            let candidates = self.project.functions(&self.tu, name);
            let found = candidates.iter().find(|entry| {
                entry.item.class == Some(def.name)
                    && fits(&&entry.item)
                    && belongs_to(&entry.item, def)
                    && !self.is_of_another(&entry.item, def)
            });
            found.map(|entry| entry.item.clone())
        };
        let base = || {
            of.fields.iter().find_map(|field| match &field.ty {
                Ty::Struct(base) if field.name.as_str().is_empty() => self.method(base, name, count),
                _ => None,
            })
        };
        inside.or_else(outside).or_else(base)
    }

    /// Does the method stand in the body of another class of that name: a specialisation, or the general one?
    fn is_of_another(&self, method: &FunctionDef, def: &StructDef) -> bool {
        let classes = self.project.structs(&self.tu, def.name);
        classes.iter().any(|class| {
            class.item.span != def.span
                && class.item.methods.iter().any(|other| other.name_span == method.name_span)
        })
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
            if let Some(method) = self.method(&of, name, args.len()) {
                let this = match object {
                    Val::Ref(place) => place,
                    value => Rc::new(self.temporary(value)),
                };
                return Some(self.inline_method(&method, &of, this, args.to_vec(), at));
            }
        }
        if matches!(name.as_str(), "operator()" | "operator[]" | "operator=") {
            return None;
        }
        let mut all = vec![object];
        all.extend_from_slice(args);
        let types: Vec<Ty> = all.iter().map(|value| self.type_of(&value.clone())).collect();
        let entry = self
            .project
            .functions(&self.tu, name)
            .into_iter()
            .find(|entry| {
                entry.item.class.is_none()
                    && entry.item.params.len() == all.len()
                    && entry.item.params.iter().zip(&types).all(|(param, ty)| names_type(&param.ty, ty))
            })
            .cloned()?;
        Some(self.call_function(&entry, None, all, at))
    }

    fn mark_entered(&mut self, def: &FunctionDef) {
        if self.probing == 0 && self.mode == Mode::Host && self.launching.contains(&def.name_span) {
            self.entered.insert(def.name_span);
        }
    }

    fn inline_method(
        &mut self,
        method: &Arc<FunctionDef>,
        of: &Rc<StructTy>,
        this: Rc<Place>,
        args: Vec<Val>,
        at: Span,
    ) -> Val {
        let depth = self.frames.iter().filter(|frame| frame.function == method.name).count();
        if self.frames.len() > limits::CALL_DEPTH || depth > 3 || self.out_of_budget() {
            return self.opaque_call(&args);
        }
        self.mark_entered(method);
        let mut env = (*self.bind_template_args(method, &[], &args)).clone();
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

    pub fn construct_object(&mut self, of: &Rc<StructTy>, args: &[Expr], at: Span) -> Option<Val> {
        let def = of.def.clone()?;
        let constructor = self.method(of, def.name, args.len())?;
        let ty = Ty::Struct(of.clone());
        let value = self.uninitialized(&ty);
        let id = SlotId(self.slots.len() as u32);
        self.slots.push(super::value::Slot { name: def.name, ty, value, is_reference: false });
        let this = Rc::new(Place::Slot { slot: id, path: Vec::new() });
        let values = self.arguments(args);
        let mut env = (*self.bind_template_args(&constructor, &[], &values)).clone();
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

    // Launches.

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
                found.map(|def| self.template_values(&def, args)).unwrap_or_default()
            }
            None => Vec::new(),
        };
        Val::Function([FunctionRef { name: path.name, template: template.into(), when: Vec::new() }].into())
    }

    fn push_launch(
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

    // Types.

    pub fn ty(&mut self, ty: &Type) -> Ty {
        match ty {
            Type::Void => Ty::Void,
            Type::Bool => Ty::Bool,
            Type::Int { size, signed } => Ty::Int { size: *size, signed: *signed },
            Type::Float { size } => Ty::Float { size: *size },
            Type::Auto => Ty::Auto,
            Type::Pointer { to, .. } => Ty::Ptr(Rc::new(self.ty(to))),
            Type::Reference { to, .. } => Ty::Ref(Rc::new(self.ty(to))),
            Type::Array { of, extent } => {
                let of = self.ty(of);
                let extent = extent.as_ref().map(|extent| {
                    let value = self.quietly(|exec| exec.value(extent));
                    self.atom(&value)
                });
                Ty::Array(Rc::new(of), extent)
            }
            Type::Decltype(expr) => self.quietly(|exec| {
                let value = exec.value(expr);
                exec.type_of(&value)
            }),
            Type::Named(path) => self.named_type(path),
            Type::Unknown(reason) => Ty::Unknown(reason),
        }
    }

    pub fn named_type(&mut self, path: &Path) -> Ty {
        self.deeper(|exec| exec.named_type_of(path)).unwrap_or(Ty::Unknown("nested too deeply"))
    }

    fn named_type_of(&mut self, path: &Path) -> Ty {
        const UNSEEN: Ty = Ty::Unknown("type that is not seen");
        let name = path.name;
        if path.args.is_none() && path.scope.is_empty() {
            match self.env().get(name) {
                Some(TemplateValue::Type(ty)) => return ty.clone(),
                Some(TemplateValue::Value(_)) => return Ty::Unknown("template value"),
                None => {}
            }
        }
        if let Some(owner) = path.scope.last() {
            let owner_path = Path {
                scope: path.scope[..path.scope.len() - 1].to_vec(),
                name: owner.name,
                args: owner.args.clone(),
            };
            if let Ty::Struct(of) = self.named_type(&owner_path) {
                return self.member_type(&of, path).unwrap_or(UNSEEN);
            }
        }
        if let Some(this) = self.frames.last().and_then(|frame| frame.this.clone())
            && path.scope.is_empty()
            && let Ty::Struct(of) = self.type_of_place(&this)
        {
            if of.def.as_ref().is_some_and(|def| def.name == name) && path.args.is_none() {
                return Ty::Struct(of);
            }
            if let Some(ty) = self.member_type(&of, path) {
                return ty;
            }
        }
        if path.args.is_none() {
            if let Some(ty) = named_scalar(name.as_str()) {
                return ty;
            }
            if let Some(of) = self.structs.get(name.as_str())
                && of.is_vector
            {
                return Ty::Struct(of.clone());
            }
            if let Some(of) = vector_type(name.as_str()) {
                let of = Rc::new(of);
                self.structs.insert(name.to_string(), of.clone());
                return Ty::Struct(of);
            }
        }
        if name.as_str() == "cudaLaunchConfig_t" {
            return self.launch_config_type();
        }
        if self.frames.len() > 3 * limits::CALL_DEPTH || self.out_of_budget() {
            return UNSEEN;
        }
        if let Some(ty) = self.struct_named(path) {
            return ty;
        }
        if let Some(entry) = self.project.alias(&self.tu, name).cloned() {
            return self.alias_type(&entry.item, path.args.as_deref());
        }
        if let Some(entry) = self.project.enumeration(&self.tu, name).cloned() {
            return entry.item.underlying.as_ref().map_or(Ty::INT, |ty| self.ty(ty));
        }
        if path.scope.is_empty() && path.args.is_none() {
            let at = Span::new(self.file(), 0, 0);
            let lookup = |name: Name| self.project.macro_at(&self.tu, name, at.file, u32::MAX);
            if let Some(found) = lookup(name)
                && found.params.is_none()
                && let Some(text) = super::macros::expand_call(&found, None, &lookup)
                && let Some(ty) = crate::syntax::parse_type(&text, at)
                && !matches!(&ty, Type::Named(inner) if inner.name == name)
            {
                return self.ty(&ty);
            }
        }
        self.pytorch_type(path).unwrap_or(UNSEEN)
    }

    fn pytorch_type(&mut self, path: &Path) -> Option<Ty> {
        let arg = path.args.as_ref()?.first()?;
        if path.name.as_str() == "ScalarTypeToCPPTypeT" {
            return match arg {
                TemplateArg::Type(Type::Named(scalar)) => super::pytorch::scalar_type(scalar.name.as_str()),
                TemplateArg::Value(Expr { kind: ExprKind::Name(scalar), .. }) => {
                    super::pytorch::scalar_type(scalar.name.as_str())
                }
                TemplateArg::Type(_) | TemplateArg::Value(_) => None,
            };
        }
        let TemplateArg::Type(of) = arg else { return None };
        let of = self.ty(of);
        super::pytorch::computing_type(path.name.as_str(), &of)
    }

    fn alias_type(&mut self, alias: &ast::Alias, args: Option<&[TemplateArg]>) -> Ty {
        if alias.template.is_empty() {
            return self.with_env(Rc::default(), |exec| exec.ty(&alias.ty));
        }
        let mut env = TemplateEnv::default();
        for (param, arg) in alias.template.iter().zip(args.unwrap_or(&[])) {
            let value = self.template_value(arg, matches!(param.kind, TemplateParamKind::Value { .. }));
            env.args.insert(param.name, value);
        }
        self.with_env(Rc::new(env), |exec| exec.ty(&alias.ty))
    }

    fn member_type(&mut self, of: &Rc<StructTy>, path: &Path) -> Option<Ty> {
        let def = of.def.clone()?;
        let name = path.name;
        if let Some(alias) = def.aliases.iter().find(|alias| alias.name == name) {
            let env = of.env.clone();
            let alias = alias.clone();
            return Some(self.with_env(env, |exec| exec.ty(&alias.ty)));
        }
        if let Some(inner) = def.structs.iter().find(|inner| inner.name == name) {
            let args = path.args.clone().unwrap_or_default();
            return Some(self.instantiate(inner, of.file, &args, of.env.clone()));
        }
        if def.enums.iter().any(|item| item.name == name) {
            return Some(Ty::INT);
        }
        of.fields.iter().find_map(|field| match &field.ty {
            Ty::Struct(base) if field.name.as_str().is_empty() => self.member_type(&base.clone(), path),
            _ => None,
        })
    }

    fn struct_named(&mut self, path: &Path) -> Option<Ty> {
        let candidates = self.project.structs(&self.tu, path.name);
        let primary = candidates
            .iter()
            .find(|entry| entry.item.specialization.is_none() && has_content(&entry.item))
            .or_else(|| candidates.iter().find(|entry| entry.item.specialization.is_none()))
            .or(candidates.first())
            .map(|entry| (**entry).clone())?;
        let args = path.args.clone().unwrap_or_default();
        let special: Vec<Entry<Arc<ast::StructDef>>> = candidates
            .iter()
            .filter(|entry| entry.item.specialization.is_some() && has_content(&entry.item))
            .map(|entry| (**entry).clone())
            .collect();
        let complete = with_defaults(&args, &primary.item.template);
        for entry in special {
            if let Some(args) = self.specialized(&entry.item, &complete) {
                return Some(self.instantiate(&entry.item, entry.file, &args, Rc::default()));
            }
        }
        Some(self.instantiate(&primary.item, primary.file, &args, Rc::default()))
    }

    /// The arguments of a specialisation's own parameters, where it is one for the arguments given: `<T, 4>` for `<float, 4>`
    /// has `float` for its `T`.
    fn specialized(&mut self, def: &ast::StructDef, given: &[TemplateArg]) -> Option<Vec<TemplateArg>> {
        let wanted = def.specialization.as_ref().filter(|wanted| wanted.len() == given.len())?;
        let param_of = |arg: &TemplateArg| {
            let path = match arg {
                TemplateArg::Type(Type::Named(path)) => path,
                TemplateArg::Value(Expr { kind: ExprKind::Name(path), .. }) => path,
                TemplateArg::Type(_) | TemplateArg::Value(_) => return None,
            };
            def.template.iter().position(|param| Some(param.name) == path.as_simple())
        };
        let mut own: Vec<Option<TemplateArg>> = vec![None; def.template.len()];
        for (wanted, given) in wanted.iter().zip(given) {
            match param_of(wanted) {
                Some(place) => *own.get_mut(place)? = Some(given.clone()),
                None if self.is_same_argument(wanted, given) => {}
                None => return None,
            }
        }
        own.into_iter().collect()
    }

    /// The class with its template arguments put in: fields, offsets, size.
    pub fn instantiate(
        &mut self,
        def: &Arc<StructDef>,
        file: FileId,
        args: &[TemplateArg],
        outer: Rc<TemplateEnv>,
    ) -> Ty {
        // Types count as work, too: libraries compute with them.
        self.steps += limits::STEPS_PER_TYPE;
        let mut env = TemplateEnv { outer: Some(outer), ..TemplateEnv::default() };
        let mut spelling = Vec::new();
        for (place, param) in def.template.iter().enumerate() {
            let value = match (args.get(place), &param.kind) {
                (Some(arg), kind) => {
                    Some(self.template_value(arg, matches!(kind, TemplateParamKind::Value { .. })))
                }
                (None, TemplateParamKind::Type { default: Some(ty) }) => {
                    let ty = ty.clone();
                    Some(TemplateValue::Type(self.with_env(Rc::new(env.clone()), |exec| exec.ty(&ty))))
                }
                (None, TemplateParamKind::Value { default: Some(expr), .. }) => {
                    let expr = expr.clone();
                    let env = Rc::new(env.clone());
                    Some(TemplateValue::Value(
                        self.with_env(env, |exec| exec.quietly(|exec| exec.value(&expr))),
                    ))
                }
                _ => None,
            };
            spelling.push(match &value {
                Some(TemplateValue::Type(ty)) => ty.name(),
                Some(TemplateValue::Value(value)) => {
                    let atom = self.atom(value);
                    self.arena.display(atom).to_string()
                }
                None => "?".to_owned(),
            });
            if let Some(value) = value {
                env.args.insert(param.name, value);
            }
        }
        let name = if spelling.is_empty() {
            def.name.to_string()
        } else {
            format!("{}<{}>", def.name, spelling.join(", "))
        };
        let key = format!("{name}@{}:{}", file.0, def.span.start);
        if let Some(known) = self.structs.get(&key) {
            return Ty::Struct(known.clone());
        }
        let placeholder = StructTy {
            name: name.clone(),
            size: None,
            align: 1,
            fields: Vec::new(),
            def: None,
            file,
            env: Rc::default(),
            is_vector: false,
        };
        self.structs.insert(key.clone(), Rc::new(placeholder));
        let env = Rc::new(env);
        let mut of = self.with_env(env.clone(), |exec| exec.layout(def));
        of.name = name;
        of.file = file;
        of.env = env;
        of.def = Some(def.clone());
        let of = Rc::new(of);
        self.structs.insert(key, of.clone());
        Ty::Struct(of)
    }

    fn layout(&mut self, def: &Arc<StructDef>) -> StructTy {
        let mut fields = Vec::new();
        let (mut offset, mut align, mut known) = (0i64, 1i64, true);
        let mut size = 0i64;
        let bases = def.bases.iter().map(|base| (Name::new(""), base.clone(), None));
        let members = def.fields.iter().map(|field| (field.name, field.ty.clone(), field.align.clone()));
        for (name, ty, declared) in bases.chain(members).take(256) {
            let ty = self.ty(&ty);
            if name.as_str().is_empty()
                && let Ty::Struct(base) = &ty
                && base.fields.is_empty()
            {
                continue;
            }
            let mut field_align = if def.packed { 1 } else { ty.align() };
            if let Some(expr) = declared {
                let value = self.quietly(|exec| exec.value(&expr));
                let atom = self.atom(&value);
                field_align = self.arena.as_const(atom).unwrap_or(field_align).max(field_align);
            }
            align = align.max(field_align);
            let bytes = self.constant_size(&ty);
            let start = if def.is_union { 0 } else { round_up(offset, field_align) };
            fields.push(FieldTy { name, ty, offset: known.then_some(start) });
            match bytes {
                Some(bytes) => {
                    offset = start.saturating_add(bytes);
                    size = size.max(offset);
                }
                None => known = false,
            }
        }
        if let Some(expr) = &def.align {
            let value = self.quietly(|exec| exec.value(expr));
            let atom = self.atom(&value);
            align = self.arena.as_const(atom).unwrap_or(align).clamp(align, 1024);
        }
        StructTy {
            name: String::new(),
            size: known.then_some(round_up(size.max(1), align)),
            align,
            fields,
            def: None,
            file: FileId(0),
            env: Rc::default(),
            is_vector: false,
        }
    }

    fn launch_config_type(&mut self) -> Ty {
        if let Some(of) = self.structs.get("cudaLaunchConfig_t") {
            return Ty::Struct(of.clone());
        }
        let dim3 = self.named_type(&Path::simple(Name::new("dim3")));
        let field = |name, ty: &Ty| FieldTy { name: Name::new(name), ty: ty.clone(), offset: Some(0) };
        let of = Rc::new(StructTy {
            name: "cudaLaunchConfig_t".into(),
            size: Some(56),
            align: 8,
            fields: vec![
                field("gridDim", &dim3),
                field("blockDim", &dim3),
                field("dynamicSmemBytes", &Ty::SIZE),
            ],
            def: None,
            file: FileId(0),
            env: Rc::default(),
            is_vector: false,
        });
        self.structs.insert("cudaLaunchConfig_t".into(), of.clone());
        Ty::Struct(of)
    }

    pub fn size_of(&mut self, ty: &Ty) -> Option<ExprId> {
        match ty {
            Ty::Array(of, len) => {
                let of = self.size_of(of)?;
                Some(self.arena.mul((*len)?, of))
            }
            Ty::Void => Some(self.arena.constant(1)),
            other => other.scalar_size().map(|size| self.arena.constant(size)),
        }
    }

    pub fn constant_size(&mut self, ty: &Ty) -> Option<i64> {
        let size = self.size_of(ty)?;
        self.arena.as_const(size)
    }

    /// A value of which only the type is known: a kernel parameter.
    /// An object of a class whose members may be anything: what a method is called on.
    pub fn some_object(&mut self, class: Name) -> Option<Rc<Place>> {
        let Ty::Struct(of) = self.named_type(&Path::simple(class)) else { return None };
        let fields =
            of.fields.iter().map(|field| self.symbolic(&field.ty, field.name.as_str(), None)).collect();
        let value = Val::Obj(Rc::new(Obj { ty: of.clone(), fields, origin: None }));
        let slot = SlotId(self.slots.len() as u32);
        self.slots.push(super::value::Slot { name: class, ty: Ty::Struct(of), value, is_reference: false });
        Some(Rc::new(Place::Slot { slot, path: Vec::new() }))
    }

    pub fn symbolic(&mut self, ty: &Ty, name: &str, param: Option<usize>) -> Val {
        match ty {
            Ty::Int { .. } => Val::Int(self.named_unknown(name), ty.clone()),
            Ty::Bool => {
                let value = self.marked_unknown(name, |unknown| unknown.is_bool = true);
                Val::Int(value, Ty::Bool)
            }
            Ty::Float { size } => Val::Float(None, self.named_unknown(name), *size),
            Ty::Ptr(to) => {
                let base = self.named_base(name, MemorySpace::Global, to, param);
                let offset = self.arena.constant(0);
                Val::Ptr(Pointer { base, offset, to: (**to).clone() })
            }
            Ty::Ref(to) => {
                let base = self.named_base(name, MemorySpace::Global, to, param);
                let offset = self.arena.constant(0);
                let pointer = Pointer { base, offset, to: (**to).clone() };
                Val::Ref(Rc::new(Place::Memory { pointer, aggregate: None }))
            }
            Ty::Struct(of) if !of.fields.is_empty() => {
                let of = of.clone();
                let fields = of
                    .fields
                    .iter()
                    .map(|field| {
                        let full = if field.name.as_str().is_empty() {
                            name.to_owned()
                        } else {
                            format!("{name}.{}", field.name)
                        };
                        self.symbolic(&field.ty, &full, param)
                    })
                    .collect();
                Val::Obj(Rc::new(Obj { ty: of, fields, origin: None }))
            }
            Ty::Array(of, len) => {
                let len_known = len.and_then(|len| self.arena.as_const(len)).filter(|&len| len <= 16);
                let mut known = std::collections::BTreeMap::new();
                for at in 0..len_known.unwrap_or(0) {
                    known.insert(at, self.symbolic(of, &format!("{name}[{at}]"), param));
                }
                let rest = self.named_unknown(name);
                Val::Array(Rc::new(ArrayVal { of: (**of).clone(), len: *len, known, rest, origin: None }))
            }
            other => Val::Opaque(other.clone(), self.named_unknown(name)),
        }
    }
}

fn has_content(def: &StructDef) -> bool {
    let members = !def.fields.is_empty() || !def.methods.is_empty() || !def.constants.is_empty();
    members
        || !def.bases.is_empty()
        || !def.aliases.is_empty()
        || !def.structs.is_empty()
        || !def.enums.is_empty()
}

fn round_up(value: i64, to: i64) -> i64 {
    let to = to.max(1);
    (value + to - 1) / to * to
}

/// Could a parameter written `pattern` take a value of type `ty`? By name, for overloaded operators.
fn names_type(pattern: &Type, ty: &Ty) -> bool {
    match (pattern, ty) {
        (Type::Reference { to, .. }, ty) => names_type(to, ty),
        (pattern, Ty::Ref(to)) => names_type(pattern, to),
        (Type::Named(path), Ty::Struct(of)) => {
            of.name == path.name.as_str() || of.def.as_ref().is_some_and(|def| def.name == path.name)
        }
        (Type::Named(path), ty) => {
            named_scalar(path.name.as_str()).is_some_and(|known| known.name() == ty.name())
        }
        (Type::Int { .. } | Type::Bool, Ty::Int { .. } | Ty::Bool) => true,
        (Type::Float { .. }, Ty::Float { .. } | Ty::Int { .. }) => true,
        (Type::Pointer { .. }, Ty::Ptr(_)) => true,
        _ => false,
    }
}

/// `Args... args`
fn is_pack(param: &VarDecl) -> bool {
    matches!(param.ty, Type::Unknown("parameter pack"))
}

/// Is a method that is defined outside its class one of this very class: of the general template, or of the specialisation
/// that its own arguments spell?
fn belongs_to(method: &FunctionDef, def: &StructDef) -> bool {
    let Some(args) = &method.class_args else { return true };
    match &def.specialization {
        Some(wanted) => {
            wanted.len() == args.len() && wanted.iter().zip(args).all(|(a, b)| is_spelt_alike(a, b))
        }
        None => args.iter().all(|arg| match arg {
            TemplateArg::Type(Type::Named(path)) => {
                path.as_simple().is_some_and(|name| method.template.iter().any(|param| param.name == name))
            }
            TemplateArg::Value(Expr { kind: ExprKind::Name(path), .. }) => {
                path.as_simple().is_some_and(|name| method.template.iter().any(|param| param.name == name))
            }
            // `Ts...`
            TemplateArg::Value(Expr { kind: ExprKind::PackExpansion(_), .. }) => true,
            TemplateArg::Type(_) | TemplateArg::Value(_) => false,
        }),
    }
}

fn is_spelt_alike(a: &TemplateArg, b: &TemplateArg) -> bool {
    match (a, b) {
        (TemplateArg::Type(a), TemplateArg::Type(b)) => a == b,
        (TemplateArg::Value(a), TemplateArg::Value(b)) => a.kind == b.kind,
        (TemplateArg::Type(_), TemplateArg::Value(_)) | (TemplateArg::Value(_), TemplateArg::Type(_)) => {
            false
        }
    }
}

/// The arguments given, with those of the parameters' defaults that are left out.
fn with_defaults(given: &[TemplateArg], params: &[ast::TemplateParam]) -> Vec<TemplateArg> {
    let rest = params.iter().skip(given.len()).map_while(|param| match &param.kind {
        TemplateParamKind::Type { default } => default.clone().map(TemplateArg::Type),
        TemplateParamKind::Value { default, .. } => default.clone().map(TemplateArg::Value),
        TemplateParamKind::Template => None,
    });
    given.iter().cloned().chain(rest).collect()
}
