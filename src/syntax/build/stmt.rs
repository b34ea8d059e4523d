//! Statements.

use super::flat::{Field, Kind, Node};
use super::*;

impl<'a> Builder<'a> {
    /// The statements between the braces of a block.
    pub(super) fn block(&mut self, node: Node) -> Vec<Stmt> {
        if node.kind != Kind::CompoundStatement {
            let mut out = Vec::new();
            self.statements(node, None, &mut out);
            return out;
        }
        let flat = self.flat;
        let items: Vec<Node> = flat.children(node).collect();
        self.sequence(&items, node.start, node.end)
    }

    /// Statements in a row, with the macros that masking took out put back between them.
    fn sequence(&mut self, items: &[Node], start: u32, end: u32) -> Vec<Stmt> {
        let side = self.side;
        let first = side.macros.partition_point(|m| m.span.start < start);
        let last = side.macros.partition_point(|m| m.span.start < end);
        let mut macros = side.macros.get(first..last).unwrap_or(&[]).iter().peekable();
        let mut out = Vec::with_capacity(items.len());
        let mut skip = false;
        for (at, &item) in items.iter().enumerate() {
            while let Some(this) = macros.next_if(|m| m.span.start < item.start) {
                // Masking keeps the arguments that hold a launch: they say more than the macro's name.
                if this.span.end <= item.start {
                    out.push(self.macro_use(this));
                }
            }
            // A macro that masking only gave its `;` is still there as a call.
            if let Some(this) = macros.peek()
                && item.kind == Kind::ExpressionStatement
                && this.span.start == item.start
                && self.flat.first(item).is_some_and(|inner| inner.end <= this.span.end)
            {
                out.push(self.macro_use(this));
                macros.next();
                continue;
            }
            // What lies inside an item is found again when that item is built.
            while macros.next_if(|m| m.span.start < item.end).is_some() {}
            if std::mem::take(&mut skip) {
                continue;
            }
            let next = items.get(at + 1).copied();
            if item.kind == Kind::ExpressionStatement
                && flat_has_missing(self.flat, item)
                && let Some(kind) = self.misplaced_macro(item, next)
            {
                skip = matches!(kind, StmtKind::LoopMacro { .. });
                let span = if skip {
                    self.span(item).to(next.map_or(self.span(item), |n| self.span(n)))
                } else {
                    self.span(item)
                };
                out.push(Stmt { span, kind });
                continue;
            }
            self.statements(item, next, &mut out);
        }
        for this in macros {
            out.push(self.macro_use(this));
        }
        out
    }

    fn misplaced_macro(&mut self, item: Node, next: Option<Node>) -> Option<StmtKind> {
        if item.bad {
            return None;
        }
        self.call_before_block(item, next.filter(|n| n.kind == Kind::CompoundStatement))
    }

    fn macro_use(&mut self, this: &MacroUse) -> Stmt {
        let kind = StmtKind::Macro { name: Name::new(&this.name), args: this.args.clone() };
        Stmt { span: self.span_of(this.span.start, this.span.end), kind }
    }

    /// One statement; several from one node become a block.
    pub(super) fn statement(&mut self, node: Node) -> Stmt {
        let mut out = Vec::new();
        self.statements(node, None, &mut out);
        match (out.pop(), out.is_empty()) {
            (Some(only), true) => only,
            (None, _) => Stmt { span: self.span(node), kind: StmtKind::Empty },
            (Some(last), false) => {
                out.push(last);
                Stmt { span: self.span(node), kind: StmtKind::Block(out) }
            }
        }
    }

    /// Appends what `node` stands for: usually one statement.
    fn statements(&mut self, node: Node, _next: Option<Node>, out: &mut Vec<Stmt>) {
        let levels = 1;
        if self.deeper(node, levels, |this| this.statement_of(node, out)).is_none() {
            out.push(Stmt { span: self.span(node), kind: StmtKind::Unknown(TOO_DEEP) });
        }
    }

