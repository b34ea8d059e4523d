//! Which host functions to execute, and the facts of a whole project.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::kernel::{Runner, spread, standalone};
use super::shape::Declared;
use crate::index::limits;
use crate::ir::ast::{
    ClassInstantiation, ExprKind, FunctionDef, Instantiation, Name, Path, StmtKind, TemplateParam,
};
use crate::ir::facts::KernelFact;
use crate::ir::walk;
use crate::lower::exec::{Exec, Launch, Mode};
use crate::lower::project::{Entry, Project};
use crate::lower::types::TemplateEnv;
use crate::source::{FileId, Sources, Span};

/// What a host function does that matters here.
struct HostFunction {
    entry: Entry<Arc<FunctionDef>>,
    calls: FxHashSet<Name>,
    launches: Vec<Span>,
}

/// All kernels of the project in all their launches, by file and position.
pub fn analyze(project: &Project, sources: &Sources, declared: &Declared) -> Vec<KernelFact> {
    let hosts = host_functions(project);
    let graph = call_graph(project, &hosts);
    let launching = Arc::new(launching(&hosts, &graph));
    let called: FxHashSet<Span> = graph.iter().map(|(_, callee)| *callee).collect();
    let (first, rest): (Vec<&HostFunction>, Vec<&HostFunction>) =
        hosts.iter().filter(|host| launching.contains(&host.entry.item.name_span)).partition(|host| {
            host.entry.item.name.as_str() == "main" || !called.contains(&host.entry.item.name_span)
        });
    let run = |roots: &[&HostFunction]| -> Vec<RootFacts> {
        let instances: Vec<(&HostFunction, Instance)> =
            roots.iter().flat_map(|host| instances(project, host)).collect();
        let run = |(host, instance): &(&HostFunction, Instance)| {
            run_root(project, sources, declared, &host.entry, *instance, &launching)
        };
        instances.par_iter().map(run).collect()
    };
    let mut results = run(&first);
    // What the roots did not come to, for a budget or a call that is not understood, begins with the functions that only
    // executed ones call.
    for _ in 0..WAVES {
        let entered: FxHashSet<Span> =
            results.iter().flat_map(|facts| facts.entered.iter().copied()).collect();
        let open: FxHashSet<Span> =
            graph.iter().filter(|(caller, _)| !entered.contains(caller)).map(|(_, callee)| *callee).collect();
        let topmost: Vec<&HostFunction> = rest
            .iter()
            .copied()
            .filter(|host| {
                let function = host.entry.item.name_span;
                !entered.contains(&function) && !open.contains(&function)
            })
            .collect();
        if topmost.is_empty() {
            break;
        }
        results.extend(run(&topmost));
    }
    // Launches that are still not reached: their own functions become roots.
    let seen: FxHashSet<Span> = results.iter().flat_map(|facts| facts.launches.iter().copied()).collect();
    // A launch within the argument of a macro is known by the macro's place.
    let is_seen = |span: &Span| seen.contains(span) || seen.iter().any(|other| other.contains(*span));
    let rest: Vec<&HostFunction> =
        rest.into_iter().filter(|host| host.launches.iter().any(|span| !is_seen(span))).collect();
    results.extend(run(&rest));
    let launched: FxHashSet<Span> =
        results.iter().flat_map(|facts| facts.kernels.iter().map(|kernel| kernel.name_span)).collect();
    let mut kernels: Vec<KernelFact> = results.into_iter().flat_map(|facts| facts.kernels).collect();
    kernels.extend(alone(project, sources, declared, &launched));
    limit(kernels)
}

/// How often execution begins anew where it stopped.
const WAVES: usize = 3;

struct RootFacts {
    launches: Vec<Span>,
    /// The functions that were executed.
    entered: FxHashSet<Span>,
    kernels: Vec<KernelFact>,
}

fn host_functions(project: &Project) -> Vec<HostFunction> {
    let all: Vec<Entry<Arc<FunctionDef>>> = project
        .files
        .iter()
        .enumerate()
        .flat_map(|(id, file)| {
            let id = FileId(id as u32);
            file.unit.functions.iter().map(move |function| Entry { file: id, item: function.clone() })
        })
        .filter(|entry| !entry.item.qualifiers.kernel && entry.item.body.is_some())
        .filter(|entry| entry.item.qualifiers.host || !entry.item.qualifiers.device)
        .collect();
    let macros = project.launching_macros();
    all.into_par_iter()
        .map(|entry| {
            let mut calls = FxHashSet::default();
            let mut launches = Vec::new();
            walk::expressions(entry.item.body.as_deref().unwrap_or(&[]), &mut |expr| match &expr.kind {
                ExprKind::Launch { .. } => launches.push(expr.span),
                ExprKind::Call { callee, .. } => match &callee.kind {
                    ExprKind::Name(path) => {
                        if path.name.as_str().starts_with("cudaLaunch") || macros.contains(&path.name) {
                            launches.push(expr.span);
                        }
                        calls.insert(path.name);
                    }
                    ExprKind::Field { member, .. } => {
                        calls.insert(member.name);
                    }
                    _ => {}
                },
                ExprKind::Name(path) => {
                    calls.insert(path.name);
                }
                _ => {}
            });
            walk::statements(entry.item.body.as_deref().unwrap_or(&[]), &mut |stmt| {
                if let StmtKind::Macro { name, .. } = &stmt.kind {
                    launches.extend(macros.contains(name).then_some(stmt.span));
                    calls.insert(*name);
                }
            });
            // A macro calls what its text names.
            let named: Vec<Name> = calls.iter().flat_map(|call| project.words_of_macro(*call)).collect();
            calls.extend(named);
            calls.remove(&entry.item.name);
            HostFunction { entry, calls, launches }
        })
        .collect()
}

