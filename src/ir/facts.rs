//! What the analysis knows of each access of each kernel: the input of rules and of `inspect`.

use std::fmt;

use super::super::source::Span;

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
