//! What the analysis knows of each access of each kernel: the input of rules and of `inspect`.

use std::fmt;

use super::super::source::{FileId, Span};
use super::ast::Name;

/// A size or an offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Bytes(pub i64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemorySpace {
    Global,
    Shared,
    Local,
    Constant,
}

impl fmt::Display for MemorySpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemorySpace::Global => "global",
            MemorySpace::Shared => "shared",
            MemorySpace::Local => "local",
            MemorySpace::Constant => "constant",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    Load,
    Store,
    Atomic,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Load => "load",
            Operation::Store => "store",
            Operation::Atomic => "atomic",
        })
    }
}

/// How sure a number is, and because of what (design: every launch / the launches seen / a listed assumption).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Confidence {
    Assumed,
    Shaped,
    Proven,
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Confidence::Proven => "proven",
            Confidence::Shaped => "shaped",
            Confidence::Assumed => "assumed",
        })
    }
}

/// Where a launch shape was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ShapeSource {
    LaunchSite,
    LaunchBounds,
    Annotation,
    Config,
    /// No launch was seen: a block that fits the kernel, tried beside others.
    Hypothesis,
}

impl fmt::Display for ShapeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ShapeSource::LaunchSite => "launch site",
            ShapeSource::LaunchBounds => "launch bounds",
            ShapeSource::Annotation => "annotation",
            ShapeSource::Config => "config",
            ShapeSource::Hypothesis => "hypothesis",
        })
    }
}

/// The extents of a launch. Threads of a block are `block[0]·block[1]·block[2]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaunchShape {
    pub block: [u32; 3],
    /// Known only where the launch site says so.
    pub grid: Option<[u64; 3]>,
    pub source: ShapeSource,
    pub span: Option<Span>,
}

impl fmt::Display for LaunchShape {
    /// `256`, `32x8`, `8x8x4`: trailing ones are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        match (y, z) {
            (1, 1) => write!(f, "{x}"),
            (_, 1) => write!(f, "{x}x{y}"),
            _ => write!(f, "{x}x{y}x{z}"),
        }
    }
}

/// A place on the way from `threadIdx` to the address, for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrailStep {
    pub span: Span,
    pub text: String,
}

/// One kernel in one launch: what rules and `inspect` read.
#[derive(Clone, Debug)]
pub struct KernelFact {
    /// With template arguments: `k<float, 16>`.
    pub name: String,
    pub name_span: Span,
    /// The whole definition.
    pub span: Span,
    /// The file whose translation unit it is in, where its own file is another in other units.
    pub seen_from: Option<FileId>,
    /// The shape the numbers are for.
    pub shape: LaunchShape,
    /// Bytes of dynamic shared memory, where the launch gives a number.
    pub shared_bytes: Option<u32>,
    /// Other shapes that were tried because no launch is known.
    pub tried: Vec<LaunchShape>,
    pub bases: Vec<BaseFact>,
    /// In the order in which the kernel executes them.
    pub accesses: Vec<AccessFact>,
    /// Its parameters, in order.
    pub params: Vec<ParamFact>,
    /// Inline PTX accesses shared memory at addresses that are not followed.
    pub has_unseen_shared: bool,
    /// Budget or syntax that kept parts of the kernel from being analysed.
    pub gaps: Vec<String>,
}

impl KernelFact {
    /// The block that an access's numbers are for.
    pub fn shape_of(&self, access: &AccessFact) -> &LaunchShape {
        let place = access.request.as_ref().map_or(0, |request| request.shape);
        place.checked_sub(1).and_then(|place| self.tried.get(place)).unwrap_or(&self.shape)
    }
}

