//! Expressions.

use super::flat::{Field, Kind, Node};
use super::*;

impl<'a> Builder<'a> {
    pub(super) fn expr(&mut self, node: Node) -> Expr {
        let kind = self.deeper(node, 1, |this| this.expr_kind(node));
        match kind {
            // Parentheses leave no trace: the span is that of what they hold.
            Some(Parsed::Whole(expr)) => expr,
            Some(Parsed::Kind(kind)) => Expr { span: self.span(node), kind },
            None => self.unknown(node, TOO_DEEP),
        }
    }

    /// An expression that heads a statement: an error in it costs the expression, not the statement.
    pub(super) fn head(&mut self, node: Node) -> Expr {
        if node.bad {
            self.gap(node, SYNTAX_ERROR);
            return self.unknown(node, SYNTAX_ERROR);
        }
        self.expr(node)
    }

    pub(super) fn unknown(&self, node: Node, reason: &'static str) -> Expr {
        Expr { span: self.span(node), kind: ExprKind::Unknown(reason) }
    }

    fn boxed(&mut self, node: Node) -> Box<Expr> {
        Box::new(self.expr(node))
    }

    /// The expression in a field; unknown where the field is missing.
    fn part(&mut self, node: Node, field: Field) -> Box<Expr> {
        match self.flat.field(node, field) {
            Some(part) => self.boxed(part),
            None => Box::new(self.unknown(node, "incomplete expression")),
        }
    }

    pub(super) fn list(&mut self, list: Node) -> Vec<Expr> {
        let flat = self.flat;
        flat.children(list).filter(|n| n.kind != Kind::Op).map(|n| self.expr(n)).collect()
    }

    fn expr_kind(&mut self, node: Node) -> Parsed {
        let flat = self.flat;
        let kind = match node.kind {
            Kind::Identifier | Kind::QualifiedIdentifier | Kind::TemplateFunction | Kind::FieldIdentifier => {
                match self.path(node) {
                    Some(path) => ExprKind::Name(path),
                    None => ExprKind::Unknown("name"),
                }
            }
            // A type where a value is due: an argument of a macro, or a name that misled the parser.
            Kind::TypeIdentifier | Kind::TemplateType | Kind::OperatorName => match self.path(node) {
                Some(path) => ExprKind::Name(path),
                None => ExprKind::Unknown("name"),
            },
            Kind::NumberLiteral => self.number(node),
            Kind::CharLiteral => literal::character(self.text(node)),
            Kind::StringLiteral | Kind::RawString | Kind::ConcatenatedString => ExprKind::Str,
            Kind::True => ExprKind::Bool(true),
            Kind::False => ExprKind::Bool(false),
            Kind::Null => ExprKind::Nullptr,
            Kind::This => ExprKind::This,
            Kind::ParenthesizedExpression => match flat.first(node) {
                Some(inner) if inner.kind != Kind::CompoundStatement => {
                    return Parsed::Whole(self.expr(inner));
                }
                _ => ExprKind::Unknown("statement expression"),
            },
            Kind::BinaryExpression => return Parsed::Whole(self.binary(node)),
            Kind::UnaryExpression | Kind::PointerExpression => self.unary(node),
            Kind::UpdateExpression => self.update(node),
            Kind::AssignmentExpression => self.assignment(node),
            Kind::ConditionalExpression => self.conditional(node),
            Kind::CommaExpression => ExprKind::Comma(self.comma(node)),
            Kind::SubscriptExpression => self.subscript(node),
            Kind::FieldExpression => self.member(node),
            Kind::CallExpression => self.call(node),
            Kind::CastExpression => self.cast(node),
            Kind::CompoundLiteral => self.braced(node),
            Kind::InitializerList => ExprKind::InitList(self.init_list(node)),
            Kind::SizeofExpression => self.sizeof(node),
            Kind::AlignofExpression => match flat.field(node, Field::Type) {
                Some(ty) => ExprKind::AlignofType(Box::new(self.type_descriptor(ty))),
                None => ExprKind::Unknown("alignof"),
            },
            Kind::LambdaExpression => self.lambda(node),
            Kind::NewExpression => self.new_expr(node),
            Kind::ConditionClause => match flat.field(node, Field::Value) {
                Some(value) => return Parsed::Whole(self.expr(value)),
                None => ExprKind::Unknown("condition"),
            },
            Kind::PackExpansion => match flat.first(node) {
                Some(pattern) => ExprKind::PackExpansion(self.boxed(pattern)),
                None => ExprKind::Unknown("pack expansion"),
            },
            Kind::UserDefinedLiteral => ExprKind::Unknown("user-defined literal"),
            Kind::DeleteExpression => ExprKind::Unknown("delete"),
            Kind::AsmExpression => ExprKind::Unknown("asm in an expression"),
            Kind::Error | Kind::Missing => ExprKind::Unknown(SYNTAX_ERROR),
            _ => ExprKind::Unknown("expression"),
        };
        Parsed::Kind(kind)
    }

