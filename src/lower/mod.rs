//! From syntax to accesses: functions are executed symbolically, once per launch.
//!
//! [`project`] indexes what all files define and resolves names as a translation unit would. [`exec`] walks a function's
//! statements with values that are index expressions: branches merge into ternaries, loops into recurrences, device and
//! host functions are inlined. Host code is executed the same way, so that a launch's block, grid and arguments are what
//! `main` computes. Nothing here fails: what is not understood becomes an opaque value or a gap with its reason.

mod accessor;
pub mod builtin;
pub mod call;
pub mod dispatch;
pub mod exec;
pub mod express;
pub mod grid_loop;
mod launch;
pub mod loops;
pub mod macros;
mod method;
mod naming;
pub mod overload;
pub mod place;
pub mod project;
pub mod pytorch;
pub mod splice;
mod template;
mod traits;
pub mod types;
pub mod value;
pub mod vendor;