/// (caller, callee) pairs among host functions, as names resolve in the caller's translation unit.
fn call_graph(project: &Project, hosts: &[HostFunction]) -> Vec<(Span, Span)> {
    let names = launching_names(hosts);
    hosts
        .par_iter()
        .filter(|host| host.calls.iter().any(|call| names.contains(call)))
        .flat_map_iter(|host| {
            let tu = project.unit_of(host.entry.file, false);
            let caller = host.entry.item.name_span;
            let calls: Vec<Name> = host.calls.iter().copied().filter(|call| names.contains(call)).collect();
            calls.into_iter().flat_map(move |call| {
                let found: Vec<Span> =
                    project.functions(&tu, call).iter().map(|entry| entry.item.name_span).collect();
                found.into_iter().map(move |callee| (caller, callee))
            })
        })
        .filter(|(caller, callee)| caller != callee)
        .collect()
}

/// The same by name alone: a cheap upper bound.
fn launching_names(hosts: &[HostFunction]) -> FxHashSet<Name> {
    let mut callers: FxHashMap<Name, Vec<Name>> = FxHashMap::default();
    for host in hosts {
        for call in &host.calls {
            callers.entry(*call).or_default().push(host.entry.item.name);
        }
    }
    let mut found: FxHashSet<Name> =
        hosts.iter().filter(|host| !host.launches.is_empty()).map(|host| host.entry.item.name).collect();
    let mut queue: Vec<Name> = found.iter().copied().collect();
    while let Some(name) = queue.pop() {
        for caller in callers.get(&name).into_iter().flatten() {
            if found.insert(*caller) {
                queue.push(*caller);
            }
        }
    }
    found
}

/// Functions that launch, or call one that does.
fn launching(hosts: &[HostFunction], graph: &[(Span, Span)]) -> FxHashSet<Span> {
    let mut callers: FxHashMap<Span, Vec<Span>> = FxHashMap::default();
    for (caller, callee) in graph {
        callers.entry(*callee).or_default().push(*caller);
    }
    let mut found: FxHashSet<Span> =
        hosts.iter().filter(|host| !host.launches.is_empty()).map(|host| host.entry.item.name_span).collect();
    let mut queue: Vec<Span> = found.iter().copied().collect();
    while let Some(function) = queue.pop() {
        for caller in callers.get(&function).into_iter().flatten() {
            if found.insert(*caller) {
                queue.push(*caller);
            }
        }
    }
    found
}

/// What a host function is executed as.
#[derive(Clone, Copy)]
enum Instance<'p> {
    /// As it is written; template parameters are not known.
    Written,
    Function(&'p Entry<Instantiation>),
    /// A method of a class template.
    Class(&'p Entry<ClassInstantiation>),
}

/// A host function as it is executed: once, or once for each explicit instantiation of it or of its class.
fn instances<'p>(project: &'p Project, host: &'p HostFunction) -> Vec<(&'p HostFunction, Instance<'p>)> {
    let functions = project.instantiations(&host.entry).into_iter().map(Instance::Function);
    let classes = project.class_instantiations(&host.entry).into_iter().map(Instance::Class);
    let found: Vec<Instance> = functions.chain(classes).collect();
    if found.is_empty() {
        return vec![(host, Instance::Written)];
    }
    spread(found, limits::LAUNCHES_PER_KERNEL).map(|instance| (host, instance)).collect()
}

