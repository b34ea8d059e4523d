//! What variables hold while a function is executed symbolically.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::types::{FloatKind, StructTy, TemplateEnv, TemplateValue, Ty};
use crate::index::expr::ExprId;
use crate::ir::ast::{Lambda, Name};
use crate::ir::facts::MemorySpace;
use crate::source::Span;

#[derive(Clone, Debug)]
pub enum Val {
    Int(ExprId, Ty),
    /// A floating-point value: its constant, where known, and an expression that carries what it depends on.
    Float(Option<f64>, ExprId, FloatKind),
    Ptr(Pointer),
    Obj(Rc<Obj>),
    Array(Rc<ArrayVal>),
    /// A reference or a pointer to something that is not in device memory.
    Ref(Rc<Place>),
    Lambda(Rc<Closure>),
    /// Functions used as a value: one, or those that a branch chose from.
    Function(Rc<[FunctionRef]>),
    Group(Group),
    /// Something of a type that is not modelled; the expression carries what it depends on.
    Opaque(Ty, ExprId),
    Void,
}

/// `scale<float>`: a function by name, with the template arguments that stand with it.
#[derive(Clone, Debug)]
pub struct FunctionRef {
    pub name: Name,
    pub template: Rc<[TemplateValue]>,
    /// The conditions under which it is this one.
    pub when: Vec<ExprId>,
}

impl FunctionRef {
    pub fn is_same(&self, other: &FunctionRef) -> bool {
        let none = self.template.is_empty() && other.template.is_empty();
        self.name == other.name && (none || Rc::ptr_eq(&self.template, &other.template))
    }
}

/// A pointer into device memory: `offset` bytes from the start of `base`.
#[derive(Clone, Debug)]
pub struct Pointer {
    pub base: u32,
    pub offset: ExprId,
    pub to: Ty,
}

#[derive(Clone, Debug)]
pub struct Obj {
    pub ty: Rc<StructTy>,
    pub fields: Vec<Val>,
    /// The load that made this copy and the byte offset in it: which bytes of the copy are read decides what it costs.
    pub origin: Option<(usize, i64)>,
}

#[derive(Clone, Debug)]
pub struct ArrayVal {
    pub of: Ty,
    pub len: Option<ExprId>,
    /// Elements whose value is known.
    pub known: BTreeMap<i64, Val>,
    /// What the other elements depend on.
    pub rest: ExprId,
    /// Where the elements lie, of a constant array in device memory: what no constant index folds is loaded.
    pub origin: Option<Pointer>,
}

#[derive(Clone, Debug)]
pub struct Closure {
    pub lambda: Arc<Lambda>,
    /// What the names in its body mean.
    pub scopes: Vec<Scope>,
    pub env: Rc<TemplateEnv>,
}

/// Cooperative groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Block,
    Grid,
    /// `tiled_partition<N>`
    Tile(i64),
}

pub type Scope = rustc_hash::FxHashMap<Name, SlotId>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub u32);

#[derive(Clone, Debug)]
pub struct Slot {
    pub name: Name,
    pub ty: Ty,
    pub value: Val,
    /// `T& r`: reading and writing go to what it refers to.
    pub is_reference: bool,
}

/// Where a value can be read and written.
#[derive(Clone, Debug)]
pub enum Place {
    Slot { slot: SlotId, path: Vec<Step> },
    Memory { pointer: Pointer, aggregate: Option<Aggregate> },
    Value(Val),
}

#[derive(Clone, Debug)]
pub enum Step {
    Field(usize),
    Element(ExprId),
}

/// The struct element that a field access goes into.
#[derive(Clone, Debug)]
pub struct Aggregate {
    pub ty: Rc<StructTy>,
    /// Byte offset of the element from the base.
    pub element: ExprId,
    /// Byte offset of what is accessed within the element, where constant.
    pub field: Option<i64>,
}

/// What a pointer points into.
#[derive(Clone, Debug)]
pub struct Base {
    pub name: String,
    pub space: MemorySpace,
    pub span: Option<Span>,
    /// The kernel parameter it is.
    pub param: Option<usize>,
    /// The start is known to be aligned to 256 bytes (an allocation), or it is assumed to be.
    pub is_allocation: bool,
    /// A tensor whose last dimension is taken to be contiguous.
    pub is_contiguous_tensor: bool,
    /// Declared extents, outermost first; empty for pointers.
    pub extents: Vec<ExprId>,
    pub element: Ty,
}