    fn push_defs(&mut self, out: &mut Vec<Stmt>) {
        for def in std::mem::take(&mut self.defs) {
            out.push(match def {
                Def::Struct(def) => Stmt { span: def.span, kind: StmtKind::Struct(def) },
                Def::Enum(def) => Stmt { span: def.span, kind: StmtKind::Enum(def) },
            });
        }
    }

    fn statement_of(&mut self, node: Node, out: &mut Vec<Stmt>) {
        let flat = self.flat;
        let span = self.span(node);
        let mut push = |kind| out.push(Stmt { span, kind });
        match node.kind {
            Kind::CompoundStatement => push(StmtKind::Block(self.block(node))),
            Kind::IfStatement | Kind::ForStatement | Kind::WhileStatement if self.has_masked_head(node) => {
                push(self.masked_loop(node).unwrap_or(StmtKind::Unknown("loop macro")));
            }
            Kind::IfStatement => push(self.if_chain(node)),
            Kind::ForStatement => push(self.for_loop(node)),
            Kind::ForRangeLoop => self.range_for(node, out),
            Kind::WhileStatement => push(self.while_loop(node)),
            Kind::DoStatement => {
                let body = Box::new(self.body(node, Field::Body));
                push(StmtKind::DoWhile { body, cond: self.condition(node) });
            }
            Kind::SwitchStatement => push(self.switch(node)),
            Kind::BreakStatement => push(StmtKind::Break),
            Kind::ContinueStatement => push(StmtKind::Continue),
            Kind::GotoStatement => push(StmtKind::Jump),
            Kind::LabeledStatement => {
                push(StmtKind::Jump);
                for inner in flat.children(node).filter(|n| n.field != Field::Label) {
                    self.statements(inner, None, out);
                }
            }
            Kind::AttributedStatement | Kind::ElseClause | Kind::InitStatement => {
                for inner in flat.children(node).filter(|n| n.kind != Kind::AttributeDeclaration) {
                    self.statements(inner, None, out);
                }
            }
            Kind::TryStatement => {
                if let Some(body) = flat.field(node, Field::Body) {
                    push(StmtKind::Block(self.block(body)));
                }
            }
            Kind::CaseStatement => {
                // A label outside of the switch that was read: the statements count.
                let items: Vec<Node> = flat.children(node).filter(|n| n.field != Field::Value).collect();
                push(StmtKind::Jump);
                out.extend(self.sequence(&items, node.start, node.end));
            }
            Kind::PreprocIf | Kind::PreprocIfdef => self.alternatives(node, out),
            Kind::LinkageSpecification | Kind::DeclarationList => {
                for inner in flat.children(node).filter(|n| n.field != Field::Value) {
                    self.statements(inner, None, out);
                }
            }
            Kind::UsingDeclaration | Kind::StaticAssert | Kind::Op | Kind::MissingSemicolon => {}
            Kind::FunctionDefinition => match self.loop_macro(node) {
                Some(kind) => push(kind),
                None => push(StmtKind::Unknown("function inside a function")),
            },
            _ if node.bad => {
                self.gap(node, SYNTAX_ERROR);
                push(StmtKind::Unknown(SYNTAX_ERROR));
            }
            _ => self.simple_statement(node, out),
        }
    }

    /// Statements without statements inside (but for lambdas).
    fn simple_statement(&mut self, node: Node, out: &mut Vec<Stmt>) {
        let flat = self.flat;
        let span = self.span(node);
        let kind = match node.kind {
            Kind::ExpressionStatement => self.expression_statement(node),
            Kind::Declaration => return self.local_declaration(node, out),
            Kind::ReturnStatement | Kind::CoReturnStatement => {
                StmtKind::Return(flat.first(node).map(|value| self.expr(value)))
            }
            // An exception leaves the function: nothing after it runs.
            Kind::ThrowStatement => StmtKind::Return(None),
            Kind::TypeDefinition => {
                let aliases = self.typedef(node);
                self.push_defs(out);
                out.extend(aliases.into_iter().map(|alias| Stmt { span, kind: StmtKind::Alias(alias) }));
                return;
            }
            Kind::AliasDeclaration => match self.alias(node, Vec::new()) {
                Some(alias) => StmtKind::Alias(alias),
                None => StmtKind::Unknown("alias"),
            },
            Kind::NamespaceAlias => match self.namespace_alias(node) {
                Some(alias) => StmtKind::Alias(alias),
                None => StmtKind::Unknown("namespace alias"),
            },
            Kind::StructSpecifier | Kind::ClassSpecifier | Kind::UnionSpecifier | Kind::EnumSpecifier => {
                self.ty(node);
                return self.push_defs(out);
            }
            Kind::CommaExpression | Kind::AsmExpression => self.expression(node),
            _ if node.kind != Kind::Other => self.expression(node),
            _ => {
                self.gap(node, "statement not understood");
                StmtKind::Unknown("statement")
            }
        };
        out.push(Stmt { span, kind });
    }

