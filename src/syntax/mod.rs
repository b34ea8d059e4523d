//! Text -> tree -> owned syntax ([`crate::ir::ast`]). The only folder that names tree_sitter.

pub mod build;
pub mod conditional;
pub mod lex;
pub mod macros;
pub mod mask;
mod mask_calls;
mod mask_kernel;
mod mask_scope;
mod mask_words;
