//! The owned syntax, spelt out with every bracket, so that a test is one line.

use cudalint::ir::ast::*;

pub fn path(path: &Path) -> String {
    let mut out = String::new();
    for part in &path.scope {
        out += &format!("{}{}::", part.name, args(&part.args));
    }
    out + &format!("{}{}", path.name, args(&path.args))
}

fn args(args: &Option<Vec<TemplateArg>>) -> String {
    let Some(args) = args else { return String::new() };
    let one = |arg: &TemplateArg| match arg {
        TemplateArg::Type(t) => ty(t),
        TemplateArg::Value(value) => format!("={}", expr(value)),
    };
    format!("<{}>", args.iter().map(one).collect::<Vec<_>>().join(", "))
}

pub fn list(items: &[Expr]) -> String {
    items.iter().map(expr).collect::<Vec<_>>().join(", ")
}

pub fn ty(this: &Type) -> String {
    match this {
        Type::Void => "void".into(),
        Type::Bool => "bool".into(),
        Type::Int { size, signed } => format!("{}{}", if *signed { "i" } else { "u" }, u32::from(*size) * 8),
        Type::Float { size } => format!("f{}", u32::from(*size) * 8),
        Type::Auto => "auto".into(),
        Type::Named(name) => path(name),
        Type::Pointer { to, is_const, restrict } => {
            let mark = if *is_const { "const " } else { "" };
            format!("*{}{mark}{}", if *restrict { "restrict " } else { "" }, ty(to))
        }
        Type::Reference { to, is_const } => format!("&{}{}", if *is_const { "const " } else { "" }, ty(to)),
        Type::Array { of, extent } => {
            format!("[{}]{}", extent.as_deref().map_or(String::new(), expr), ty(of))
        }
        Type::Decltype(value) => format!("decltype({})", expr(value)),
        Type::Pack(of) => format!("{}...", ty(of)),
        Type::Unknown(reason) => format!("?{reason}"),
    }
}