/// A parameter of a kernel.
#[derive(Clone, Debug)]
pub struct ParamFact {
    pub name: String,
    pub name_span: Span,
    /// From its type to its name.
    pub span: Span,
    /// Spelt as a pointer to something other than `void`; the rest is of no meaning otherwise.
    pub is_pointer: bool,
    /// What it points to is `const`.
    pub is_const: bool,
    pub is_restrict: bool,
    pub is_volatile: bool,
    /// What the launch passes, where that is a number.
    pub value: Option<f64>,
    /// What the launch passes for the numbers of a struct that has no other fields, in their order; empty otherwise.
    pub fields: Vec<Option<f64>>,
    /// Equal for parameters that the launch passes pointers into one buffer.
    pub buffer: Option<u32>,
    /// Of a parameter pack the same for each argument that the launch passes for it.
    pub packed: Option<Vec<Option<f64>>>,
    /// The lambda that the launch passes.
    pub closure: Option<ClosureFact>,
}

/// A lambda of host code and what its text takes from there.
#[derive(Clone, Debug)]
pub struct ClosureFact {
    /// From the `[` to the `}`.
    pub span: Span,
    /// It captures something by reference.
    pub by_reference: bool,
    /// It captures the object whose method it stands in.
    pub takes_this: bool,
    /// In the order of their first use.
    pub captures: Vec<CaptureFact>,
    /// The other names in its body that it does not declare: of functions, constants, members.
    pub others: Vec<Name>,
    /// Template parameters and local types of the host around it, with what they stand for, where that is seen.
    pub types: Vec<(String, Option<String>)>,
    /// The same of template parameters that are numbers.
    pub constants: Vec<(String, Option<f64>)>,
}

/// A variable of the host that a lambda uses.
#[derive(Clone, Debug)]
pub struct CaptureFact {
    pub name: String,
    /// `[name = value]`: it is none of the host's own variables.
    pub is_new: bool,
    pub ty: String,
    /// Its value, or of an object those of its members in order: what is no pointer.
    pub numbers: Vec<Option<f64>>,
    /// It is a lambda itself.
    pub closure: Option<ClosureFact>,
}

/// What accesses go into: a parameter, an array, memory behind a loaded pointer.
#[derive(Clone, Debug)]
pub struct BaseFact {
    pub name: String,
    pub space: MemorySpace,
    /// The declaration of an array.
    pub declaration: Option<Span>,
    /// The place of the kernel parameter.
    pub param: Option<usize>,
    /// Extents in elements, outermost first, where constant.
    pub extents: Vec<u64>,
    pub element: String,
    pub element_bytes: Option<Bytes>,
}

/// One access of a kernel with what its requests cost.
#[derive(Clone, Debug)]
pub struct AccessFact {
    pub span: Span,
    /// Calls that lead to it from the kernel, outermost first.
    pub calls: Vec<Span>,
    pub space: MemorySpace,
    pub operation: Operation,
    pub path: AccessPath,
    /// What one instruction moves per lane.
    pub width: Bytes,
    /// What the source accesses per lane.
    pub bytes: Bytes,
    /// Index into [`KernelFact::bases`].
    pub base: usize,
    /// The byte offset in mathematical notation.
    pub index: String,
    pub lane_terms: Vec<LaneWord>,
    /// The lane terms are all there is: no `/ % & ^` of `threadIdx`.
    pub is_affine: bool,
    pub lane_stride: Option<Bytes>,
    /// Byte distance between iterations of the innermost loop whose counter is in the address.
    pub iteration_stride: Option<Bytes>,
    /// How many iterations that loop has, where the source says it in constants.
    pub iterations: Option<i64>,
    pub request: Option<RequestFact>,
    /// Why there is no number.
    pub unknown: Option<String>,
    /// The address depends on data that differ between lanes.
    pub irregular: bool,
    /// The width is that of an element whose type is seen, not an assumption.
    pub is_width_seen: bool,
    /// An earlier load got the same: the compiler makes one of both.
    pub is_repeated: bool,
    pub confidence: Confidence,
    pub assumptions: Vec<String>,
    pub field: Option<FieldFact>,
    /// What the instruction is to the banks; `None` outside shared memory.
    pub shared_op: Option<crate::memory::SharedOp>,
    pub flow: FlowFact,
}