    fn expression_statement(&mut self, node: Node) -> StmtKind {
        let Some(inner) = self.flat.first(node) else { return self.blank_statement(node) };
        if inner.kind == Kind::Identifier {
            return StmtKind::Macro { name: self.name(inner), args: None };
        }
        self.expression(inner)
    }

    /// `;`: nothing, or what masking left of a macro.
    fn blank_statement(&mut self, node: Node) -> StmtKind {
        let side = self.side;
        let at = side.macros.partition_point(|m| m.span.end < node.end);
        match side.macros.get(at) {
            Some(this) if this.span.start <= node.start && node.end <= this.span.end => {
                StmtKind::Macro { name: Name::new(&this.name), args: this.args.clone() }
            }
            _ => StmtKind::Empty,
        }
    }

    fn expression(&mut self, node: Node) -> StmtKind {
        match node.kind {
            Kind::AsmExpression => self.asm(node),
            Kind::AssignmentExpression | Kind::SubscriptExpression => match self.array_pointer(node) {
                Some(variable) => StmtKind::Decl(vec![variable]),
                None => StmtKind::Expr(self.expr(node)),
            },
            _ => StmtKind::Expr(self.expr(node)),
        }
    }

    /// The statement in a field.
    fn body(&mut self, node: Node, field: Field) -> Stmt {
        match self.flat.field(node, field) {
            Some(body) => self.statement(body),
            None => Stmt { span: self.span(node), kind: StmtKind::Empty },
        }
    }

    /// A condition without a declaration in it.
    fn condition(&mut self, node: Node) -> Expr {
        match self.flat.field(node, Field::Condition) {
            Some(condition) => self.head(condition),
            None => self.unknown(node, "no condition"),
        }
    }

    /// `if (init; cond)` and `if (T x = e)`: what comes first, and the condition.
    fn condition_clause(&mut self, node: Node) -> (Option<Box<Stmt>>, Expr) {
        let flat = self.flat;
        let Some(clause) = flat.field(node, Field::Condition) else {
            return (None, self.unknown(node, "no condition"));
        };
        if clause.bad {
            return (None, self.head(clause));
        }
        let mut init = flat.field(clause, Field::Initializer).map(|init| Box::new(self.statement(init)));
        let Some(value) = flat.field(clause, Field::Value) else {
            return (init, self.unknown(clause, "no condition"));
        };
        if value.kind != Kind::Declaration {
            return (init, self.expr(value));
        }
        let declared = self.statement(value);
        let name = match &declared.kind {
            StmtKind::Decl(variables) => variables.first().map(|variable| variable.name),
            _ => None,
        };
        let kind = name.map_or(ExprKind::Unknown("condition"), |name| ExprKind::Name(Path::simple(name)));
        init.get_or_insert_with(|| Box::new(declared));
        (init, Expr { span: self.span(value), kind })
    }

