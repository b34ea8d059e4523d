//! What the grammar reads wrongly without an error, told by its shape and put right.

use super::flat::{Field, Kind, Node};
use super::*;

impl<'a> Builder<'a> {
    /// Where an operand of `next` ends in a name with template arguments that are none: the place of its `<`.
    ///
    /// A grammar without names reads `x < n && y > -1`, `x < n && y >= 0` and `x < n >> 1` as what is done with a template
    /// `x<n && y>` or `x<n>`, and `x < n && y > (m)` and `x < size<2>(t)` as calls. A condition as the only template argument
    /// is, in kernels, always this; so is a name that its `>` makes one token with what follows.
    pub(super) fn taken_for_template(&self, operand: Node, next: Option<Node>) -> Option<u32> {
        let flat = self.flat;
        let mut last = operand;
        loop {
            last = match last.kind {
                Kind::BinaryExpression => flat.field(last, Field::Right)?,
                Kind::FieldExpression => flat.field(last, Field::Member)?,
                Kind::CallExpression => return self.call_taken_for_template(last),
                Kind::TemplateFunction | Kind::TemplateMethod => break,
                _ => return None,
            };
        }
        let next = next?;
        let list = flat.field(last, Field::Arguments)?;
        let is_one_token = matches!(self.text(next), ">" | "=") && next.start == list.end;
        let is_condition = matches!(self.only_operator(list), Some("&&" | "||" | "and" | "or"));
        (is_one_token || is_condition).then_some(list.start)
    }

    fn call_taken_for_template(&self, call: Node) -> Option<u32> {
        let flat = self.flat;
        let mut function = flat.field(call, Field::Function)?;
        if function.kind == Kind::FieldExpression {
            function = flat.field(function, Field::Member)?;
        }
        if !matches!(function.kind, Kind::TemplateFunction | Kind::TemplateMethod) {
            return None;
        }
        let list = flat.field(function, Field::Arguments)?;
        matches!(self.only_operator(list), Some("&&" | "||" | "and" | "or" | "<")).then_some(list.start)
    }

    /// The operator of the only argument of a template; that of the first one where it is `<`, as in `x < size<2, 1>(t)`.
    fn only_operator(&self, list: Node) -> Option<&'a str> {
        let flat = self.flat;
        let mut inside = flat.children(list).filter(|n| n.kind != Kind::Op);
        let condition = inside.next().filter(|n| n.kind == Kind::BinaryExpression)?;
        let operator = self.text(flat.field(condition, Field::Operator)?);
        (inside.next().is_none() || operator == "<").then_some(operator)
    }

    /// A call or an assignment that is none.
    pub(super) fn comparison(&mut self, node: Node) -> Option<ExprKind> {
        let flat = self.flat;
        let less = match node.kind {
            Kind::CallExpression => self.taken_for_template(node, None),
            _ => self.taken_for_template(flat.field(node, Field::Left)?, flat.field(node, Field::Operator)),
        };
        self.with_less(node, less?)
    }

    /// The expression of a node whose `<` at `less` was taken to open a template's arguments: with `>` in its place the
    /// text reads as what it is, all but that operator.
    pub(super) fn with_less(&self, node: Node, less: u32) -> Option<ExprKind> {
        let mut text = self.text.get(node.range())?.to_owned();
        let place = (less - node.start) as usize;
        text.get(place..=place).filter(|less| *less == "<")?;
        text.replace_range(place..=place, ">");
        let mut whole = snippet_expr(&text, self.spans_from(node.start), self.depth + 1)?;
        // What a macro made has one span for all: where the operator stands, its own text says.
        let turns = match self.spans {
            Spans::Shifted { .. } => turns_to(&whole, self.span_of(less, less + 1)),
            Spans::Fixed(_) => {
                let file = FileId(0);
                let own = snippet_expr(&text, Spans::Shifted { file, by: 0 }, self.depth + 1)?;
                turns_to(&own, Span::new(file, place, place + 1))
            }
        };
        let mut at = &mut whole;
        for is_right in turns? {
            let ExprKind::Binary(_, left, right) = &mut at.kind else { return None };
            at = if is_right { right } else { left };
        }
        let ExprKind::Binary(op @ BinaryOp::Gt, ..) = &mut at.kind else { return None };
        *op = BinaryOp::Lt;
        Some(whole.kind)
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

/// The way down an expression's operators to the one at `place`: right operands are `true`.
fn turns_to(expr: &Expr, place: Span) -> Option<Vec<bool>> {
    let (mut at, mut turns) = (expr, Vec::new());
    loop {
        let ExprKind::Binary(_, left, right) = &at.kind else { return None };
        let is_right = right.span.start <= place.start;
        if !is_right && left.span.end <= place.start {
            return Some(turns);
        }
        turns.push(is_right);
        at = if is_right { right } else { left };
    }
}
