//! Macros whose text falls apart where it is used: `#define TWO a + b` in `2 * TWO` is `2 * a + b`.
//!
//! An expression tree has the macro as one operand. That is right as long as the operators of its text bind tighter than
//! what stands beside it; else the whole expression is expanded as text and parsed again, as the compiler does.

use std::rc::Rc;

use super::exec::Exec;
use super::value::Val;
use crate::ir::ast::{BinaryOp, CastStyle, Expr, ExprKind, Name, UnaryOp};

/// How tightly an operator binds: the levels of the C++ grammar, larger is tighter.
type Level = u8;

const UNARY: Level = 12;

impl Exec<'_> {
    /// The expression as the preprocessor would have spelt it, where that is not what the tree says.
    pub fn respliced(&mut self, expr: &Expr) -> Option<Rc<Expr>> {
        // Text that comes from an expansion holds no macros any more.
        if !self.expanding.is_empty() {
            return None;
        }
        if let Some(known) = self.spliced.get(&expr.span) {
            return known.clone();
        }
        let result = if self.falls_apart(expr, 0, false) { self.reparsed(expr) } else { None };
        self.spliced.insert(expr.span, result.clone());
        result
    }

    /// The value of what [`Exec::respliced`] gave.
    pub fn spliced_value(&mut self, spelt: &Expr) -> Val {
        self.expanding.push(Name::new("an expression"));
        let value = self.value(spelt);
        self.expanding.pop();
        value
    }

    fn reparsed(&self, expr: &Expr) -> Option<Rc<Expr>> {
        let at = expr.span;
        let lookup = |name: Name| {
            if self.lookup(name).is_some() {
                None
            } else {
                self.project.macro_at(&self.tu, name, at.file, at.start)
            }
        };
        let text = super::macros::expand(self.sources.text(at), &lookup)?;
        crate::syntax::parse_expr(&self.without_casts(&text), at).map(Rc::new)
    }

    fn falls_apart(&mut self, expr: &Expr, beside: Level, right: bool) -> bool {
        match &expr.kind {
            ExprKind::Binary(op, a, b) => {
                let level = level(*op);
                // `a + (b - c)` is `a + b - c`.
                let right = *op != BinaryOp::Add;
                self.falls_apart(a, level, false) || self.falls_apart(b, level, right)
            }
            ExprKind::Unary(UnaryOp::Neg | UnaryOp::BitNot | UnaryOp::Not, operand)
            | ExprKind::Cast { style: CastStyle::C, operand, .. } => self.falls_apart(operand, UNARY, true),
            ExprKind::Name(path) if path.scope.is_empty() && self.lookup(path.name).is_none() => {
                let text = self.expand_macro(path.name, None, expr.span);
                text.is_some_and(|text| is_looser(&text, beside, right))
            }
            ExprKind::Call { callee, args } => {
                let ExprKind::Name(path) = &callee.kind else { return false };
                if !path.scope.is_empty() || !self.is_function_macro(path.name, expr.span) {
                    return false;
                }
                let texts = self.argument_texts(path.name, args, expr.span);
                let text = self.expand_macro(path.name, Some(&texts), expr.span);
                text.is_some_and(|text| is_looser(&text, beside, right))
            }
            _ => false,
        }
    }
}

/// Does an operator outside all parentheses of the text bind more loosely than the one beside it?
fn is_looser(text: &str, beside: Level, right: bool) -> bool {
    loosest(text).is_some_and(|level| level < beside || (level == beside && right))
}

/// The level of the loosest binary operator outside all parentheses.
fn loosest(text: &str) -> Option<Level> {
    let (mut depth, mut found, mut operand) = (0i32, None::<Level>, false);
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let two = text.get(at..at + 2).unwrap_or("");
        let (level, length) = match two {
            "->" | "::" | "++" | "--" => (None, 2),
            "<<" | ">>" => (Some(9), 2),
            "&&" => (Some(3), 2),
            "||" => (Some(2), 2),
            "==" | "!=" => (Some(7), 2),
            "<=" | ">=" => (Some(8), 2),
            _ => match byte {
                b'*' | b'/' | b'%' => (Some(11), 1),
                b'+' | b'-' => (Some(10), 1),
                b'<' | b'>' => (Some(8), 1),
                b'&' => (Some(6), 1),
                b'^' => (Some(5), 1),
                b'|' => (Some(4), 1),
                b'?' => (Some(1), 1),
                b'=' | b',' => (Some(0), 1),
                _ => (None, 1),
            },
        };
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if let Some(level) = level {
            // `-x` and `*p` at the start or after an operator are no binary operators.
            if depth == 0 && operand {
                found = Some(found.map_or(level, |found| found.min(level)));
            }
            operand = false;
        } else if !byte.is_ascii_whitespace() {
            operand = true;
        }
        at += length;
    }
    found
}

fn level(op: BinaryOp) -> Level {
    match op {
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => 11,
        BinaryOp::Add | BinaryOp::Sub => 10,
        BinaryOp::Shl | BinaryOp::Shr => 9,
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => 8,
        BinaryOp::Eq | BinaryOp::Ne => 7,
        BinaryOp::BitAnd => 6,
        BinaryOp::BitXor => 5,
        BinaryOp::BitOr => 4,
        BinaryOp::And => 3,
        BinaryOp::Or => 2,
        BinaryOp::Other => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_operators_outside_parentheses_count() {
        assert_eq!(loosest("a + b"), Some(10));
        assert_eq!(loosest("(a + b)"), None);
        assert_eq!(loosest("(a) * (b + 1)"), Some(11));
        assert_eq!(loosest("s[j + i * 17]"), None);
        assert_eq!(loosest("-1"), None);
        assert_eq!(loosest("x - -1"), Some(10));
        assert_eq!(loosest("p->n"), None);
        assert_eq!(loosest("a * b + c"), Some(10));
    }

    #[test]
    fn a_sum_falls_apart_beside_a_product_only() {
        let product = level(BinaryOp::Mul);
        assert!(is_looser("a + b", product, false));
        assert!(!is_looser("a + b", level(BinaryOp::Add), false));
        assert!(!is_looser("a * b", level(BinaryOp::Add), true));
        // `x / a * b` is `(x / a) * b`.
        assert!(is_looser("a * b", product, true));
    }
}