    /// `else if` chains are walked, not descended.
    fn if_chain(&mut self, node: Node) -> StmtKind {
        let flat = self.flat;
        let mut links = Vec::new();
        let (mut at, mut last) = (Some(node), None);
        while let Some(link) = at {
            links.push(link);
            let otherwise = flat.field(link, Field::Alternative).and_then(|clause| flat.first(clause));
            let plain = |n: &Node| n.kind == Kind::IfStatement && !self.has_masked_head(*n);
            at = otherwise.filter(|n| plain(n) && links.len() < 4 * MAX_DEPTH as usize);
            last = otherwise.filter(|_| at.is_none());
        }
        let levels = links.len() as u32 / 8;
        let chain = self.deeper(node, levels, |this| {
            let heads: Vec<_> = links.iter().map(|&link| this.if_head(link)).collect();
            let mut otherwise = last.map(|last| Box::new(this.statement(last)));
            let mut whole = StmtKind::Empty;
            for (&link, (is_constexpr, init, cond, then)) in links.iter().zip(heads).rev() {
                whole = StmtKind::If { is_constexpr, init, cond, then, otherwise: otherwise.take() };
                if link.range() != node.range() {
                    otherwise = Some(Box::new(Stmt {
                        span: this.span(link),
                        kind: std::mem::replace(&mut whole, StmtKind::Empty),
                    }));
                }
            }
            whole
        });
        chain.unwrap_or(StmtKind::Unknown(TOO_DEEP))
    }

    #[allow(clippy::type_complexity)]
    fn if_head(&mut self, node: Node) -> (bool, Option<Box<Stmt>>, Expr, Box<Stmt>) {
        let is_constexpr = self.flat.child(node, Kind::Constexpr).is_some();
        let (init, cond) = self.condition_clause(node);
        let then = Box::new(self.body(node, Field::Consequence));
        (is_constexpr, init, cond, then)
    }

    fn for_loop(&mut self, node: Node) -> StmtKind {
        let flat = self.flat;
        let init = flat.field(node, Field::Initializer).map(|init| {
            if init.kind == Kind::Declaration {
                Box::new(self.statement(init))
            } else {
                let head = self.head(init);
                Box::new(Stmt { span: self.span(init), kind: StmtKind::Expr(head) })
            }
        });
        let cond = flat.field(node, Field::Condition).map(|cond| self.head(cond));
        let step = flat.field(node, Field::Update).map(|step| self.head(step));
        let stray = flat.children(node).find(|n| matches!(n.kind, Kind::Error | Kind::Missing));
        if let Some(stray) = stray {
            self.gap(stray, SYNTAX_ERROR);
            return StmtKind::Unknown("syntax error in the head of a loop");
        }
        StmtKind::For { init, cond, step, body: Box::new(self.body(node, Field::Body)) }
    }

    fn while_loop(&mut self, node: Node) -> StmtKind {
        let (init, cond) = self.condition_clause(node);
        let body = Box::new(self.body(node, Field::Body));
        match init {
            None => StmtKind::While { cond, body },
            // `while (T x = e)`: its variable is made anew every time; the initialiser is not a loop invariant.
            Some(_) => {
                let cond = Expr { span: cond.span, kind: ExprKind::Unknown("declaration as a condition") };
                StmtKind::While { cond, body }
            }
        }
    }

    fn has_masked_head(&self, node: Node) -> bool {
        let loops = &self.side.loops;
        let at = loops.partition_point(|this| this.head.end <= node.start);
        loops.get(at).is_some_and(|this| this.head.start <= node.start)
    }

    /// A loop or condition whose head masking wrote for a macro.
    fn masked_loop(&mut self, node: Node) -> Option<StmtKind> {
        let side = self.side;
        let at = side.loops.partition_point(|this| this.head.end <= node.start);
        let this = side.loops.get(at).filter(|this| this.head.start <= node.start)?;
        if this.kind == HeadKind::Condition {
            let span = self.span_of(this.head.start, this.head.end);
            let cond = Expr { span, kind: ExprKind::Unknown("condition inside a macro") };
            let then = Box::new(self.body(node, Field::Consequence));
            let otherwise =
                self.flat.field(node, Field::Alternative).map(|clause| Box::new(self.statement(clause)));
            return Some(StmtKind::If { is_constexpr: false, init: None, cond, then, otherwise });
        }
        let args = this.args.iter().map(|(text, range)| self.loop_argument(text, range)).collect();
        // Where there was little room, `if (1)` stands for a loop.
        let field = if node.kind == Kind::IfStatement { Field::Consequence } else { Field::Body };
        let body = Box::new(self.body(node, field));
        let name = Name::new(&this.name);
        Some(match this.kind {
            HeadKind::Block => StmtKind::BlockMacro { name, args, body },
            HeadKind::Loop | HeadKind::Condition => StmtKind::LoopMacro { name, args, body },
        })
    }

