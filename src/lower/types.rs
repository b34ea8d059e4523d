//! Types with sizes, alignments and field offsets (LP64, as nvcc on Linux lays them out).

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::value::Val;
use crate::index::expr::ExprId;
use crate::ir::ast::{Name, StructDef};
use crate::source::FileId;

#[derive(Clone, Debug)]
pub enum Ty {
    Void,
    Bool,
    Int {
        size: u8,
        signed: bool,
    },
    Float(FloatKind),
    Ptr(Rc<Ty>),
    Array(Rc<Ty>, Option<ExprId>),
    Struct(Rc<StructTy>),
    /// `T&`: only as a parameter's or a variable's declared type.
    Ref(Rc<Ty>),
    Auto,
    Unknown(&'static str),
}

#[derive(Debug)]
pub struct StructTy {
    pub name: String,
    pub size: Option<i64>,
    pub align: i64,
    pub fields: Vec<FieldTy>,
    pub def: Option<Arc<StructDef>>,
    /// The file that defines it.
    pub file: FileId,
    pub env: Rc<TemplateEnv>,
    /// `float4` and the like: `x y z w`.
    pub is_vector: bool,
}

#[derive(Clone, Debug)]
pub struct FieldTy {
    pub name: Name,
    pub ty: Ty,
    pub offset: Option<i64>,
}

impl StructTy {
    pub fn field(&self, name: Name) -> Option<(usize, &FieldTy)> {
        self.fields.iter().enumerate().find(|(_, field)| field.name == name)
    }
}

/// What template parameters stand for.
#[derive(Clone, Debug, Default)]
pub struct TemplateEnv {
    pub args: FxHashMap<Name, TemplateValue>,
    pub outer: Option<Rc<TemplateEnv>>,
}

#[derive(Clone, Debug)]
pub enum TemplateValue {
    Type(Ty),
    Value(Val),
}

impl TemplateEnv {
    pub fn get(&self, name: Name) -> Option<&TemplateValue> {
        self.args.get(&name).or_else(|| self.outer.as_ref()?.get(name))
    }
}

/// A type parameter of a kernel whose instances are not seen.
pub const TEMPLATE_PARAMETER: &str = "template parameter";

/// The floating-point formats, narrow ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloatKind {
    E4M3,
    E5M2,
    Half,
    BFloat16,
    Single,
    Double,
    /// `long double`, on the host.
    Extended,
}

impl FloatKind {
    /// The built-in type of that many bytes.
    pub fn of_size(bytes: u8) -> FloatKind {
        match bytes {
            4 => FloatKind::Single,
            16 => FloatKind::Extended,
            _ => FloatKind::Double,
        }
    }

    pub fn bytes(self) -> i64 {
        match self {
            FloatKind::E4M3 | FloatKind::E5M2 => 1,
            FloatKind::Half | FloatKind::BFloat16 => 2,
            FloatKind::Single => 4,
            FloatKind::Double => 8,
            FloatKind::Extended => 16,
        }
    }

    fn name(self) -> &'static str {
        match self {
            FloatKind::E4M3 => "__nv_fp8_e4m3",
            FloatKind::E5M2 => "__nv_fp8_e5m2",
            FloatKind::Half => "half",
            FloatKind::BFloat16 => "__nv_bfloat16",
            FloatKind::Single => "float",
            FloatKind::Double => "double",
            FloatKind::Extended => "long double",
        }
    }
}

impl Ty {
    pub const INT: Ty = Ty::Int { size: 4, signed: true };
    pub const UINT: Ty = Ty::Int { size: 4, signed: false };
    pub const LONG: Ty = Ty::Int { size: 8, signed: true };
    pub const SIZE: Ty = Ty::Int { size: 8, signed: false };

    /// Alignment in bytes; 1 where unknown.
    pub fn align(&self) -> i64 {
        match self {
            Ty::Void | Ty::Bool => 1,
            // A template parameter that nothing fixes is tried as a 4-byte element; the assumption is printed.
            Ty::Auto | Ty::Unknown(_) => 4,
            Ty::Int { size, .. } => i64::from(*size),
            Ty::Float(kind) => kind.bytes(),
            Ty::Ptr(_) | Ty::Ref(_) => 8,
            Ty::Array(of, _) => of.align(),
            Ty::Struct(of) => of.align,
        }
    }

    /// Is its size that of an element whose type is not seen?
    pub fn is_guessed(&self) -> bool {
        match self {
            Ty::Auto | Ty::Unknown(_) => true,
            Ty::Array(of, _) => of.is_guessed(),
            Ty::Void | Ty::Bool | Ty::Int { .. } | Ty::Float(_) | Ty::Ptr(_) | Ty::Ref(_) | Ty::Struct(_) => {
                false
            }
        }
    }

    /// Size in bytes of everything but arrays, whose extent may be an expression.
    pub fn scalar_size(&self) -> Option<i64> {
        match self {
            Ty::Bool => Some(1),
            Ty::Int { size, .. } => Some(i64::from(*size)),
            Ty::Float(kind) => Some(kind.bytes()),
            Ty::Ptr(_) | Ty::Ref(_) => Some(8),
            Ty::Struct(of) => of.size,
            Ty::Unknown(TEMPLATE_PARAMETER) => Some(4),
            Ty::Void | Ty::Array(..) | Ty::Auto | Ty::Unknown(_) => None,
        }
    }