    /// The grammar takes a sign into the literal.
    fn number(&mut self, node: Node) -> ExprKind {
        let text = self.text(node);
        let op = match text.as_bytes().first() {
            Some(b'-') => UnaryOp::Neg,
            Some(b'+') => UnaryOp::Plus,
            _ => return literal::number(text),
        };
        let digits = text.get(1..).unwrap_or("").trim_start();
        let start = node.end - (digits.len() as u32).min(node.end);
        let literal = Expr { span: self.span_of(start, node.end), kind: literal::number(digits) };
        ExprKind::Unary(op, Box::new(literal))
    }

    /// Chains lean to the left (`a + b + c`, `out << a << b`): walked, not descended, so that long ones do not
    /// use up the stack.
    fn binary(&mut self, node: Node) -> Expr {
        let flat = self.flat;
        let mut links = Vec::new();
        let mut at = node;
        while at.kind == Kind::BinaryExpression {
            let (Some(left), Some(right)) = (flat.field(at, Field::Left), flat.field(at, Field::Right))
            else {
                break;
            };
            let op = flat.field(at, Field::Operator).map_or(BinaryOp::Other, |op| binary_op(self.text(op)));
            links.push((at, op, right));
            at = left;
        }
        if links.is_empty() {
            return self.unknown(node, "incomplete expression");
        }
        let levels = links.len() as u32 / 8;
        let folded = self.deeper(node, levels, |this| {
            let (mut sum, read) = match this.comparison_in(&links) {
                Some((comparison, read)) => (comparison, read),
                None => (this.expr(at), links.len()),
            };
            for &(link, op, right) in links.iter().take(read).rev() {
                let right = this.boxed(right);
                sum = Expr { span: this.span(link), kind: ExprKind::Binary(op, Box::new(sum), right) };
            }
            sum
        });
        folded.unwrap_or_else(|| self.unknown(node, TOO_DEEP))
    }

    /// The innermost links of a chain, outermost first, that are a comparison which the grammar took for a template, and how many
    /// links are left outside it. What has precedence over a comparison belongs to its right side.
    fn comparison_in(&mut self, links: &[(Node, BinaryOp, Node)]) -> Option<(Expr, usize)> {
        let flat = self.flat;
        let (mut place, less) = links.iter().enumerate().rev().find_map(|(place, &(link, ..))| {
            let less =
                self.taken_for_template(flat.field(link, Field::Left)?, flat.field(link, Field::Operator));
            Some((place, less?))
        })?;
        let is_tighter = |op: BinaryOp| {
            matches!(
                op,
                BinaryOp::Add
                    | BinaryOp::Sub
                    | BinaryOp::Mul
                    | BinaryOp::Div
                    | BinaryOp::Rem
                    | BinaryOp::Shl
                    | BinaryOp::Shr
            )
        };
        while place > 0 && links.get(place - 1).is_some_and(|&(_, op, _)| is_tighter(op)) {
            place -= 1;
        }
        let &(link, ..) = links.get(place)?;
        let kind = self.with_less(link, less)?;
        Some((Expr { span: self.span(link), kind }, place))
    }