    fn loop_argument(&self, text: &str, range: &Range<u32>) -> Expr {
        let span = self.span_of(range.start, range.end);
        snippet_expr(text, self.spans_from(range.start), self.depth + 1)
            .unwrap_or(Expr { span, kind: ExprKind::Unknown("argument of a loop macro") })
    }

    fn range_for(&mut self, node: Node, out: &mut Vec<Stmt>) {
        let flat = self.flat;
        let specs = self.specs(node);
        let span = self.span(node);
        let (Some(declarator), Some(range)) =
            (flat.field(node, Field::Declarator), flat.field(node, Field::Right))
        else {
            return out.push(Stmt { span, kind: StmtKind::Unknown("range-based for") });
        };
        let declared = self.declare(declarator, specs.ty, specs.is_const);
        let name = declared.path.as_ref().map_or_else(|| Name::new(""), |path| path.name);
        let ty = if declared.binding.is_some() { Type::Unknown("structured binding") } else { declared.ty };
        let storage = Storage { is_const: declared.is_const, ..specs.storage };
        let var = VarDecl {
            name,
            name_span: declared.name_span,
            span: self.span(declarator),
            ty,
            init: Init::None,
            storage,
            align: None,
        };
        let range = self.head(range);
        let body = Box::new(self.body(node, Field::Body));
        let init = flat.field(node, Field::Initializer).map(|init| self.statement(init));
        let whole = Stmt { span, kind: StmtKind::RangeFor { var, range, body } };
        match init {
            Some(init) => out.push(Stmt { span, kind: StmtKind::Block(vec![init, whole]) }),
            None => out.push(whole),
        }
    }

    fn switch(&mut self, node: Node) -> StmtKind {
        let (init, cond) = self.condition_clause(node);
        if init.is_some() {
            return StmtKind::Unknown("declaration in the head of a switch");
        }
        let mut cases = Vec::new();
        if let Some(body) = self.flat.field(node, Field::Body) {
            self.cases(body, &mut cases);
        }
        StmtKind::Switch { cond, cases }
    }

    fn cases(&mut self, body: Node, cases: &mut Vec<Case>) {
        let flat = self.flat;
        for item in flat.children(body) {
            match item.kind {
                Kind::CaseStatement => {
                    let value = flat.field(item, Field::Value).map(|value| self.head(value));
                    let items: Vec<Node> = flat.children(item).filter(|n| n.field != Field::Value).collect();
                    let body = self.sequence(&items, item.start, item.end);
                    cases.push(Case { value, body });
                }
                // Cases under `#if`: all of them can be reached.
                Kind::PreprocIf
                | Kind::PreprocIfdef
                | Kind::PreprocElse
                | Kind::PreprocElif
                | Kind::PreprocElifdef => {
                    if self.deeper(item, 1, |this| this.cases(item, cases)).is_none() {
                        return;
                    }
                }
                _ if matches!(item.field, Field::Condition | Field::Name) => {}
                Kind::Op | Kind::MissingSemicolon => {}
                _ => {
                    let mut more = Vec::new();
                    self.statements(item, None, &mut more);
                    // Before the first label only macros that stand for cases are of use.
                    match cases.last_mut() {
                        Some(case) => case.body.append(&mut more),
                        None if more.iter().any(|stmt| matches!(stmt.kind, StmtKind::Macro { .. })) => {
                            cases.push(Case { value: None, body: more });
                        }
                        None => {}
                    }
                }
            }
        }
    }

