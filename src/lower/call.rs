//! Calls: arguments, inlining, what stands for a function that is not seen.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::exec::{Exec, Mode};
use super::loops::Leaving;
use super::overload::is_pack;
use super::project::Entry;
use super::types::{TemplateEnv, TemplateValue, Ty};
use super::value::{Closure, Obj, Place, Scope, SlotId, Val};
use crate::index::expr::ExprId;
use crate::index::limits;
use crate::ir::ast::{self, BinaryOp, Expr, ExprKind, FunctionDef, Name, Path, TemplateArg, Type, VarDecl};
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
    pub(super) fn arguments(&mut self, args: &[Expr]) -> Vec<Val> {
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

    pub(super) fn rvalues(&mut self, args: &[Val], at: Span) -> Vec<Val> {
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
        if args.is_empty()
            && let Some(value) = self.type_trait(path)
        {
            return value;
        }
        if let Some(value) = self.builtin_call(path, args, at, discarded) {
            return value;
        }
        let own_method = self.frames.last().and_then(|frame| frame.this.clone());
        if path.scope.is_empty()
            && let Some(this) = own_method
            && let Ty::Struct(of) = self.type_of_place(&this)
            && let methods @ [_, ..] = &self.methods(&of, name, args.len())[..]
        {
            let values = self.arguments(args);
            if let Some(method) = self.choose_method(&of, methods.to_vec(), &values) {
                return self.inline_method(&method, &of, this, path.args.as_deref(), values, at);
            }
        }
        let functions = self.functions_for(path, args.len());
        if !functions.is_empty() {
            let values = self.arguments(args);
            if let Some(def) = self.choose(functions, path.args.as_deref(), &values) {
                return self.call_function(&def, path.args.as_deref(), values, at);
            }
        }
        if let Some(value) = self.standard_call(path, args) {
            return value;
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
                && let methods @ [_, ..] = &self.methods(&of, name, args.len())[..]
            {
                let values = self.arguments(args);
                let Some(method) = self.choose_method(&of, methods.to_vec(), &values) else {
                    return self.opaque_call(&values);
                };
                // No object, but what the class names is in scope.
                let this = Obj { ty: of.clone(), fields: Vec::new(), origin: None };
                let this = Rc::new(Place::Value(Val::Obj(Rc::new(this))));
                return self.inline_method(&method, &of, this, path.args.as_deref(), values, at);
            }
        }
        // What is called so keeps accesses apart as a rule.
        let says = |word: &str| name.as_str().to_ascii_lowercase().contains(word);
        if ["sync", "barrier", "fence", "wait"].into_iter().any(says) {
            self.fence();
        }
        let result = self.unknown_call(args, at);
        if self.mode == Mode::Host && is_check(name) {
            self.hold(args.first());
        }
        result
    }

    /// What a check of the host lets through holds from here on: `TORCH_CHECK(n % 8 == 0, …)`.
    fn hold(&mut self, checked: Option<&Expr>) {
        let Some(checked) = checked.filter(|expr| is_comparison(expr)) else { return };
        let holds = self.quietly(|exec| exec.condition(checked));
        // What can be worked out is left to the program.
        if self.arena.as_const(holds).is_none() {
            self.alive = self.arena.and(self.alive, holds);
        }
    }

    /// A function that is not seen: it may change what it is given a pointer or reference to.
    pub(super) fn unknown_call(&mut self, args: &[Expr], at: Span) -> Val {
        let values = self.arguments(args);
        let mut inputs = Vec::new();
        for (value, arg) in values.into_iter().zip(args) {
            match value {
                // `dispatch(type, [&] { kernel<<<…>>>(…); })`: it may call what it is given.
                Val::Lambda(closure) if self.mode == Mode::Host && closure.lambda.params.is_empty() => {
                    self.call_closure(&closure, &[], Vec::new(), at);
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
            Val::Lambda(closure) => self.call_closure(&closure, &[], args, at),
            Val::Function(names) => {
                let [function] = &*names else { return self.opaque_call(&args) };
                let functions = self.functions_for(&Path::simple(function.name), args.len());
                match self.choose(functions, None, &args) {
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

    pub(super) fn opaque_call(&mut self, args: &[Val]) -> Val {
        let inputs = args.iter().map(|arg| self.atom(arg)).collect();
        let atom = self.arena.opaque(inputs);
        Val::Opaque(Ty::Unknown("result of a function that is not seen"), atom)
    }

    /// A lambda with the template arguments that `f.template operator()<…>()` spells.
    pub(super) fn call_closure(
        &mut self,
        closure: &Rc<Closure>,
        explicit: &[TemplateArg],
        args: Vec<Val>,
        at: Span,
    ) -> Val {
        if self.frames.len() > limits::CALL_DEPTH {
            return self.opaque_call(&args);
        }
        let name = Name::new("lambda");
        let ast::Lambda { template, params, .. } = &*closure.lambda;
        let mut env = closure.env.clone();
        if !template.is_empty() {
            let explicit = self.template_values(template, explicit);
            let own = self.bind_template_args(template, params, &explicit, &args);
            env = Rc::new(TemplateEnv { outer: Some(env), ..(*own).clone() });
        }
        self.push_frame(name, self.file(), env, Some(at));
        if let Some(frame) = self.frames.last_mut() {
            frame.scopes = closure.scopes.clone();
            frame.scopes.push(Scope::default());
        }
        self.bind_params(&closure.lambda.params, args, at);
        self.finish_call(&closure.lambda.body)
    }

    /// Runs a body in the frame just pushed and takes its result.
    pub(super) fn finish_call(&mut self, body: &[ast::Stmt]) -> Val {
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

    pub(super) fn bind_params(&mut self, params: &[VarDecl], args: Vec<Val>, at: Span) {
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
    pub(super) fn temporary(&mut self, value: Val) -> Place {
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

    pub(super) fn call_function(
        &mut self,
        entry: &Entry<Arc<FunctionDef>>,
        explicit: Option<&[TemplateArg]>,
        args: Vec<Val>,
        at: Span,
    ) -> Val {
        let explicit =
            explicit.map(|args| self.template_values(&entry.item.template, args)).unwrap_or_default();
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
        let env = self.bind_template_args(&def.template, &def.params, &explicit, &args);
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
}

/// `assert`, `TORCH_CHECK`, `CHECK`, `TVM_FFI_ICHECK`, `NVTE_ENFORCE`: what stops the host unless its argument holds.
fn is_check(name: Name) -> bool {
    let name = name.as_str();
    let is_one =
        |word: &str| matches!(word, "CHECK" | "ICHECK" | "ASSERT" | "REQUIRE" | "ENFORCE" | "assert");
    name.split('_').any(is_one)
}

/// A comparison, or several: no status code of a call.
fn is_comparison(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Binary(BinaryOp::And | BinaryOp::Or, a, b) => is_comparison(a) && is_comparison(b),
        ExprKind::Binary(op, ..) => matches!(
            op,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
        ),
        _ => false,
    }
}