    fn unary(&mut self, node: Node) -> ExprKind {
        let op = self.flat.field(node, Field::Operator).map_or("", |op| self.text(op));
        let op = match op {
            "-" => UnaryOp::Neg,
            "+" => UnaryOp::Plus,
            "!" | "not" => UnaryOp::Not,
            "~" | "compl" => UnaryOp::BitNot,
            "*" => UnaryOp::Deref,
            "&" => UnaryOp::AddrOf,
            _ => return ExprKind::Unknown("unary operator"),
        };
        ExprKind::Unary(op, self.part(node, Field::Argument))
    }

    fn update(&mut self, node: Node) -> ExprKind {
        let (operator, argument) =
            (self.flat.field(node, Field::Operator), self.flat.field(node, Field::Argument));
        let (Some(operator), Some(argument)) = (operator, argument) else {
            return ExprKind::Unknown("update");
        };
        let op = match (self.text(operator), operator.start < argument.start) {
            ("++", true) => UnaryOp::PreInc,
            ("++", false) => UnaryOp::PostInc,
            (_, true) => UnaryOp::PreDec,
            (_, false) => UnaryOp::PostDec,
        };
        ExprKind::Unary(op, self.boxed(argument))
    }

    fn assignment(&mut self, node: Node) -> ExprKind {
        if let Some(comparison) = self.comparison(node) {
            return comparison;
        }
        let op = self.flat.field(node, Field::Operator).map_or("", |op| self.text(op));
        let op = match op {
            "=" => None,
            "and_eq" => Some(BinaryOp::BitAnd),
            "or_eq" => Some(BinaryOp::BitOr),
            "xor_eq" => Some(BinaryOp::BitXor),
            _ => Some(binary_op(op.strip_suffix('=').unwrap_or(op))),
        };
        ExprKind::Assign(op, self.part(node, Field::Left), self.part(node, Field::Right))
    }

    fn conditional(&mut self, node: Node) -> ExprKind {
        ExprKind::Ternary(
            self.part(node, Field::Condition),
            self.part(node, Field::Consequence),
            self.part(node, Field::Alternative),
        )
    }

    /// `a, b, c` leans to the right.
    fn comma(&mut self, node: Node) -> Vec<Expr> {
        let flat = self.flat;
        let (mut parts, mut at) = (Vec::new(), node);
        while at.kind == Kind::CommaExpression {
            if let Some(left) = flat.field(at, Field::Left) {
                parts.push(self.expr(left));
            }
            let Some(right) = flat.field(at, Field::Right) else { return parts };
            at = right;
        }
        parts.push(self.expr(at));
        parts
    }

    fn subscript(&mut self, node: Node) -> ExprKind {
        let base = self.part(node, Field::Argument);
        let indices = match self.flat.field(node, Field::Indices) {
            Some(list) => self.list(list),
            None => Vec::new(),
        };
        ExprKind::Index(base, indices)
    }

    fn member(&mut self, node: Node) -> ExprKind {
        let flat = self.flat;
        let Some(field) = flat.field(node, Field::Member) else { return ExprKind::Unknown("member") };
        let Some(member) = self.path(field) else { return ExprKind::Unknown("member") };
        let arrow = match flat.field(node, Field::Operator).map(|op| self.text(op)) {
            Some("->") => true,
            Some(".*") => return ExprKind::Unknown("pointer to member"),
            _ => false,
        };
        ExprKind::Field { base: self.part(node, Field::Argument), member, arrow }
    }