    pub fn is_integer(&self) -> bool {
        matches!(self, Ty::Int { .. } | Ty::Bool)
    }

    /// The name as inspect prints it in template arguments.
    pub fn name(&self) -> String {
        match self {
            Ty::Void => "void".into(),
            Ty::Bool => "bool".into(),
            Ty::Int { size, signed } => {
                let base = match size {
                    1 => "char",
                    2 => "short",
                    4 => "int",
                    _ => "long",
                };
                if *signed { base.into() } else { format!("unsigned {base}") }
            }
            Ty::Float(kind) => kind.name().into(),
            Ty::Ptr(to) => format!("{}*", to.name()),
            Ty::Ref(to) => format!("{}&", to.name()),
            Ty::Array(of, _) => format!("{}[]", of.name()),
            Ty::Struct(of) => of.name.clone(),
            Ty::Auto => "auto".into(),
            Ty::Unknown(_) => "?".into(),
        }
    }
}

/// The built-in types that are spelt as a name: fixed-width integers, `half`, `size_t`, CUDA's unsigned spellings.
pub fn named_scalar(name: &str) -> Option<Ty> {
    let int = |size, signed| Some(Ty::Int { size, signed });
    match name {
        "int8_t" | "char" | "schar" => int(1, true),
        "uint8_t" | "uchar" | "u_char" | "u8" | "byte" | "Byte" => int(1, false),
        "int16_t" | "i16" => int(2, true),
        "uint16_t" | "ushort" | "u_short" | "u16" => int(2, false),
        "int32_t" | "int_fast32_t" | "i32" => int(4, true),
        "uint32_t" | "uint" | "u_int" | "u32" | "uint_fast32_t" => int(4, false),
        "int64_t" | "ptrdiff_t" | "ssize_t" | "longlong" | "i64" | "intptr_t" | "clock_t" | "time_t" => {
            int(8, true)
        }
        "uint64_t"
        | "size_t"
        | "ulong"
        | "u64"
        | "uintptr_t"
        | "ulonglong"
        | "cudaTextureObject_t"
        | "dim_t" => int(8, false),
        "half" | "__half" | "__fp16" | "half_t" | "Half" => Some(Ty::Float(FloatKind::Half)),
        "__nv_bfloat16" | "nv_bfloat16" | "bfloat16" | "bfloat16_t" | "BFloat16" => {
            Some(Ty::Float(FloatKind::BFloat16))
        }
        "__nv_fp8_e4m3" | "float8_e4m3fn" => Some(Ty::Float(FloatKind::E4M3)),
        "__nv_fp8_e5m2" => Some(Ty::Float(FloatKind::E5M2)),
        _ => None,
    }
}

/// CUDA's vector types (CUDA C++ Programming Guide, built-in vector types: sizes and alignments).
pub fn vector_type(name: &str) -> Option<StructTy> {
    let pair = |kind: FloatKind| (Ty::Float(kind), 2, 2 * kind.bytes());
    let (element, count, align) = match name {
        "half2" | "__half2" => pair(FloatKind::Half),
        "__nv_bfloat162" | "nv_bfloat162" => pair(FloatKind::BFloat16),
        "__nv_fp8x2_e4m3" => pair(FloatKind::E4M3),
        "__nv_fp8x2_e5m2" => pair(FloatKind::E5M2),
        "__nv_fp8x4_e4m3" => (Ty::Float(FloatKind::E4M3), 4, 4),
        "__nv_fp8x4_e5m2" => (Ty::Float(FloatKind::E5M2), 4, 4),
        "cuComplex" | "cuFloatComplex" | "cufftComplex" => pair(FloatKind::Single),
        "cuDoubleComplex" | "cufftDoubleComplex" => pair(FloatKind::Double),
        "dim3" => (Ty::UINT, 3, 4),
        _ => {
            let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let count: i64 = match name.get(base.len()..)? {
                "1" => 1,
                "2" => 2,
                "3" => 3,
                "4" => 4,
                _ => return None,
            };
            let element = match base {
                "char" => Ty::Int { size: 1, signed: true },
                "uchar" => Ty::Int { size: 1, signed: false },
                "short" => Ty::Int { size: 2, signed: true },
                "ushort" => Ty::Int { size: 2, signed: false },
                "int" => Ty::INT,
                "uint" => Ty::UINT,
                "long" | "longlong" => Ty::LONG,
                "ulong" | "ulonglong" => Ty::SIZE,
                "float" => Ty::Float(FloatKind::Single),
                "double" => Ty::Float(FloatKind::Double),
                _ => return None,
            };
            let size = element.align();
            let align = match count {
                2 => (2 * size).min(16),
                4 => (4 * size).min(16),
                _ => size,
            };
            (element, count, align)
        }
    };
    let size = element.align();
    let fields = ["x", "y", "z", "w"]
        .iter()
        .take(count as usize)
        .enumerate()
        .map(|(place, name)| FieldTy {
            name: Name::new(name),
            ty: element.clone(),
            offset: Some(place as i64 * size),
        })
        .collect();
    Some(StructTy {
        name: name.to_owned(),
        size: Some(count * size),
        align,
        fields,
        def: None,
        file: FileId(0),
        env: Rc::default(),
        is_vector: true,
    })
}