    /// `#if … #elif … #else … #endif` between statements.
    fn alternatives(&mut self, node: Node, out: &mut Vec<Stmt>) {
        let flat = self.flat;
        let (mut branches, mut closed, mut known) = (Vec::new(), false, None);
        let mut at = Some(node);
        while let Some(branch) = at {
            closed = branch.kind == Kind::PreprocElse;
            let head = |n: &Node| matches!(n.field, Field::Condition | Field::Name | Field::Alternative);
            let items: Vec<Node> = flat.children(branch).filter(|n| !head(n)).collect();
            let otherwise = flat.field(branch, Field::Alternative);
            let end = otherwise.map_or(branch.end, |n| n.start);
            let statements = self.sequence(&items, branch.start, end);
            match flat.field(branch, Field::Condition).filter(|n| n.kind == Kind::NumberLiteral) {
                Some(zero) if self.text(zero) == "0" => {}
                Some(_) if branches.is_empty() => {
                    known = Some(statements);
                    break;
                }
                _ => branches.push(statements),
            }
            at = otherwise;
        }
        if let Some(statements) = known {
            return out.extend(statements);
        }
        if !closed {
            branches.push(Vec::new());
        } else if branches.len() == 1 {
            return out.extend(branches.pop().unwrap_or_default());
        }
        if branches.iter().any(|branch| !branch.is_empty()) {
            out.push(Stmt { span: self.span(node), kind: StmtKind::Alternatives(branches) });
        }
    }

    fn asm(&mut self, node: Node) -> StmtKind {
        let flat = self.flat;
        let template = flat.field(node, Field::Template).map(|n| self.string(n)).unwrap_or_default();
        let is_fence = self.original.get(node.range()).is_some_and(|text| text.contains("\"memory\""));
        let mut asm = Asm { template, outputs: Vec::new(), inputs: Vec::new(), is_fence };
        for list in flat.children(node) {
            let operands = match list.kind {
                Kind::AsmOutputs => &mut asm.outputs,
                Kind::AsmInputs => &mut asm.inputs,
                _ => continue,
            };
            for operand in flat
                .children(list)
                .filter(|n| matches!(n.kind, Kind::AsmInputOperand | Kind::AsmOutputOperand))
            {
                let constraint = flat.children(operand).find(|n| n.kind == Kind::StringLiteral);
                let constraint = constraint.map(|n| self.string(n)).unwrap_or_default();
                if let Some(value) = flat.field(operand, Field::Value) {
                    operands.push((constraint, self.expr(value)));
                }
            }
        }
        StmtKind::Asm(asm)
    }

    /// The contents of a string, pieces joined, escapes of layout resolved.
    fn string(&self, node: Node) -> String {
        let flat = self.flat;
        match node.kind {
            Kind::ConcatenatedString => flat.children(node).map(|piece| self.string(piece)).collect(),
            Kind::StringLiteral => {
                let text = self.original.get(node.range()).unwrap_or("");
                let inner = text.split_once('"').map_or("", |(_, rest)| rest);
                let inner = inner.strip_suffix('"').unwrap_or(inner);
                inner.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"").replace("\\\\", "\\")
            }
            Kind::RawString => {
                let text = self.original.get(node.range()).unwrap_or("");
                let inner = text.split_once('(').map_or("", |(_, rest)| rest);
                inner.rsplit_once(')').map_or(inner, |(inner, _)| inner).to_owned()
            }
            _ => String::new(),
        }
    }

    /// The body of the function around a snippet.
    pub(super) fn snippet_body(&self) -> Option<Node> {
        let function = self.flat.children(self.flat.root()?).find(|n| n.kind == Kind::FunctionDefinition)?;
        self.flat.field(function, Field::Body)
    }

    pub(super) fn snippet_return(&mut self) -> Option<Expr> {
        let flat = self.flat;
        let body = self.snippet_body()?;
        let mut statements = flat.children(body);
        let only = statements.next().filter(|n| n.kind == Kind::ReturnStatement)?;
        if statements.next().is_some() {
            return None;
        }
        let value = flat.first(only)?;
        Some(self.expr(value))
    }

    pub(super) fn snippet_type(&mut self) -> Option<Type> {
        let flat = self.flat;
        let alias = flat.children(flat.root()?).find(|n| n.kind == Kind::AliasDeclaration)?;
        let ty = flat.field(alias, Field::Type)?;
        Some(self.type_descriptor(ty))
    }
}

fn flat_has_missing(flat: &Flat, node: Node) -> bool {
    flat.child(node, Kind::MissingSemicolon).is_some()
}