    fn call(&mut self, node: Node) -> ExprKind {
        let flat = self.flat;
        let Some(function) = flat.field(node, Field::Function) else { return ExprKind::Unknown("call") };
        let arguments = flat.field(node, Field::Arguments);
        if let Some(config) = flat.child(node, Kind::KernelCallSyntax) {
            let callee = self.boxed(function);
            let config = self.list(config);
            return ExprKind::Launch {
                callee,
                config,
                args: arguments.map_or_else(Vec::new, |list| self.list(list)),
            };
        }
        match function.kind {
            Kind::PrimitiveType | Kind::SizedType => {
                let ty = Box::new(self.ty(function));
                let args = arguments.map_or_else(Vec::new, |list| self.list(list));
                return ExprKind::Construct { ty, args, braced: false };
            }
            Kind::TemplateFunction => {
                if let Some(kind) = self.named_cast(function, arguments) {
                    return kind;
                }
            }
            _ => {}
        }
        if let Some(kind) = self.comparison(node) {
            return kind;
        }
        let callee = self.boxed(function);
        ExprKind::Call { callee, args: arguments.map_or_else(Vec::new, |list| self.list(list)) }
    }

    /// `static_cast<T>(e)` is a call of a template to the grammar.
    fn named_cast(&mut self, function: Node, arguments: Option<Node>) -> Option<ExprKind> {
        let flat = self.flat;
        let name = flat.field(function, Field::Name)?;
        let style = match self.text(name) {
            "static_cast" | "dynamic_cast" => CastStyle::Static,
            "reinterpret_cast" => CastStyle::Reinterpret,
            "const_cast" => CastStyle::Const,
            _ => return None,
        };
        let target = flat.first(flat.field(function, Field::Arguments)?)?;
        let ty =
            if target.kind == Kind::TypeDescriptor { self.type_descriptor(target) } else { self.ty(target) };
        let mut operands = arguments.map_or_else(Vec::new, |list| self.list(list));
        let operand = if operands.len() == 1 { operands.pop()? } else { self.unknown(function, "cast") };
        Some(ExprKind::Cast { style, ty: Box::new(ty), operand: Box::new(operand) })
    }

    fn cast(&mut self, node: Node) -> ExprKind {
        let Some(ty) = self.flat.field(node, Field::Type) else { return ExprKind::Unknown("cast") };
        let ty = Box::new(self.type_descriptor(ty));
        ExprKind::Cast { style: CastStyle::C, ty, operand: self.part(node, Field::Value) }
    }

    fn braced(&mut self, node: Node) -> ExprKind {
        let flat = self.flat;
        let (Some(ty), Some(value)) = (flat.field(node, Field::Type), flat.field(node, Field::Value)) else {
            return ExprKind::Unknown("braced value");
        };
        let ty = Box::new(self.ty(ty));
        ExprKind::Construct { ty, args: self.braces(value), braced: true }
    }

    /// The values of `{…}`; field names are dropped.
    pub(super) fn braces(&mut self, list: Node) -> Vec<Expr> {
        self.init_list(list).into_iter().map(|(_, value)| value).collect()
    }

    fn init_list(&mut self, list: Node) -> Vec<(Option<Name>, Expr)> {
        let flat = self.flat;
        let mut items = Vec::new();
        for item in flat.children(list).filter(|n| n.kind != Kind::Op) {
            if item.kind == Kind::InitializerPair {
                let name =
                    flat.child(item, Kind::FieldDesignator).or_else(|| flat.field(item, Field::Designator));
                let name = name.map(|designator| self.text(designator).trim_start_matches('.').trim());
                let value = *self.part(item, Field::Value);
                items.push((name.map(|name| self.name_of(name)), value));
            } else {
                items.push((None, self.expr(item)));
            }
        }
        items
    }

    /// `sizeof(x)` of a bare name could be of a type or a value: it is given as a type, like a template argument.
    fn sizeof(&mut self, node: Node) -> ExprKind {
        let flat = self.flat;
        if let Some(ty) = flat.field(node, Field::Type) {
            return ExprKind::SizeofType(Box::new(self.type_descriptor(ty)));
        }
        let Some(value) = flat.field(node, Field::Value) else { return ExprKind::Unknown("sizeof") };
        let value = self.boxed(value);
        match value.kind {
            ExprKind::Name(path) => ExprKind::SizeofType(Box::new(Type::Named(path))),
            _ => ExprKind::SizeofExpr(value),
        }
    }