/// Where an access stands in the flow of its kernel. Numbers have no meaning but equality within one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFact {
    /// The loops around it, outermost first.
    pub loops: Vec<u32>,
    /// Those of them in which the address stays the same.
    pub invariant_in: Vec<u32>,
    /// Equal where the address from the start of the base is the same.
    pub address: u32,
    /// That address as bytes and a sum of terms: coefficients, and numbers that are equal where what they multiply is.
    pub constant: i64,
    pub terms: Vec<(i64, u32)>,
    /// Equal where the same lanes are active.
    pub guard: u32,
    /// Data decide which lanes are active.
    pub guarded_by_data: bool,
}

/// How an access is made, where that changes its cost or its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessPath {
    Plain,
    ReadOnly,
    AsyncCopy,
    Matrix(u8),
}

/// A term of the address that multiplies an axis of `threadIdx`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneWord {
    pub axis: char,
    /// Bytes; `None` where unknowns are in it.
    pub coefficient: Option<Bytes>,
    pub text: String,
}

/// Averages over the executed requests of an access. Units are sectors in global, wavefronts in shared memory.
#[derive(Clone, Debug)]
pub struct RequestFact {
    pub units: f64,
    pub ideal: f64,
    pub active_lanes: f64,
    pub requests: u64,
    /// Which of the kernel's shapes the numbers are for: 0 is [`KernelFact::shape`], then those tried.
    pub shape: usize,
    /// The most warps of one block that take part.
    pub warps: u32,
    /// Further requests that a warp issues with all its lanes switched off by a short branch.
    pub off: u64,
    pub worst: crate::memory::Cost,
    pub worst_lanes: Box<crate::memory::Lanes>,
    /// The first requests.
    pub samples: Vec<crate::memory::Lanes>,
    /// How many of these are those of one warp in the rounds of its loops.
    pub rounds: usize,
    /// The numbers are those of one case among others that are as likely: not known, but a bound.
    pub open: Option<Bound>,
}

/// What a number that is not known says all the same, with the reason for not knowing it.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// It is that of the case that is best for the code, among cases with so many units per request.
    Within { reason: String, least: f64, most: f64 },
    /// It is that of all lanes; data decide which of them are active.
    AtMost(String),
}

impl Bound {
    pub fn reason(&self) -> &str {
        match self {
            Bound::Within { reason, .. } | Bound::AtMost(reason) => reason,
        }
    }
}

impl RequestFact {
    /// Units per request in words, with numbers as `number` writes them: `4`, `8 to 9.5`, `up to 32`.
    pub fn units_in_words(&self, number: impl Fn(f64) -> String) -> String {
        let units = number(self.units);
        match &self.open {
            None => units,
            Some(Bound::AtMost(_)) => format!("up to {units}"),
            Some(Bound::Within { least, most, .. }) => match (number(*least), number(*most)) {
                (least, most) if least == most => units,
                (least, most) => format!("{least} to {most}"),
            },
        }
    }

    /// Why there is no one number, where cases were tried that differ.
    pub fn range_note(&self) -> Option<&str> {
        self.open.as_ref().filter(|open| matches!(open, Bound::Within { .. })).map(Bound::reason)
    }

    /// An average over the executed requests as an average over the issued ones, which is what the profiler shows: a
    /// request whose lanes are all predicated off counts, with no sector and no wavefront.
    pub fn issued(&self, average: f64) -> f64 {
        average * self.requests as f64 / (self.requests + self.off).max(1) as f64
    }
}

/// A field of an element of an array of structures.
#[derive(Clone, Debug)]
pub struct FieldFact {
    pub struct_name: String,
    pub struct_bytes: Bytes,
    /// The alignment that the type promises: up to 16 bytes, nvcc merges accesses to neighbouring fields within it.
    pub struct_align: Bytes,
    /// The fields' names with offset and size.
    pub members: Vec<(String, Bytes, Bytes)>,
    /// Byte ranges of the element that this access uses.
    pub used: Vec<(Bytes, Bytes)>,
    /// Equal for accesses to the same element of the same array.
    pub element: u32,
    pub is_vector: bool,
}
