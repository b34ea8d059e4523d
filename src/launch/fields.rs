//! What an access uses of a struct.

use crate::ir::facts::{Bytes, FieldFact};
use crate::lower::exec::RawAccess;
use crate::lower::types::Ty;
use crate::lower::value::Base;

/// Byte ranges sorted, overlaps joined.
fn joined(mut parts: Vec<(Bytes, Bytes)>) -> Vec<(Bytes, Bytes)> {
    parts.sort();
    let mut out: Vec<(Bytes, Bytes)> = Vec::new();
    for (start, size) in parts {
        match out.last_mut() {
            Some((before, length)) if start.0 <= before.0 + length.0 => {
                length.0 = length.0.max(start.0 + size.0 - before.0);
            }
            _ => out.push((start, size)),
        }
    }
    out
}

pub fn field_fact(raw: &RawAccess, element: u32) -> Option<FieldFact> {
    let aggregate = raw.aggregate.as_ref()?;
    let size = aggregate.ty.size?;
    let used = match aggregate.field {
        Some(offset) => match &raw.used {
            Some(parts) => parts.iter().map(|&(start, size)| (Bytes(offset + start), Bytes(size))).collect(),
            None => vec![(Bytes(offset), Bytes(raw.bytes))],
        },
        None => vec![(Bytes(0), Bytes(size))],
    };
    Some(FieldFact {
        struct_name: aggregate.ty.name.clone(),
        struct_bytes: Bytes(size),
        struct_align: Bytes(aggregate.ty.align),
        members: members(&aggregate.ty),
        used: joined(used),
        element,
        is_vector: aggregate.ty.is_vector,
    })
}

fn members(ty: &crate::lower::types::StructTy) -> Vec<(String, Bytes, Bytes)> {
    let sized = |field: &crate::lower::types::FieldTy| {
        let size = field.ty.scalar_size().unwrap_or(0);
        Some((field.name.to_string(), Bytes(field.offset?), Bytes(size)))
    };
    ty.fields.iter().filter_map(sized).collect()
}

/// A struct loaded or stored whole.
pub fn whole_struct(raw: &RawAccess, bases: &[Base]) -> Option<FieldFact> {
    let mut ty = &bases.get(raw.base as usize)?.element;
    while let Ty::Array(of, _) = ty {
        ty = of;
    }
    let Ty::Struct(of) = ty else { return None };
    if of.name != raw.element {
        return None;
    }
    let size = of.size?;
    let used = match &raw.used {
        Some(parts) if !parts.is_empty() => {
            parts.iter().map(|&(start, size)| (Bytes(start), Bytes(size))).collect()
        }
        _ => vec![(Bytes(0), Bytes(size))],
    };
    Some(FieldFact {
        struct_name: of.name.clone(),
        struct_bytes: Bytes(size),
        struct_align: Bytes(of.align),
        members: members(of),
        used: joined(used),
        element: 0,
        is_vector: of.is_vector,
    })
}
