//! Template arguments: given, deduced, defaulted.

use std::rc::Rc;

use super::exec::Exec;
use super::types::{TemplateEnv, TemplateValue, Ty};
use super::value::Val;
use crate::ir::ast::{
    Expr, ExprKind, FunctionDef, Instantiation, Name, TemplateArg, TemplateParam, TemplateParamKind, Type,
    VarDecl,
};

impl Exec<'_> {
    pub fn template_values(
        &mut self,
        template: &[TemplateParam],
        args: &[TemplateArg],
    ) -> Vec<TemplateValue> {
        args.iter()
            .enumerate()
            .map(|(place, arg)| {
                let wants_value = matches!(
                    template.get(place).map(|param| &param.kind),
                    Some(TemplateParamKind::Value { .. })
                );
                self.template_value(arg, wants_value)
            })
            .collect()
    }

    /// The template arguments of an explicit instantiation of `def`, deduced from its parameters where it does not spell them.
    pub fn instantiated(&mut self, def: &FunctionDef, instantiation: &Instantiation) -> Vec<TemplateValue> {
        if let Some(args) = &instantiation.function.args {
            return self.template_values(&def.template, args);
        }
        let params: Vec<Val> = instantiation
            .params
            .iter()
            .map(|param| {
                let ty = self.ty(&param.ty);
                self.symbolic(&ty, param.name.as_str(), None)
            })
            .collect();
        let env = self.bind_template_args(&def.template, &def.params, &[], &params);
        def.template.iter().map_while(|param| env.get(param.name).cloned()).collect()
    }

    pub(super) fn template_value(&mut self, arg: &TemplateArg, wants_value: bool) -> TemplateValue {
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
                let span = self.nowhere();
                let expr = Expr { span, kind: ExprKind::Name(path.clone()) };
                TemplateValue::Value(self.quietly(|exec| exec.value(&expr)))
            }
            TemplateArg::Type(ty) => TemplateValue::Type(self.ty(ty)),
        }
    }

    pub fn bind_template_args(
        &mut self,
        template: &[TemplateParam],
        params: &[VarDecl],
        explicit: &[TemplateValue],
        args: &[Val],
    ) -> Rc<TemplateEnv> {
        if template.is_empty() {
            return Rc::default();
        }
        let mut env = TemplateEnv::default();
        for (param, value) in template.iter().zip(explicit) {
            env.args.insert(param.name, value.clone());
        }
        for (param, arg) in params.iter().zip(args) {
            let ty = self.type_of(arg);
            self.deduce(&param.ty, &ty, arg, template, &mut env);
        }
        for param in template {
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

    pub fn deduce(
        &mut self,
        pattern: &Type,
        ty: &Ty,
        arg: &Val,
        template: &[TemplateParam],
        env: &mut TemplateEnv,
    ) {
        match (pattern, ty) {
            (Type::Reference { to, .. }, ty) => self.deduce(to, ty, arg, template, env),
            (Type::Named(path), ty) => {
                if let Some(name) = path.as_simple()
                    && template.iter().any(|param| param.name == name)
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
                        self.deduce_arg(&pattern, &value, template, env);
                    }
                }
            }
            (Type::Pointer { to, .. }, Ty::Ptr(inner)) => self.deduce(to, inner, &Val::Void, template, env),
            (Type::Pointer { to, .. }, Ty::Array(inner, _)) => {
                self.deduce(to, inner, &Val::Void, template, env)
            }
            (Type::Array { of, extent }, Ty::Array(inner, len)) => {
                self.deduce(of, inner, &Val::Void, template, env);
                if let (Some(extent), Some(len)) = (extent, len)
                    && let ExprKind::Name(path) = &extent.kind
                {
                    env.args.entry(path.name).or_insert(TemplateValue::Value(Val::Int(*len, Ty::SIZE)));
                }
            }
            _ => {}
        }
    }

    pub(super) fn deduce_arg(
        &mut self,
        pattern: &TemplateArg,
        value: &TemplateValue,
        template: &[TemplateParam],
        env: &mut TemplateEnv,
    ) {
        match (pattern, value) {
            (TemplateArg::Type(pattern), TemplateValue::Type(ty)) => {
                self.deduce(pattern, ty, &Val::Void, template, env);
            }
            (TemplateArg::Type(Type::Named(path)), TemplateValue::Value(_)) => {
                if let Some(name) = path.as_simple()
                    && template.iter().any(|param| param.name == name)
                {
                    env.args.entry(name).or_insert(value.clone());
                }
            }
            (TemplateArg::Value(Expr { kind: ExprKind::Name(path), .. }), TemplateValue::Value(_))
                if template.iter().any(|param| param.name == path.name) =>
            {
                env.args.entry(path.name).or_insert(value.clone());
            }
            _ => {}
        }
    }
}
