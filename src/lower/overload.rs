//! Which of several functions of a name a call means.

use std::sync::Arc;

use super::exec::{Exec, Mode};
use super::project::Entry;
use super::types::{StructTy, TemplateValue, Ty};
use super::value::Val;
use crate::ir::ast::{
    self, Expr, ExprKind, FunctionDef, Name, Path, StructDef, TemplateArg, TemplateParamKind, Type, VarDecl,
};

/// Ranks of an argument: of the very type, one that a template or a type that is not seen takes, promoted, converted.
const EXACT: u32 = 4;
const DEDUCED: u32 = 3;
const PROMOTED: u32 = 2;
const CONVERTED: u32 = 1;

impl Exec<'_> {
    /// The functions of a name that take that many arguments.
    pub(super) fn functions_for(&mut self, path: &Path, count: usize) -> Vec<Entry<Arc<FunctionDef>>> {
        let project = self.project;
        let scope = path.scope.last().map(|part| part.name);
        let fits = |entry: &&&Entry<Arc<FunctionDef>>| {
            let def = &entry.item;
            def.class.is_none()
                && takes(def, count)
                && scope.is_none_or(|scope| def.scope.is_empty() || def.scope.contains(&scope))
        };
        let candidates = project.functions(&self.tu, path.name);
        let mut fitting: Vec<_> = candidates.iter().filter(fits).map(|entry| (**entry).clone()).collect();
        let side = |def: &FunctionDef| match self.mode {
            Mode::Device => def.qualifiers.device || def.qualifiers.is_constexpr,
            Mode::Host => !def.qualifiers.kernel && (def.qualifiers.host || !def.qualifiers.device),
        };
        if fitting.iter().any(|entry| side(&entry.item)) {
            fitting.retain(|entry| side(&entry.item));
        }
        fitting
    }

    /// The one of several functions that a call with these arguments means; `given` are template arguments that it spells.
    pub(super) fn choose(
        &mut self,
        mut fitting: Vec<Entry<Arc<FunctionDef>>>,
        given: Option<&[TemplateArg]>,
        args: &[Val],
    ) -> Option<Entry<Arc<FunctionDef>>> {
        let given = given.unwrap_or(&[]);
        if let Some(special) = fitting.iter().position(|entry| self.is_specialized_for(&entry.item, given)) {
            return Some(fitting.swap_remove(special));
        }
        if fitting.len() < 2 {
            return fitting.pop();
        }
        if !given.is_empty() && fitting.iter().any(|entry| entry.item.specialization.is_none()) {
            fitting.retain(|entry| entry.item.specialization.is_none());
        }
        let types: Vec<Ty> = args.iter().map(|arg| self.type_of(arg)).collect();
        let mut best: Option<(_, Entry<Arc<FunctionDef>>)> = None;
        for entry in fitting {
            // A specialisation is for its own arguments only; where they are not seen, the general template stands in.
            let is_general = entry.item.specialization.is_none();
            let key = (self.rank(&entry.item, &types), is_general, entry.item.body.is_some());
            if best.as_ref().is_none_or(|(before, _)| key > *before) {
                best = Some((key, entry));
            }
        }
        best.map(|(_, entry)| entry)
    }

    /// How well a function takes arguments of these types: more is better, `None` is not at all.
    fn rank(&mut self, def: &FunctionDef, types: &[Ty]) -> Option<u32> {
        let mut sum = 0;
        for (param, ty) in def.params.iter().zip(types) {
            sum += self.rank_type(&param.ty, ty, def)?;
        }
        Some(sum)
    }

    /// Does an operator outside of classes take these operands, an object of its class among them?
    pub(super) fn is_operator_of(&mut self, def: &FunctionDef, operands: &[Ty]) -> bool {
        if def.class.is_some() || def.params.len() != operands.len() {
            return false;
        }
        let mut has_own = false;
        for (param, ty) in def.params.iter().zip(operands) {
            let Some(rank) = self.rank_type(&param.ty, ty, def) else { return false };
            has_own |= rank == EXACT && matches!(ty, Ty::Struct(_));
        }
        has_own
    }

    fn rank_type(&mut self, pattern: &Type, ty: &Ty, def: &FunctionDef) -> Option<u32> {
        match (pattern, ty) {
            (_, Ty::Unknown(_) | Ty::Auto)
            | (Type::Auto | Type::Decltype(_) | Type::Pack(_) | Type::Unknown(_), _) => Some(DEDUCED),
            (Type::Reference { to, .. }, _) => self.rank_type(to, ty, def),
            (_, Ty::Ref(to)) => self.rank_type(pattern, to, def),
            (Type::Named(path), _)
                if path
                    .as_simple()
                    .is_some_and(|name| def.template.iter().any(|param| param.name == name)) =>
            {
                Some(DEDUCED)
            }
            (Type::Pointer { to, .. }, Ty::Ptr(_) | Ty::Array(..)) if **to == Type::Void => Some(CONVERTED),
            // Pointers to different types do not convert.
            (Type::Pointer { to, .. } | Type::Array { of: to, .. }, Ty::Ptr(inner) | Ty::Array(inner, _)) => {
                self.rank_type(to, inner, def).filter(|rank| matches!(*rank, EXACT | DEDUCED))
            }
            // A null pointer.
            (Type::Pointer { .. }, Ty::Int { .. }) => Some(CONVERTED),
            (Type::Pointer { .. } | Type::Array { .. }, _) => None,
            (Type::Named(path), Ty::Struct(of)) if path.args.is_some() => {
                of.def.as_ref().is_some_and(|of| of.name == path.name).then_some(EXACT)
            }
            _ => {
                let known = self.ty(pattern);
                rank_known(&known, ty)
            }
        }
    }

    /// Is this the specialisation for the template arguments of a call?
    pub(super) fn is_specialized_for(&mut self, def: &FunctionDef, given: &[TemplateArg]) -> bool {
        let Some(wanted) = &def.specialization else { return false };
        if wanted.is_empty() || given.len() < wanted.len() {
            return false;
        }
        wanted.iter().zip(given).all(|(wanted, given)| self.is_same_argument(wanted, given))
    }

    pub(super) fn is_same_argument(&mut self, wanted: &TemplateArg, given: &TemplateArg) -> bool {
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

    /// The methods of a name that take that many arguments, in the class, else in its bases.
    pub(super) fn methods(&self, of: &StructTy, name: Name, count: usize) -> Vec<Arc<FunctionDef>> {
        let Some(def) = of.def.as_ref() else { return Vec::new() };
        let fits =
            |method: &FunctionDef| method.name == name && method.body.is_some() && takes(method, count);
        let mut found: Vec<_> = def.methods.iter().filter(|method| fits(method)).cloned().collect();
        if found.is_empty() {
            let outside = self.project.functions(&self.tu, name).into_iter().filter(|entry| {
                entry.item.class == Some(def.name)
                    && fits(&entry.item)
                    && belongs_to(&entry.item, def)
                    && !self.is_of_another(&entry.item, def)
            });
            found = outside.map(|entry| entry.item.clone()).collect();
        }
        if found.is_empty() {
            let bases = of.fields.iter().filter(|field| field.name.as_str().is_empty());
            let inherited = bases.map(|field| match &field.ty {
                Ty::Struct(base) => self.methods(base, name, count),
                _ => Vec::new(),
            });
            found = inherited.into_iter().find(|methods| !methods.is_empty()).unwrap_or_default();
        }
        found
    }

    /// The one of several methods of a class that a call with these arguments means.
    pub(super) fn choose_method(
        &mut self,
        of: &StructTy,
        mut methods: Vec<Arc<FunctionDef>>,
        args: &[Val],
    ) -> Option<Arc<FunctionDef>> {
        if methods.len() < 2 {
            return methods.pop();
        }
        let types: Vec<Ty> = args.iter().map(|arg| self.type_of(arg)).collect();
        self.with_env(of.env.clone(), |exec| {
            let mut best: Option<(Option<u32>, Arc<FunctionDef>)> = None;
            for method in methods {
                let rank = exec.rank(&method, &types);
                if best.as_ref().is_none_or(|(before, _)| rank > *before) {
                    best = Some((rank, method));
                }
            }
            best.map(|(_, method)| method)
        })
    }

    /// Does the method stand in the body of another class of that name: a specialisation, or the general one?
    pub(super) fn is_of_another(&self, method: &FunctionDef, def: &StructDef) -> bool {
        let classes = self.project.structs(&self.tu, def.name);
        classes.iter().any(|class| {
            class.item.span != def.span
                && class.item.methods.iter().any(|other| other.name_span == method.name_span)
        })
    }
}

