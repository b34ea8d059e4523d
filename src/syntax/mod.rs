//! Text -> tree -> owned syntax ([`crate::ir::ast`]). The only folder that names tree_sitter.

pub mod build;
pub mod conditional;
pub mod front;
pub mod lex;
pub mod macros;
pub mod mask;
mod mask_calls;
mod mask_kernel;
mod mask_scope;
pub mod mask_types;
mod mask_words;
mod variants;

pub use build::{parse_expr, parse_stmts, parse_type};
