//! What the grammar reads wrongly without an error, told by its shape and put right.

use super::flat::{Field, Kind, Node};
use super::*;

impl<'a> Builder<'a> {
    /// `x < n && y > (m)` reads as a call of the template `x<n && y>`. A condition as the only template
    /// argument of a function that is called is, in kernels, always this.
    pub(super) fn comparison(&mut self, function: Node, arguments: Option<Node>) -> Option<ExprKind> {
        let flat = self.flat;
        let name = flat.field(function, Field::Name)?;
        let list = flat.field(function, Field::Arguments)?;
        let mut inside = flat.children(list).filter(|n| n.kind != Kind::Op);
        let condition = inside.next().filter(|n| n.kind == Kind::BinaryExpression)?;
        let operator = self.text(flat.field(condition, Field::Operator)?);
        if inside.next().is_some() || !matches!(operator, "&&" | "||" | "and" | "or") {
            return None;
        }
        let mut right = self.list(arguments?);
        if right.len() != 1 {
            return None;
        }
        let right = right.pop()?;
        let left = Expr { span: self.span(name), kind: ExprKind::Name(Path::simple(self.name(name))) };
        let join = |op, left: Expr, right: Expr| Expr {
            span: left.span.to(right.span),
            kind: ExprKind::Binary(op, Box::new(left), Box::new(right)),
        };
        let whole = at_edge(self.expr(condition), true, |first| join(BinaryOp::Lt, left, first));
        let whole = at_edge(whole, false, |last| join(BinaryOp::Gt, last, right));
        Some(whole.kind)
    }

    /// `(x < n && y >= 0)` reads as an assignment to the template `x<n && y>`.
    pub(super) fn comparison_with_equal(&mut self, node: Node) -> Option<ExprKind> {
        let flat = self.flat;
        let function = flat.field(node, Field::Left).filter(|n| n.kind == Kind::TemplateFunction)?;
        let list = flat.field(function, Field::Arguments)?;
        let operator = flat.field(node, Field::Operator)?;
        if self.text(operator) != "=" || operator.start != list.end {
            return None;
        }
        self.with_less(node, list.start)
    }

    /// `x < n >> 1` reads as the template `x<n>`, greater than 1: to the grammar a list is open, so `>>` is two tokens.
    pub(super) fn comparison_with_shift(&mut self, node: Node) -> Option<Expr> {
        let flat = self.flat;
        let operator = flat.field(node, Field::Operator)?;
        let left = flat.field(node, Field::Left)?;
        if self.text(operator) != ">" || operator.start != left.end {
            return None;
        }
        let mut last = left;
        while !matches!(last.kind, Kind::TemplateFunction | Kind::TemplateMethod) {
            last = flat.children(last).last()?;
        }
        let list = flat.field(last, Field::Arguments)?;
        let kind = self.with_less(node, list.start)?;
        Some(Expr { span: self.span(node), kind })
    }

    /// The expression of a node whose `<` at `less` was taken to open a template's arguments: with `>` in its place the
    /// text reads as what it is, all but that operator.
    fn with_less(&self, node: Node, less: u32) -> Option<ExprKind> {
        let mut text = self.text.get(node.range())?.to_owned();
        let less = (less - node.start) as usize;
        text.get(less..=less).filter(|less| *less == "<")?;
        text.replace_range(less..=less, ">");
        let mut whole = snippet_expr(&text, self.spans_from(node.start), self.depth + 1)?;
        let mut at = &mut whole;
        loop {
            match &mut at.kind {
                ExprKind::Binary(op @ BinaryOp::Gt, ..) => {
                    *op = BinaryOp::Lt;
                    return Some(whole.kind);
                }
                ExprKind::Binary(_, left, _) => at = left,
                _ => return None,
            }
        }
    }

    /// `dim3 b(x, y);` reads as the declaration of a function `b`; in a body it is a variable, and the parameters
    /// are the values.
    pub(super) fn values_of_parameters(&mut self, function: Node) -> Vec<Expr> {
        let flat = self.flat;
        let Some(list) = flat.field(function, Field::Parameters) else { return Vec::new() };
        let plain =
            flat.children(list).map(|parameter| self.plain_parameter(parameter)).collect::<Option<Vec<_>>>();
        if let Some(values) = plain {
            return values;
        }
        let mut values = Vec::new();
        for parameter in flat.children(list) {
            let value = self.reparse(parameter.start, parameter.end);
            values.push(value.unwrap_or_else(|| self.unknown(parameter, "argument read as a parameter")));
        }
        values
    }

    /// A parameter that is nothing but a name needs no second parse.
    fn plain_parameter(&mut self, parameter: Node) -> Option<Expr> {
        let mut parts = self.flat.children(parameter);
        let name = parts.next().filter(|n| n.kind == Kind::TypeIdentifier)?;
        if parts.next().is_some() {
            return None;
        }
        let kind = ExprKind::Name(Path::simple(self.name(name)));
        Some(Expr { span: self.span(name), kind })
    }

