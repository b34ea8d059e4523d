//! What analyses read. `ast` is C++ as far as device and host code need it; `facts` is what rules see.
//! Pure data with `Display`; no tree-sitter, no text search.

pub mod ast;
pub mod facts;
pub mod walk;
