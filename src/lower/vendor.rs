//! Types of headers that are not among the files: cuRAND's states, complex numbers and pairs, by the fields that are declared.

use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use super::exec::Exec;
use super::types::{FieldTy, StructTy, Ty};
use super::value::{Obj, Val};
use crate::ir::ast::{Expr, Name, Path, StructDef, TemplateArg, Unit};
use crate::source::FileId;
use crate::syntax::build;

/// The declarations, parsed when a name of theirs is first looked up.
static HEADERS: LazyLock<Unit> = LazyLock::new(|| {
    let text = include_str!("vendor.cuh");
    build::parse(FileId(0), text, text, &build::Side::default())
});

/// The struct that a type of the headers is: `curandState_t` is an alias of `curandStateXORWOW`.
pub fn definition(path: &Path) -> Option<&'static Arc<StructDef>> {
    let scope: Vec<&str> = path.scope.iter().map(|part| part.name.as_str()).collect();
    // The host's complex numbers promise no alignment, and what another header's do is not known.
    if path.name.as_str() == "complex" && !matches!(scope[..], ["thrust" | "c10"] | ["cuda", "std"]) {
        return None;
    }
    named(path.name.as_str())
}

fn named(name: &str) -> Option<&'static Arc<StructDef>> {
    let name = match name.strip_suffix("_t").unwrap_or(name) {
        "curandState" => "curandStateXORWOW",
        name if name == "complex" || name == "pair" || name.starts_with("curandState") => name,
        _ => return None,
    };
    HEADERS.structs.iter().find(|def| def.name.as_str() == name)
}

/// The member behind `real()` or `imag()` of a complex number.
pub(super) fn part(of: &StructTy, method: Name) -> Option<Name> {
    let is_ours =
        of.def.as_ref().is_some_and(|def| named("complex").is_some_and(|ours| Arc::ptr_eq(def, ours)));
    match method.as_str() {
        "real" if is_ours => Some(Name::new("re")),
        "imag" if is_ours => Some(Name::new("im")),
        _ => None,
    }
}

impl Exec<'_> {
    /// A type that no file of the project defines.
    pub(super) fn vendor_type(&mut self, path: &Path) -> Option<Ty> {
        let def = definition(path)?;
        let args = path.args.clone().unwrap_or_default();
        if args.len() != def.template.len() {
            return None;
        }
        Some(self.instantiate(def, FileId(0), &args, Rc::default()))
    }

    /// What the standard library makes and takes apart: `std::make_pair(a, b)`, `std::make_tuple(a, b, c)`, `std::get<0>(t)`.
    pub(super) fn standard_call(&mut self, path: &Path, args: &[Expr]) -> Option<Val> {
        match (path.name.as_str(), args) {
            ("make_pair", [_, _]) | ("make_tuple", [_, ..]) => {
                let fields: Vec<Val> = args.iter().map(|arg| self.value(arg)).collect();
                let types: Vec<Ty> = fields.iter().map(|value| self.type_of(value)).collect();
                let named = |(place, ty)| FieldTy {
                    name: match (path.name.as_str(), place) {
                        ("make_pair", 0) => Name::new("first"),
                        ("make_pair", _) => Name::new("second"),
                        _ => Name::member(place),
                    },
                    ty,
                    offset: None,
                };
                let ty = Rc::new(StructTy {
                    name: path.name.as_str().trim_start_matches("make_").to_owned(),
                    size: None,
                    align: 1,
                    fields: types.into_iter().enumerate().map(named).collect(),
                    def: None,
                    file: FileId(0),
                    env: Rc::default(),
                    is_vector: false,
                });
                Some(Val::Obj(Rc::new(Obj { ty, fields, origin: None })))
            }
            ("get", [of]) => {
                let Some(TemplateArg::Value(place)) = path.args.as_deref()?.first() else { return None };
                let place = self.quietly(|exec| exec.value(place));
                let place = self.atom(&place);
                let place = usize::try_from(self.arena.as_const(place)?).ok()?;
                let Val::Obj(object) = self.quietly(|exec| exec.value(of)) else { return None };
                object.fields.get(place).cloned()
            }
            _ => None,
        }
    }
}