    /// `KERNEL_LOOP(i, n) { … }` reads as the definition of a function inside one.
    pub(super) fn loop_macro(&mut self, node: Node) -> Option<StmtKind> {
        let flat = self.flat;
        let function = flat.field(node, Field::Declarator).filter(|n| n.kind == Kind::FunctionDeclarator)?;
        let name = flat.field(function, Field::Declarator).filter(|n| n.kind == Kind::Identifier)?;
        let body = flat.field(node, Field::Body)?;
        let name = self.name(name);
        let args = self.values_of_parameters(function);
        let body = Box::new(self.statement(body));
        Some(StmtKind::LoopMacro { name, args, body })
    }

    /// `LOOP(i, n + 1) { … }` reads as a call without its `;`, and a block.
    pub(super) fn call_before_block(&mut self, call: Node, block: Option<Node>) -> Option<StmtKind> {
        let flat = self.flat;
        flat.child(call, Kind::MissingSemicolon)?;
        let inner = flat.first(call)?;
        if inner.kind == Kind::Identifier {
            return Some(StmtKind::Macro { name: self.name(inner), args: None });
        }
        let inner = Some(inner).filter(|n| n.kind == Kind::CallExpression)?;
        let name = flat.field(inner, Field::Function).filter(|n| n.kind == Kind::Identifier)?;
        let arguments = flat.field(inner, Field::Arguments)?;
        let name = self.name(name);
        if let Some(block) = block {
            let args = self.list(arguments);
            let body = Box::new(self.statement(block));
            return Some(StmtKind::LoopMacro { name, args, body });
        }
        let text = |n: Node| self.original.get(n.range()).unwrap_or("").to_owned();
        let args = flat.children(arguments).filter(|n| n.kind != Kind::Op).map(text).collect();
        Some(StmtKind::Macro { name, args: Some(args) })
    }

    /// `T (*m)[16] = e;` and `T (&r)[4] = e;` read as assignments to (or uses of) an element of the call `T(*m)`.
    pub(super) fn array_pointer(&mut self, node: Node) -> Option<VarDecl> {
        let flat = self.flat;
        let (target, value) = match node.kind {
            Kind::AssignmentExpression => {
                let operator = flat.field(node, Field::Operator)?;
                if self.text(operator) != "=" {
                    return None;
                }
                (flat.field(node, Field::Left)?, flat.field(node, Field::Right))
            }
            _ => (node, None),
        };
        let (mut extents, mut at) = (Vec::new(), target);
        while at.kind == Kind::SubscriptExpression {
            extents.push(flat.field(at, Field::Indices)?);
            at = flat.field(at, Field::Argument)?;
        }
        if extents.is_empty() || at.kind != Kind::CallExpression {
            return None;
        }
        let (function, arguments) = (flat.field(at, Field::Function)?, flat.field(at, Field::Arguments)?);
        let mut operands = flat.children(arguments);
        let pointer = operands.next().filter(|n| n.kind == Kind::PointerExpression)?;
        let name = flat.field(pointer, Field::Argument).filter(|n| n.kind == Kind::Identifier)?;
        if operands.next().is_some() || !self.names_a_type(function) {
            return None;
        }
        let mut ty = self.ty(function);
        for extent in extents {
            let extent = flat.first(extent).map(|n| Box::new(self.expr(n)));
            ty = Type::Array { of: Box::new(ty), extent };
        }
        let to = Box::new(ty);
        let ty = match flat.field(pointer, Field::Operator).map(|op| self.text(op)) {
            Some("*") => Type::Pointer { to, is_const: false, restrict: false },
            _ => Type::Reference { to, is_const: false },
        };
        let init = value.map_or(Init::None, |value| Init::Assign(Box::new(self.expr(value))));
        let (name_span, span) = (self.span(name), self.span(node));
        let name = self.name(name);
        Some(VarDecl { name, name_span, span, ty, init, storage: Storage::default(), align: None })
    }

    /// Is the callee of `T(*m)[4]` a type? Surely if built in, else if the file uses the word as a type elsewhere.
    fn names_a_type(&mut self, function: Node) -> bool {
        match function.kind {
            Kind::PrimitiveType | Kind::SizedType => true,
            Kind::Identifier => {
                let word = self.text(function);
                let flat = self.flat;
                let text = self.text;
                let words = self.type_words.get_or_insert_with(|| {
                    let types = flat.all().iter().filter(|n| n.kind == Kind::TypeIdentifier);
                    types.filter_map(|n| text.get(n.range())).collect()
                });
                words.contains(word)
            }
            _ => false,
        }
    }
}

/// Changes the first or last operand of a chain of `&&` and `||`.
fn at_edge(expr: Expr, first: bool, change: impl FnOnce(Expr) -> Expr) -> Expr {
    let Expr { span, kind } = expr;
    let kind = match kind {
        ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), mut left, mut right) => {
            if first {
                *left = at_edge(*left, first, change);
            } else {
                *right = at_edge(*right, first, change);
            }
            ExprKind::Binary(op, left, right)
        }
        kind => return change(Expr { span, kind }),
    };
    Expr { span, kind }
}
