//! The memory model against silicon, against a plain simulator, and against arithmetic.

mod cases;
mod layouts;
mod silicon;
mod simulator;
