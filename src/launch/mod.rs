//! Host side: which launches a project makes, and what each kernel does in each of them.
//!
//! [`roots`] finds the host functions to execute; executing them yields launches with block, grid and arguments as
//! expressions; [`kernel`] executes each launched kernel with its parameters bound and measures its accesses. A kernel
//! that nothing launches is analysed with its launch bounds, an annotation, the configuration, or hypotheses that fit it.

mod access;
mod assumptions;
mod closure;
mod fields;
pub mod kernel;
mod merge;
pub mod persist;
pub mod roots;
pub mod shape;
mod sizes;
mod strides;