pub fn expr(this: &Expr) -> String {
    match &this.kind {
        ExprKind::Int { value, unsigned, long } => {
            format!("{value}{}{}", if *unsigned { "u" } else { "" }, if *long { "l" } else { "" })
        }
        ExprKind::Float { value, double } => format!("{value:?}{}", if *double { "" } else { "f" }),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Char(value) => format!("'{value}"),
        ExprKind::Str => "\"\"".into(),
        ExprKind::Nullptr => "null".into(),
        ExprKind::This => "this".into(),
        ExprKind::Name(name) => path(name),
        ExprKind::Unary(op, of) => format!("{op:?}({})", expr(of)),
        ExprKind::Binary(op, a, b) => format!("{op:?}({}, {})", expr(a), expr(b)),
        ExprKind::Assign(None, a, b) => format!("{} = {}", expr(a), expr(b)),
        ExprKind::Assign(Some(op), a, b) => format!("{} {op:?}= {}", expr(a), expr(b)),
        ExprKind::Ternary(c, a, b) => format!("({} ? {} : {})", expr(c), expr(a), expr(b)),
        ExprKind::Comma(items) => format!("({})", list(items)),
        ExprKind::Index(base, indices) => format!("{}[{}]", expr(base), list(indices)),
        ExprKind::Field { base, member, arrow } => {
            format!("{}{}{}", expr(base), if *arrow { "->" } else { "." }, path(member))
        }
        ExprKind::Call { callee, args } => format!("{}({})", expr(callee), list(args)),
        ExprKind::Launch { callee, config, args } => {
            format!("{}<<<{}>>>({})", expr(callee), list(config), list(args))
        }
        ExprKind::Cast { style, ty: to, operand } => format!("{style:?}<{}>({})", ty(to), expr(operand)),
        ExprKind::Construct { ty: of, args, braced: false } => format!("new:{}({})", ty(of), list(args)),
        ExprKind::Construct { ty: of, args, braced: true } => format!("new:{}{{{}}}", ty(of), list(args)),
        ExprKind::InitList(items) => {
            let one = |(name, value): &(Option<Name>, Expr)| match name {
                Some(name) => format!(".{name}={}", expr(value)),
                None => expr(value),
            };
            format!("{{{}}}", items.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        ExprKind::SizeofType(of) => format!("sizeof<{}>", ty(of)),
        ExprKind::SizeofExpr(of) => format!("sizeof({})", expr(of)),
        ExprKind::AlignofType(of) => format!("alignof<{}>", ty(of)),
        ExprKind::Lambda(lambda) => format!(
            "lambda{}{}({}){}",
            if lambda.by_reference { "&" } else { "" },
            if lambda.is_device { " device" } else { "" },
            lambda.params.iter().map(variable).collect::<Vec<_>>().join(", "),
            block(&lambda.body)
        ),
        ExprKind::New { ty: of, count } => {
            format!("new {}[{}]", ty(of), count.as_deref().map_or(String::new(), expr))
        }
        ExprKind::PackExpansion(pattern) => format!("{}...", expr(pattern)),
        ExprKind::Unknown(reason) => format!("?{reason}"),
    }
}

pub fn variable(this: &VarDecl) -> String {
    let s = this.storage;
    let mut out = String::new();
    let marks = [
        (s.external, "extern "),
        (s.is_static, "static "),
        (s.shared, "shared "),
        (s.constant, "constant "),
        (s.device, "device "),
        (s.managed, "managed "),
        (s.is_constexpr, "constexpr "),
        (s.is_const && !s.is_constexpr, "const "),
        (s.is_volatile, "volatile "),
    ];
    for (_, word) in marks.iter().filter(|(set, _)| *set) {
        out += word;
    }
    if let Some(align) = &this.align {
        out += &format!("align({}) ", expr(align));
    }
    out += &format!("{}: {}", this.name, ty(&this.ty));
    match &this.init {
        Init::None => out,
        Init::Assign(value) => out + &format!(" = {}", expr(value)),
        Init::Paren(values) => out + &format!("({})", list(values)),
        Init::Brace(values) => out + &format!("{{{}}}", list(values)),
    }
}

pub fn block(body: &[Stmt]) -> String {
    format!("{{{}}}", body.iter().map(stmt).collect::<Vec<_>>().join("; "))
}

pub fn stmt(this: &Stmt) -> String {
    match &this.kind {
        StmtKind::Empty => "empty".into(),
        StmtKind::Decl(all) => all.iter().map(variable).collect::<Vec<_>>().join(" / "),
        StmtKind::Expr(value) => expr(value),
        StmtKind::Block(body) => block(body),
        StmtKind::If { is_constexpr, init, cond, then, otherwise } => {
            let mark = if *is_constexpr { " constexpr" } else { "" };
            let init = init.as_deref().map_or(String::new(), |init| format!("{}; ", stmt(init)));
            let tail = otherwise.as_deref().map_or(String::new(), |tail| format!(" else {}", stmt(tail)));
            format!("if{mark} ({init}{}) {}{tail}", expr(cond), stmt(then))
        }
        StmtKind::For { init, cond, step, body } => format!(
            "for ({}; {}; {}) {}",
            init.as_deref().map_or(String::new(), stmt),
            cond.as_ref().map_or(String::new(), expr),
            step.as_ref().map_or(String::new(), expr),
            stmt(body)
        ),
        StmtKind::RangeFor { var, range, body } => {
            format!("for ({} : {}) {}", variable(var), expr(range), stmt(body))
        }
        StmtKind::While { cond, body } => format!("while ({}) {}", expr(cond), stmt(body)),
        StmtKind::DoWhile { body, cond } => format!("do {} while ({})", stmt(body), expr(cond)),
        StmtKind::Return(value) => format!("return {}", value.as_ref().map_or(String::new(), expr)),
        StmtKind::Break => "break".into(),
        StmtKind::Continue => "continue".into(),
        StmtKind::Switch { cond, cases } => {
            let one = |case: &Case| {
                format!("{} => {}", case.value.as_ref().map_or("_".into(), expr), block(&case.body))
            };
            format!("switch ({}) {}", expr(cond), cases.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        StmtKind::Jump => "jump".into(),
        StmtKind::LoopMacro { name, args, body } => format!("loop {name}({}) {}", list(args), stmt(body)),
        StmtKind::BlockMacro { name, args, body } => format!("block {name}({}) {}", list(args), stmt(body)),
        StmtKind::Macro { name, args: None } => format!("macro {name}"),
        StmtKind::Macro { name, args: Some(args) } => format!("macro {name}({})", args.join("|")),
        StmtKind::Alternatives(branches) => {
            format!("#if {}", branches.iter().map(|branch| block(branch)).collect::<Vec<_>>().join(" #else "))
        }
        StmtKind::Asm(asm) => {
            let operands = |all: &[(String, Expr)]| {
                all.iter().map(|(how, value)| format!("{how} {}", expr(value))).collect::<Vec<_>>().join(", ")
            };
            format!("asm {:?} : {} : {}", asm.template, operands(&asm.outputs), operands(&asm.inputs))
        }
        StmtKind::Alias(alias) => format!("alias {} = {}", alias.name, ty(&alias.ty)),
        StmtKind::Struct(def) => format!("struct {}", fields(def)),
        StmtKind::Enum(def) => format!("enum {}", def.name),
        StmtKind::Unknown(reason) => format!("?{reason}"),
    }
}

pub fn fields(def: &StructDef) -> String {
    let kind = if def.is_union { "union " } else { "" };
    let fields = def.fields.iter().map(variable).collect::<Vec<_>>().join(", ");
    format!("{kind}{} {{{fields}}}", def.name)
}
