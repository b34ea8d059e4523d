//! Text -> owned syntax, one construct per line of a test.

use cudalint::ir::ast::*;
use cudalint::source::{FileId, Span};
use cudalint::syntax::build::{self, Side};
use cudalint::syntax::mask;

mod items;
mod limits;
mod show;
mod statements;

fn raw(text: &str) -> Unit {
    build::parse(FileId(0), text, text, &Side::default())
}

fn masked(text: &str) -> Unit {
    let masked = mask::mask(FileId(0), text, &Default::default(), &Default::default());
    build::parse(FileId(0), text, &masked.text, &Side::of(&masked))
}

/// The statements of a kernel with this body.
fn body_of(unit: &Unit) -> Vec<Stmt> {
    let kernel = unit.functions.iter().find(|function| function.qualifiers.kernel).expect("a kernel");
    kernel.body.clone().expect("its body")
}

/// The statements of a body, spelt out.
fn body(text: &str) -> String {
    let text = format!("__global__ void k() {{ {text} }}");
    body_of(&raw(&text)).iter().map(show::stmt).collect::<Vec<_>>().join("; ")
}

fn expr(text: &str) -> String {
    let at = Span::new(FileId(0), 3, 4);
    build::parse_expr(text, at).map_or("none".into(), |expr| show::expr(&expr))
}

#[track_caller]
fn same(found: impl AsRef<str>, expected: &str) {
    assert_eq!(found.as_ref(), expected);
}