    fn new_expr(&mut self, node: Node) -> ExprKind {
        let flat = self.flat;
        let Some(ty) = flat.field(node, Field::Type) else { return ExprKind::Unknown("new") };
        let ty = Box::new(self.ty(ty));
        let count =
            flat.child(node, Kind::NewDeclarator).and_then(|length| flat.field(length, Field::Length));
        ExprKind::New { ty, count: count.map(|count| self.boxed(count)) }
    }

    fn lambda(&mut self, node: Node) -> ExprKind {
        let flat = self.flat;
        let captures = flat.field(node, Field::Captures);
        let text = captures.map_or("", |captures| self.text(captures));
        let items: Vec<&str> = text.trim_matches(['[', ']']).split(',').map(str::trim).collect();
        let by_reference = items.iter().any(|item| item.starts_with('&'));
        let takes_this = items.iter().any(|item| ["this", "*this"].contains(item));
        let renamed = captures.map_or_else(Vec::new, |captures| self.init_captures(captures));
        let params = flat.field(node, Field::Declarator).and_then(|n| flat.field(n, Field::Parameters));
        let params = params.map_or_else(Vec::new, |list| self.parameters(list));
        let template = flat.child(node, Kind::TemplateParameters);
        let template = template.map_or_else(Vec::new, |list| self.template_list(list));
        let Some(body) = flat.field(node, Field::Body) else { return ExprKind::Unknown("lambda") };
        let head = captures.map_or(node.start, |captures| captures.end) as usize..body.start as usize;
        let is_device = self.original.get(head).is_some_and(|head| head.contains("__device__"));
        let was_in_body = std::mem::replace(&mut self.in_body, true);
        let body = self.block(body);
        self.in_body = was_in_body;
        let span = self.span(node);
        ExprKind::Lambda(Arc::new(Lambda {
            span,
            captures: renamed,
            template,
            params,
            body,
            by_reference,
            takes_this,
            is_device,
        }))
    }

    /// `[p = pointer, &r = x]`
    fn init_captures(&mut self, captures: Node) -> Vec<(Name, Expr)> {
        let flat = self.flat;
        let mut out = Vec::new();
        for item in flat.children(captures).filter(|n| n.kind == Kind::LambdaCaptureInitializer) {
            let mut parts = flat.children(item).filter(|n| n.kind != Kind::Op);
            let (Some(name), Some(value)) = (parts.next(), parts.next()) else { continue };
            if name.kind == Kind::Identifier {
                let name = self.name(name);
                out.push((name, self.expr(value)));
            }
        }
        out
    }
}

/// What an expression node became.
enum Parsed {
    Kind(ExprKind),
    Whole(Expr),
}

fn binary_op(text: &str) -> BinaryOp {
    match text {
        "+" => BinaryOp::Add,
        "-" => BinaryOp::Sub,
        "*" => BinaryOp::Mul,
        "/" => BinaryOp::Div,
        "%" => BinaryOp::Rem,
        "<<" => BinaryOp::Shl,
        ">>" => BinaryOp::Shr,
        "&" | "bitand" => BinaryOp::BitAnd,
        "|" | "bitor" => BinaryOp::BitOr,
        "^" | "xor" => BinaryOp::BitXor,
        "&&" | "and" => BinaryOp::And,
        "||" | "or" => BinaryOp::Or,
        "==" => BinaryOp::Eq,
        "!=" | "not_eq" => BinaryOp::Ne,
        "<" => BinaryOp::Lt,
        "<=" => BinaryOp::Le,
        ">" => BinaryOp::Gt,
        ">=" => BinaryOp::Ge,
        _ => BinaryOp::Other,
    }
}