fn run_root(
    project: &Project,
    sources: &Sources,
    declared: &Declared,
    root: &Entry<Arc<FunctionDef>>,
    instance: Instance<'_>,
    launching: &Arc<FxHashSet<Span>>,
) -> RootFacts {
    let file = match instance {
        Instance::Written => root.file,
        Instance::Function(entry) => entry.file,
        Instance::Class(entry) => entry.file,
    };
    let tu = project.unit_of(file, false);
    let mut exec = Exec::new(project, sources, tu, Mode::Host);
    exec.launching = launching.clone();
    exec.push_frame(root.item.name, root.file, Rc::default(), None);
    let template = match instance {
        Instance::Written => Vec::new(),
        Instance::Function(entry) => exec.instantiated(&root.item, &entry.item),
        // Outside its class a method repeats the parameters of the class, by names of its own.
        Instance::Class(entry) => entry
            .item
            .class
            .args
            .as_ref()
            .map_or_else(Vec::new, |args| exec.template_values(&root.item.template, args)),
    };
    let mut env = exec.bind_template_args(&root.item.template, &root.item.params, &template, &[]);
    let this = root.item.class.and_then(|class| match instance {
        Instance::Class(entry) => exec.some_object(&entry.item.class),
        Instance::Written | Instance::Function(_) => exec.some_object(&Path::simple(class)),
    });
    if let Some((_, class)) = &this {
        // The parameters of a class template that no instantiation gives are as open as those of a function.
        let params = class.def.as_ref().map_or(&[][..], |def| &def.template);
        let open: Vec<TemplateParam> =
            params.iter().filter(|param| class.env.get(param.name).is_none()).cloned().collect();
        let own = exec.bind_template_args(&open, &[], &[], &[]);
        let own = Rc::new(TemplateEnv { outer: Some(class.env.clone()), ..(*own).clone() });
        env = Rc::new(TemplateEnv { outer: Some(own), ..(*env).clone() });
    }
    if let Some(frame) = exec.frames.last_mut() {
        frame.env = env;
        frame.this = this.map(|(place, _)| place);
    }
    let is_main = root.item.name.as_str() == "main";
    for (place, param) in root.item.params.iter().enumerate() {
        let ty = exec.ty(&param.ty);
        let value = if is_main && place == 0 {
            let count = exec.named_preferred("argc", 1);
            crate::lower::value::Val::Int(count, ty.clone())
        } else {
            exec.symbolic(&ty, param.name.as_str(), None)
        };
        let is_reference = matches!(value, crate::lower::value::Val::Ref(_));
        exec.declare(param.name, ty, value, is_reference);
    }
    exec.statements(root.item.body.as_deref().unwrap_or(&[]));
    exec.frames.clear();
    let launches = std::mem::take(&mut exec.launches);
    let mut entered = std::mem::take(&mut exec.entered);
    entered.insert(root.item.name_span);
    let spans = launches.iter().map(|launch| launch.span).collect();
    let mut runner = Runner::new(exec, declared);
    let mut of_kernel: BTreeMap<Span, Vec<&Launch>> = BTreeMap::new();
    for launch in &launches {
        of_kernel.entry(launch.kernel.item.name_span).or_default().push(launch);
    }
    for launches in of_kernel.into_values() {
        picked(launches).into_iter().for_each(|launch| runner.launch(launch));
    }
    RootFacts { launches: spans, entered, kernels: runner.finish() }
}

/// The few launches of one kernel that are analysed: one of each place in the source before a second one of any.
fn picked(launches: Vec<&Launch>) -> Vec<&Launch> {
    let most = limits::LAUNCHES_PER_KERNEL;
    let mut seen = FxHashSet::default();
    let (first, again): (Vec<&Launch>, Vec<&Launch>) =
        launches.into_iter().partition(|launch| seen.insert(launch.span));
    let left = most.saturating_sub(first.len());
    spread(first, most).chain(spread(again, left)).collect()
}

/// Kernels that nothing launches.
fn alone(
    project: &Project,
    sources: &Sources,
    declared: &Declared,
    launched: &FxHashSet<Span>,
) -> Vec<KernelFact> {
    let kernels: Vec<Entry<Arc<FunctionDef>>> = project
        .files
        .iter()
        .enumerate()
        .flat_map(|(id, file)| {
            let id = FileId(id as u32);
            file.unit.functions.iter().map(move |function| Entry { file: id, item: function.clone() })
        })
        .filter(|entry| entry.item.qualifiers.kernel && entry.item.body.is_some())
        .filter(|entry| !launched.contains(&entry.item.name_span))
        .collect();
    kernels.par_iter().flat_map_iter(|entry| standalone(project, sources, declared, entry)).collect()
}

/// Source order; at most so many launches of one kernel.
fn limit(mut kernels: Vec<KernelFact>) -> Vec<KernelFact> {
    kernels.sort_by(|a, b| {
        (a.name_span, &a.name, a.shape.span, &a.shape).cmp(&(b.name_span, &b.name, b.shape.span, &b.shape))
    });
    let mut counts: FxHashMap<Span, usize> = FxHashMap::default();
    kernels.retain(|kernel| {
        let count = counts.entry(kernel.name_span).or_default();
        *count += 1;
        *count <= 2 * limits::LAUNCHES_PER_KERNEL
    });
    kernels
}
