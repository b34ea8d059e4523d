//! The part of `<type_traits>` that decides which code and which types a kernel has.

use super::exec::Exec;
use super::types::{FloatKind, TemplateValue, Ty};
use super::value::Val;
use crate::ir::ast::{Path, TemplateArg};

impl Exec<'_> {
    /// `std::is_same_v<T, float>`, `std::is_same<T, float>::value`, and calls of the latter's object; `None` where it is no
    /// trait. One that is asked of a type that is not seen is a template argument that is not given.
    pub(super) fn type_trait(&mut self, path: &Path) -> Option<Val> {
        let (name, args) = match (path.name.as_str(), path.scope.last()) {
            ("value", Some(owner)) => (owner.name.as_str().to_owned(), owner.args.as_deref()?),
            (name, _) => (name.strip_suffix("_v").unwrap_or(name).to_owned(), path.args.as_deref()?),
        };
        let count = match name.as_str() {
            "is_same" => 2,
            "is_floating_point" | "is_integral" | "is_pointer" => 1,
            _ => return None,
        };
        let types: Vec<Ty> = args.iter().map(|arg| self.type_argument(arg)).collect::<Option<_>>()?;
        if types.len() != count {
            return None;
        }
        if types.iter().any(|ty| matches!(ty, Ty::Unknown(_) | Ty::Auto)) {
            let names: Vec<String> = types.iter().map(Ty::name).collect();
            let asked = format!("{name}<{}>", names.join(", "));
            let value = self.marked_unknown(&asked, |unknown| {
                unknown.is_template = true;
                unknown.is_bool = true;
            });
            return Some(Val::Int(value, Ty::Bool));
        }
        let holds = match (name.as_str(), types.as_slice()) {
            ("is_same", [a, b]) => a.name() == b.name(),
            ("is_floating_point", [a]) => {
                matches!(a, Ty::Float(FloatKind::Single | FloatKind::Double | FloatKind::Extended))
            }
            ("is_integral", [a]) => a.is_integer(),
            ("is_pointer", [a]) => matches!(a, Ty::Ptr(_)),
            _ => return None,
        };
        Some(Val::Int(self.arena.constant(i64::from(holds)), Ty::Bool))
    }

    /// `std::conditional_t<wide, double, float>` and what leaves a type as it is, `std::decay_t<T>`.
    pub(super) fn transformed_type(&mut self, path: &Path) -> Option<Ty> {
        let (name, args) = match (path.name.as_str(), path.scope.last()) {
            ("type", Some(owner)) => (owner.name.as_str().to_owned(), owner.args.as_deref()?),
            (name, _) => (name.strip_suffix("_t")?.to_owned(), path.args.as_deref()?),
        };
        match (name.as_str(), args) {
            ("conditional", [cond, then, otherwise]) => {
                let TemplateValue::Value(cond) = self.template_value(cond, true) else { return None };
                let cond = self.atom(&cond);
                match self.arena.as_const(cond)? {
                    0 => self.type_argument(otherwise),
                    _ => self.type_argument(then),
                }
            }
            ("decay" | "remove_cv" | "remove_const" | "remove_reference" | "remove_cvref", [of]) => {
                match self.type_argument(of)? {
                    Ty::Ref(of) => Some((*of).clone()),
                    of => Some(of),
                }
            }
            _ => None,
        }
    }

    fn type_argument(&mut self, arg: &TemplateArg) -> Option<Ty> {
        match self.template_value(arg, false) {
            TemplateValue::Type(ty) => Some(ty),
            TemplateValue::Value(_) => None,
        }
    }
}
