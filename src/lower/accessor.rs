//! PyTorch's tensor accessors: `x[b][c][i]` of a `PackedTensorAccessor32<float, 3>` is an access of device memory at
//! `b·stride(0) + c·stride(1) + i·stride(2)` elements.
//!
//! Documented in `ATen/core/TensorAccessor.h`; extensions include it from where no checkout has it, and the class that they
//! see copies pointers into itself. A launch does not say the strides, as a rule: the last dimension is then taken to be
//! contiguous, an assumption that is printed, and the others are sizes that are not known.

use std::rc::Rc;

use super::exec::Exec;
use super::types::{FieldTy, StructTy, TemplateEnv, TemplateValue, Ty};
use super::value::{Obj, Place, Pointer, Val};
use crate::index::expr::DATA;
use crate::ir::ast::{Expr, Name, Path, TemplateArg};
use crate::ir::facts::MemorySpace;
use crate::source::Span;

/// The name that the modelled class goes by. Its fields: the data, the size of each dimension, the stride of each.
const NAME: &str = "TensorAccessor";

const CLASSES: [&str; 5] = [
    NAME,
    "PackedTensorAccessor",
    "PackedTensorAccessor32",
    "PackedTensorAccessor64",
    "GenericPackedTensorAccessor",
];

/// No tensor has more dimensions (`at::kMaxDims` is 64; kernels stay far below).
const MOST_DIMENSIONS: i64 = 16;

/// How many dimensions an accessor of this type has.
fn dimensions(of: &StructTy) -> Option<usize> {
    (of.def.is_none() && of.name == NAME).then(|| of.fields.len().saturating_sub(1) / 2)
}

fn class(element: &Ty, count: usize) -> Rc<StructTy> {
    let field =
        |name: String, ty: Ty, offset: i64| FieldTy { name: Name::new(&name), ty, offset: Some(offset) };
    let mut fields = vec![field("data".to_owned(), Ty::Ptr(Rc::new(element.clone())), 0)];
    for what in ["size", "stride"] {
        for dimension in 0..count {
            let offset = 8 * fields.len() as i64;
            fields.push(field(format!("{what}({dimension})"), Ty::LONG, offset));
        }
    }
    Rc::new(StructTy {
        name: NAME.to_owned(),
        size: Some(8 * fields.len() as i64),
        align: 8,
        fields,
        def: None,
        file: crate::source::FileId(0),
        env: Rc::new(TemplateEnv::default()),
        is_vector: false,
    })
}

