//! A walk over all expressions of a body.

use super::ast::{Expr, ExprKind, Init, Stmt, StmtKind, VarDecl};

/// Calls `f` for every expression in the statements, outer before inner; lambdas included.
pub fn expressions<'a>(stmts: &'a [Stmt], f: &mut dyn FnMut(&'a Expr)) {
    stmts.iter().for_each(|stmt| in_stmt(stmt, f));
}

/// Calls `f` for every statement, outer before inner; those of lambdas are not among them.
pub fn statements<'a>(stmts: &'a [Stmt], f: &mut dyn FnMut(&'a Stmt)) {
    for stmt in stmts {
        f(stmt);
        let mut one = |inner: &'a Stmt| statements(std::slice::from_ref(inner), f);
        match &stmt.kind {
            StmtKind::Block(body) => statements(body, f),
            StmtKind::If { init, then, otherwise, .. } => {
                init.iter().chain([then]).chain(otherwise).for_each(|inner| one(inner));
            }
            StmtKind::For { init, body, .. } => init.iter().chain([body]).for_each(|inner| one(inner)),
            StmtKind::RangeFor { body, .. }
            | StmtKind::While { body, .. }
            | StmtKind::DoWhile { body, .. }
            | StmtKind::LoopMacro { body, .. }
            | StmtKind::BlockMacro { body, .. } => one(body),
            StmtKind::Switch { cases, .. } => cases.iter().for_each(|case| statements(&case.body, f)),
            StmtKind::Alternatives(branches) => branches.iter().for_each(|branch| statements(branch, f)),
            StmtKind::Decl(_)
            | StmtKind::Expr(_)
            | StmtKind::Return(_)
            | StmtKind::Asm(_)
            | StmtKind::Empty
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Jump
            | StmtKind::Macro { .. }
            | StmtKind::Alias(_)
            | StmtKind::Struct(_)
            | StmtKind::Enum(_)
            | StmtKind::Unknown(_) => {}
        }
    }
}

fn in_stmt<'a>(stmt: &'a Stmt, f: &mut dyn FnMut(&'a Expr)) {
    match &stmt.kind {
        StmtKind::Decl(vars) => vars.iter().for_each(|var| in_declaration(var, f)),
        StmtKind::Expr(expr) => in_expr(expr, f),
        StmtKind::Block(body) => expressions(body, f),
        StmtKind::If { init, cond, then, otherwise, .. } => {
            init.iter().for_each(|stmt| in_stmt(stmt, f));
            in_expr(cond, f);
            in_stmt(then, f);
            otherwise.iter().for_each(|stmt| in_stmt(stmt, f));
        }
        StmtKind::For { init, cond, step, body } => {
            init.iter().for_each(|stmt| in_stmt(stmt, f));
            cond.iter().chain(step).for_each(|expr| in_expr(expr, f));
            in_stmt(body, f);
        }
        StmtKind::RangeFor { range, body, .. } => {
            in_expr(range, f);
            in_stmt(body, f);
        }
        StmtKind::While { cond, body } | StmtKind::DoWhile { body, cond } => {
            in_expr(cond, f);
            in_stmt(body, f);
        }
        StmtKind::Return(Some(expr)) => in_expr(expr, f),
        StmtKind::Switch { cond, cases } => {
            in_expr(cond, f);
            for case in cases {
                case.value.iter().for_each(|expr| in_expr(expr, f));
                expressions(&case.body, f);
            }
        }
        StmtKind::LoopMacro { args, body, .. } | StmtKind::BlockMacro { args, body, .. } => {
            args.iter().for_each(|expr| in_expr(expr, f));
            in_stmt(body, f);
        }
        StmtKind::Alternatives(branches) => branches.iter().for_each(|branch| expressions(branch, f)),
        StmtKind::Asm(asm) => asm.outputs.iter().chain(&asm.inputs).for_each(|(_, expr)| in_expr(expr, f)),
        StmtKind::Empty
        | StmtKind::Return(None)
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Jump
        | StmtKind::Macro { .. }
        | StmtKind::Alias(_)
        | StmtKind::Struct(_)
        | StmtKind::Enum(_)
        | StmtKind::Unknown(_) => {}
    }
}

fn in_declaration<'a>(var: &'a VarDecl, f: &mut dyn FnMut(&'a Expr)) {
    match &var.init {
        Init::None => {}
        Init::Assign(expr) => in_expr(expr, f),
        Init::Paren(args) | Init::Brace(args) => args.iter().for_each(|expr| in_expr(expr, f)),
    }
}

fn in_expr<'a>(expr: &'a Expr, f: &mut dyn FnMut(&'a Expr)) {
    f(expr);
    match &expr.kind {
        ExprKind::Unary(_, a)
        | ExprKind::SizeofExpr(a)
        | ExprKind::PackExpansion(a)
        | ExprKind::Cast { operand: a, .. } => in_expr(a, f),
        ExprKind::Field { base, .. } => in_expr(base, f),
        ExprKind::Binary(_, a, b) | ExprKind::Assign(_, a, b) => {
            in_expr(a, f);
            in_expr(b, f);
        }
        ExprKind::Ternary(a, b, c) => [a, b, c].into_iter().for_each(|expr| in_expr(expr, f)),
        ExprKind::Comma(list) | ExprKind::Construct { args: list, .. } => {
            list.iter().for_each(|expr| in_expr(expr, f));
        }
        ExprKind::Index(base, list) | ExprKind::Call { callee: base, args: list } => {
            in_expr(base, f);
            list.iter().for_each(|expr| in_expr(expr, f));
        }
        ExprKind::Launch { callee, config, args } => {
            in_expr(callee, f);
            config.iter().chain(args).for_each(|expr| in_expr(expr, f));
        }
        ExprKind::InitList(items) => items.iter().for_each(|(_, expr)| in_expr(expr, f)),
        ExprKind::Lambda(lambda) => expressions(&lambda.body, f),
        ExprKind::New { count, .. } => count.iter().for_each(|expr| in_expr(expr, f)),
        ExprKind::Int { .. }
        | ExprKind::Float { .. }
        | ExprKind::Bool(_)
        | ExprKind::Char(_)
        | ExprKind::Str
        | ExprKind::Nullptr
        | ExprKind::This
        | ExprKind::Name(_)
        | ExprKind::SizeofType(_)
        | ExprKind::AlignofType(_)
        | ExprKind::Unknown(_) => {}
    }
}
