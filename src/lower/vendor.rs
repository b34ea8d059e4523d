//! Types of CUDA's own headers: cuRAND's states and complex numbers, by the fields that the headers declare.

use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use super::exec::Exec;
use super::types::{StructTy, Ty};
use crate::ir::ast::{Name, Path, StructDef, Unit};
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
        name if name == "complex" || name.starts_with("curandState") => name,
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
}