impl Exec<'_> {
    /// `at::PackedTensorAccessor32<T, N, …>` and its kin.
    pub(super) fn accessor_type(&mut self, path: &Path) -> Option<Ty> {
        if !CLASSES.contains(&path.name.as_str()) {
            return None;
        }
        let [element, count, ..] = path.args.as_deref()? else { return None };
        let TemplateArg::Type(element) = element else { return None };
        let element = self.ty(element);
        let TemplateValue::Value(count) = self.template_value(count, true) else { return None };
        let count = self.atom(&count);
        let count = self.arena.as_const(count).filter(|count| (1..=MOST_DIMENSIONS).contains(count))?;
        Some(Ty::Struct(class(&element, count as usize)))
    }

    /// An accessor that a launch passes without saying what is in it.
    pub(super) fn symbolic_accessor(
        &mut self,
        of: &Rc<StructTy>,
        name: &str,
        param: Option<usize>,
    ) -> Option<Val> {
        let count = dimensions(of)?;
        let Ty::Ptr(element) = &of.fields.first()?.ty else { return None };
        let base = self.named_base(name, MemorySpace::Global, element, param);
        if let Some(base) = self.bases.get_mut(base as usize) {
            base.is_contiguous_tensor = true;
        }
        let offset = self.arena.constant(0);
        let mut fields = vec![Val::Ptr(Pointer { base, offset, to: (**element).clone() })];
        for dimension in 0..count {
            fields.push(Val::Int(self.named_unknown(&format!("{name}.size({dimension})")), Ty::LONG));
        }
        for dimension in 0..count {
            let stride = if dimension + 1 == count {
                self.arena.constant(1)
            } else {
                self.marked_unknown(&format!("{name}.stride({dimension})"), |unknown| unknown.is_pitch = true)
            };
            fields.push(Val::Int(stride, Ty::LONG));
        }
        Some(Val::Obj(Rc::new(Obj { ty: of.clone(), fields, origin: None })))
    }

    /// `PackedTensorAccessor64<float, 2>(data, sizes, strides)`
    pub(super) fn construct_accessor(&mut self, of: &Rc<StructTy>, args: &[Expr], at: Span) -> Option<Val> {
        let count = dimensions(of)?;
        let [data, sizes, strides] = args else { return None };
        let Val::Ptr(pointer) = self.value(data) else { return None };
        let mut fields = vec![Val::Ptr(pointer.clone())];
        for (list, what) in [(sizes, "size"), (strides, "stride")] {
            let list = self.value_or_place(list);
            for dimension in 0..count {
                let index = Val::Int(self.arena.constant(dimension as i64), Ty::INT);
                let place = self.index(list.clone(), &[index], at);
                let value = self.read(&place, at);
                let known = self.atom(&value);
                if self.arena.deps(known) & DATA == 0 && matches!(value, Val::Int(..)) {
                    fields.push(value);
                    continue;
                }
                // What the host's memory holds is not followed: as where nothing is said.
                let open = if what == "stride" && dimension + 1 == count {
                    if let Some(base) = self.bases.get_mut(pointer.base as usize) {
                        base.is_contiguous_tensor = true;
                    }
                    self.arena.constant(1)
                } else {
                    let name = self
                        .bases
                        .get(pointer.base as usize)
                        .map_or_else(String::new, |base| base.name.clone());
                    let is_pitch = what == "stride";
                    self.marked_unknown(&format!("{name}.{what}({dimension})"), |unknown| {
                        unknown.is_pitch = is_pitch
                    })
                };
                fields.push(Val::Int(open, Ty::LONG));
            }
        }
        Some(Val::Obj(Rc::new(Obj { ty: of.clone(), fields, origin: None })))
    }

    /// `accessor[index]`: an accessor of one dimension less, or the element.
    pub(super) fn accessor_element(&mut self, object: &Val, index: &Val, at: Span) -> Option<Place> {
        let Ty::Struct(of) = self.type_of(object) else { return None };
        let count = dimensions(&of)?;
        let Val::Obj(accessor) = self.plain(object.clone(), at) else { return None };
        let (sizes, strides) = accessor.fields.get(1..)?.split_at_checked(count)?;
        let (Some(Val::Ptr(data)), Some(stride)) = (accessor.fields.first(), strides.first()) else {
            return None;
        };
        let (index, stride) = (self.atom(index), self.atom(stride));
        let steps = self.arena.mul(index, stride);
        let data = self.offset_pointer(data.clone(), steps, &data.to);
        if count == 1 {
            return Some(Place::Memory { pointer: data, aggregate: None });
        }
        let ty = class(&data.to, count - 1);
        let rest = sizes.iter().skip(1).chain(strides.iter().skip(1)).cloned();
        let fields = std::iter::once(Val::Ptr(data)).chain(rest).collect();
        Some(Place::Value(Val::Obj(Rc::new(Obj { ty, fields, origin: None }))))
    }

    /// `accessor.size(1)`, `.stride(0)`, `.data()`
    pub(super) fn accessor_method(
        &mut self,
        object: &Val,
        name: Name,
        args: &[Expr],
        at: Span,
    ) -> Option<Val> {
        let Ty::Struct(of) = self.type_of(object) else { return None };
        let count = dimensions(&of)?;
        let Val::Obj(accessor) = self.plain(object.clone(), at) else { return None };
        let first = match name.as_str() {
            "data" => return accessor.fields.first().cloned(),
            "size" => 1,
            "stride" => 1 + count,
            _ => return None,
        };
        let dimension = self.value(args.first()?);
        let dimension = self.atom(&dimension);
        let dimension = self.arena.as_const(dimension).and_then(|at| usize::try_from(at).ok());
        match dimension.filter(|dimension| *dimension < count) {
            Some(dimension) => accessor.fields.get(first + dimension).cloned(),
            None => Some(self.opaque_of(&Ty::LONG, Vec::new())),
        }
    }
}