/// How well a parameter of a known type takes an argument.
fn rank_known(param: &Ty, arg: &Ty) -> Option<u32> {
    match (param, arg) {
        (Ty::Unknown(_) | Ty::Auto, _) => Some(DEDUCED),
        (Ty::Struct(a), Ty::Struct(b)) => {
            let same =
                a.name == b.name || a.def.as_ref().map(|def| def.span) == b.def.as_ref().map(|def| def.span);
            same.then_some(EXACT)
        }
        _ if param.name() == arg.name() => Some(EXACT),
        (Ty::Int { .. } | Ty::Bool, Ty::Int { .. } | Ty::Bool) | (Ty::Float(_), Ty::Float(_)) => {
            Some(PROMOTED)
        }
        (Ty::Ptr(_), Ty::Int { .. }) => Some(CONVERTED),
        (Ty::Ptr(_), _) | (_, Ty::Ptr(_)) => None,
        // Numbers, and objects by constructors and conversion operators.
        _ => Some(CONVERTED),
    }
}

/// Can it be called with that many arguments?
fn takes(def: &FunctionDef, count: usize) -> bool {
    let needs = |param: &&VarDecl| matches!(param.init, ast::Init::None) && !is_pack(param);
    let required = def.params.iter().filter(needs).count();
    count >= required && (count <= def.params.len() || def.params.last().is_some_and(is_pack))
}

/// `Args... args`
pub fn is_pack(param: &VarDecl) -> bool {
    matches!(param.ty, Type::Pack(_))
}

/// Is a method that is defined outside its class one of this very class: of the general template, or of the specialisation
/// that its own arguments spell?
pub(super) fn belongs_to(method: &FunctionDef, def: &StructDef) -> bool {
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

pub(super) fn is_spelt_alike(a: &TemplateArg, b: &TemplateArg) -> bool {
    match (a, b) {
        (TemplateArg::Type(a), TemplateArg::Type(b)) => a == b,
        (TemplateArg::Value(a), TemplateArg::Value(b)) => a.kind == b.kind,
        (TemplateArg::Type(_), TemplateArg::Value(_)) | (TemplateArg::Value(_), TemplateArg::Type(_)) => {
            false
        }
    }
}

/// The arguments given, with those of the parameters' defaults that are left out.
pub(super) fn with_defaults(given: &[TemplateArg], params: &[ast::TemplateParam]) -> Vec<TemplateArg> {
    let rest = params.iter().skip(given.len()).map_while(|param| match &param.kind {
        TemplateParamKind::Type { default } => default.clone().map(TemplateArg::Type),
        TemplateParamKind::Value { default, .. } => default.clone().map(TemplateArg::Value),
        TemplateParamKind::Template => None,
    });
    given.iter().cloned().chain(rest).collect()
}
