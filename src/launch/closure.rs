//! What a lambda that a launch passes takes from the host code around it.

use rustc_hash::FxHashSet;

use super::kernel::constant;
use crate::ir::ast::{ExprKind, Lambda, Name, StmtKind};
use crate::ir::facts::{CaptureFact, ClosureFact};
use crate::ir::walk;
use crate::lower::exec::Exec;
use crate::lower::types::{TemplateValue, Ty};
use crate::lower::value::{Closure, Place, SlotId, Val};

/// No object that a lambda captures has more numbers in it that are of interest.
const MOST_NUMBERS: usize = 256;
/// Lambdas that capture lambdas.
const DEEPEST: u32 = 4;

/// `None` where the argument is no lambda.
pub fn closure_fact(exec: &mut Exec, arg: &Val) -> Option<ClosureFact> {
    fact(exec, arg, 0)
}

fn fact(exec: &mut Exec, value: &Val, depth: u32) -> Option<ClosureFact> {
    let Val::Lambda(closure) = held(exec, value) else { return None };
    if depth > DEEPEST {
        return None;
    }
    let lambda = &closure.lambda;
    let (mut captures, mut others) = (Vec::new(), Vec::new());
    for name in used(lambda) {
        match closure.scopes.iter().rev().find_map(|scope| scope.get(&name)) {
            Some(id) => captures.push(capture(exec, &closure, name, *id, depth)),
            None => others.push(name),
        }
    }
    let (mut types, mut constants) = (Vec::new(), Vec::new());
    let mut env = Some(closure.env.clone());
    while let Some(names) = env {
        for (name, value) in &names.args {
            match value {
                TemplateValue::Type(ty) => types.push((name.to_string(), seen(ty).then(|| ty.name()))),
                TemplateValue::Value(value) => {
                    constants.push((name.to_string(), constant(&exec.arena, value)));
                }
            }
        }
        env = names.outer.clone();
    }
    types.sort_by(|a, b| a.0.cmp(&b.0));
    constants.sort_by(|a, b| a.0.cmp(&b.0));
    // What is nearer comes first.
    types.dedup_by(|a, b| a.0 == b.0);
    constants.dedup_by(|a, b| a.0 == b.0);
    Some(ClosureFact {
        span: lambda.span,
        by_reference: lambda.by_reference,
        takes_this: lambda.takes_this,
        captures,
        others,
        types,
        constants,
    })
}

fn capture(exec: &mut Exec, closure: &Closure, name: Name, id: SlotId, depth: u32) -> CaptureFact {
    let (value, declared) = (exec.slot(id).value.clone(), exec.slot(id).ty.clone());
    let value = held(exec, &value);
    let ty = if seen(&declared) { declared } else { exec.type_of(&value) };
    let mut numbers = Vec::new();
    add_numbers(exec, &value, &mut numbers);
    CaptureFact {
        name: name.to_string(),
        is_new: closure.lambda.captures.iter().any(|(new, _)| *new == name),
        ty: ty.name(),
        numbers,
        closure: fact(exec, &value, depth + 1),
    }
}

/// What a variable holds, through references to others.
fn held(exec: &mut Exec, value: &Val) -> Val {
    let Val::Ref(place) = value else { return value.clone() };
    match &**place {
        Place::Slot { slot, path } => exec.quietly(|exec| exec.read_slot(*slot, path)),
        Place::Value(value) => value.clone(),
        Place::Memory { .. } => value.clone(),
    }
}

fn seen(ty: &Ty) -> bool {
    match ty {
        Ty::Auto | Ty::Unknown(_) | Ty::Void => false,
        Ty::Ptr(of) | Ty::Ref(of) | Ty::Array(of, _) => matches!(**of, Ty::Void) || seen(of),
        Ty::Bool | Ty::Int { .. } | Ty::Float(_) | Ty::Struct(_) => true,
    }
}

/// Of an object's members those before one of which it is not known what is in it.
fn add_numbers(exec: &Exec, value: &Val, out: &mut Vec<Option<f64>>) -> bool {
    if out.len() >= MOST_NUMBERS {
        return false;
    }
    match value {
        Val::Int(..) | Val::Float(..) => {
            out.push(constant(&exec.arena, value));
            true
        }
        Val::Ptr(_) => true,
        Val::Obj(obj) => obj.fields.iter().all(|field| add_numbers(exec, field, out)),
        Val::Array(array) => {
            let len = array.len.and_then(|len| exec.arena.as_const(len)).unwrap_or(0);
            (0..len).all(|at| match array.known.get(&at) {
                Some(element) => add_numbers(exec, element, out),
                None => false,
            })
        }
        Val::Ref(_) | Val::Lambda(_) | Val::Function(_) | Val::Group(_) | Val::Opaque(..) | Val::Void => {
            false
        }
    }
}

/// The names in a lambda's body that it does not declare itself.
fn used(lambda: &Lambda) -> Vec<Name> {
    let mut own: FxHashSet<Name> = lambda.params.iter().map(|param| param.name).collect();
    own.extend(lambda.template.iter().map(|param| param.name));
    declared(lambda, &mut own);
    let mut names = Vec::new();
    walk::expressions(&lambda.body, &mut |expr| {
        if let ExprKind::Name(path) = &expr.kind
            && let Some(name) = path.as_simple()
            && !own.contains(&name)
            && !names.contains(&name)
        {
            names.push(name);
        }
    });
    names
}

fn declared(lambda: &Lambda, own: &mut FxHashSet<Name>) {
    walk::statements(&lambda.body, &mut |stmt| {
        if let StmtKind::Decl(vars) = &stmt.kind {
            own.extend(vars.iter().map(|var| var.name));
        } else if let StmtKind::RangeFor { var, .. } = &stmt.kind {
            own.insert(var.name);
        }
    });
    walk::expressions(&lambda.body, &mut |expr| {
        if let ExprKind::Lambda(inner) = &expr.kind {
            own.extend(inner.params.iter().map(|param| param.name));
            declared(inner, own);
        }
    });
}
