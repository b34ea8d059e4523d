//! PyTorch's macros and types that choose a kernel's element type: extensions include them from where no checkout has them.
//!
//! What they mean is documented in `ATen/Dispatch.h`, `ATen/OpMathType.h` and `ATen/AccumulateType.h` of PyTorch; here
//! are the parts that decide which types a kernel is instantiated with.

use std::sync::{Arc, LazyLock};

use rustc_hash::FxHashMap;

use super::macros::MacroDef;
use super::types::{FloatKind, Ty};
use crate::ir::ast::Name;
use crate::syntax::macros::{Presence, parse_define};

/// One definition a line.
const MACROS: &str = "\
AT_DISPATCH_SWITCH(TYPE, NAME, ...) [&] { switch (TYPE) { __VA_ARGS__ default: break; } }()
AT_PRIVATE_CASE_TYPE_USING_HINT(ENUM, HINT, ...) case ENUM: { using HINT = ScalarTypeToCPPTypeT<ENUM>; return __VA_ARGS__(); }
AT_DISPATCH_CASE(ENUM, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(ENUM, scalar_t, __VA_ARGS__)
AT_DISPATCH_CASE_FLOATING_TYPES(...) AT_DISPATCH_CASE(Float, __VA_ARGS__) AT_DISPATCH_CASE(Double, __VA_ARGS__)
AT_DISPATCH_CASE_FLOATING_TYPES_AND(A, ...) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__)
AT_DISPATCH_CASE_FLOATING_TYPES_AND2(A, B, ...) AT_DISPATCH_CASE_FLOATING_TYPES_AND(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__)
AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) AT_DISPATCH_CASE_FLOATING_TYPES_AND(Half, __VA_ARGS__)
AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...) AT_DISPATCH_CASE(Half, __VA_ARGS__) AT_DISPATCH_CASE(BFloat16, __VA_ARGS__)
AT_DISPATCH_CASE_INTEGRAL_TYPES(...) AT_DISPATCH_CASE(Int, __VA_ARGS__) AT_DISPATCH_CASE(Long, __VA_ARGS__) AT_DISPATCH_CASE(Byte, __VA_ARGS__) AT_DISPATCH_CASE(Char, __VA_ARGS__) AT_DISPATCH_CASE(Short, __VA_ARGS__)
AT_DISPATCH_CASE_ALL_TYPES(...) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)
AT_DISPATCH_CASE_ALL_TYPES_AND(A, ...) AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__)
AT_DISPATCH_CASE_ALL_TYPES_AND2(A, B, ...) AT_DISPATCH_CASE_ALL_TYPES_AND(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__)
AT_DISPATCH_CASE_ALL_TYPES_AND3(A, B, C, ...) AT_DISPATCH_CASE_ALL_TYPES_AND2(A, B, __VA_ARGS__) AT_DISPATCH_CASE(C, __VA_ARGS__)
AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(__VA_ARGS__))
AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND(A, __VA_ARGS__))
AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND2(A, B, __VA_ARGS__))
AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND(A, __VA_ARGS__))
AT_DISPATCH_ALL_TYPES_AND2(A, B, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND2(A, B, __VA_ARGS__))
AT_DISPATCH_ALL_TYPES_AND3(A, B, C, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND3(A, B, C, __VA_ARGS__))
AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_PRIVATE_CASE_TYPE_USING_HINT(Int, index_t, __VA_ARGS__) AT_PRIVATE_CASE_TYPE_USING_HINT(Long, index_t, __VA_ARGS__))";

static BY_NAME: LazyLock<FxHashMap<Name, Arc<MacroDef>>> = LazyLock::new(|| {
    MACROS
        .lines()
        .filter_map(|line| parse_define(line, 0, Presence::Live))
        .filter_map(MacroDef::from_front)
        .map(|item| (item.name, Arc::new(item)))
        .collect()
});

/// The definition of one of PyTorch's dispatch macros, for code that uses it without a visible definition.
pub fn dispatch_macro(name: Name) -> Option<Arc<MacroDef>> {
    name.as_str().starts_with("AT_").then(|| BY_NAME.get(&name).cloned()).flatten()
}

/// The C++ type of an `at::ScalarType`, by the last word of how it is written: `at::ScalarType::Half`, `at::kHalf`.
pub fn scalar_type(written: &str) -> Option<Ty> {
    let word = written.trim().rsplit("::").next()?.trim();
    Some(match word.strip_prefix('k').unwrap_or(word) {
        "Byte" => Ty::Int { size: 1, signed: false },
        "Char" => Ty::Int { size: 1, signed: true },
        "Short" => Ty::Int { size: 2, signed: true },
        "Int" => Ty::INT,
        "Long" => Ty::LONG,
        "Bool" => Ty::Bool,
        "Half" => Ty::Float(FloatKind::Half),
        "BFloat16" => Ty::Float(FloatKind::BFloat16),
        "Float" => Ty::Float(FloatKind::Single),
        "Double" => Ty::Float(FloatKind::Double),
        "Float8_e4m3fn" => Ty::Float(FloatKind::E4M3),
        "Float8_e5m2" => Ty::Float(FloatKind::E5M2),
        _ => return None,
    })
}

/// `at::acc_type<T, true>` and `at::opmath_type<T>`: what the device computes sums of `T` in.
pub fn computing_type(name: &str, of: &Ty) -> Option<Ty> {
    match (name, of) {
        ("acc_type" | "acc_type_device" | "opmath_type", Ty::Float(kind)) if kind.bytes() < 4 => {
            Some(Ty::Float(FloatKind::Single))
        }
        ("acc_type" | "acc_type_device" | "opmath_type", Ty::Float(_)) => Some(of.clone()),
        ("acc_type" | "acc_type_device", Ty::Int { .. }) => Some(Ty::LONG),
        ("opmath_type", Ty::Int { .. }) => Some(of.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_defines_a_macro_with_parameters() {
        assert_eq!(BY_NAME.len(), MACROS.lines().count());
        assert!(BY_NAME.values().all(|item| item.params.is_some() && item.variadic));
    }

    #[test]
    fn scalar_types_by_any_of_their_spellings() {
        assert!(matches!(scalar_type("at::ScalarType::Half"), Some(Ty::Float(FloatKind::Half))));
        assert!(matches!(scalar_type("at::kDouble"), Some(Ty::Float(FloatKind::Double))));
        assert!(matches!(scalar_type("Long"), Some(Ty::Int { size: 8, .. })));
        assert!(scalar_type("ComplexFloat").is_none());
    }
}
