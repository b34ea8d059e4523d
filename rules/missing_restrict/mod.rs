#![doc = include_str!("README.md")]

use std::collections::{BTreeMap, BTreeSet};

use cudalint::ir::facts::{AccessFact, AccessPath, KernelFact, MemorySpace, Operation, ParamFact, TrailStep};
use cudalint::lint::finding::{Applicability, Category, Finding, Fix, Level, Numbers, RuleInfo};
use cudalint::lint::rule::{Context, Rule};
use cudalint::source::{Edit, Span};

pub struct MissingRestrict;

static INFO: RuleInfo = RuleInfo {
    name: "missing-restrict",
    summary: "loads repeated because a store may change what they read",
    category: Category::Alias,
    default_level: Level::Warning,
    since: "0.1.0",
    measured: None,
    doc: include_str!("README.md"),
};

/// Loads repeated once, from which on a kernel without repeats in a loop is reported.
const LEAST_AGAIN: usize = 3;

/// Why loads are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// The sum is kept in memory: every iteration waits for the store of the one before.
    Accumulates,
    /// The address is the same in every iteration of a loop that stores.
    Invariant,
    /// The same address is read again after a store.
    Again,
    /// Only eligible.
    Eligible,
}

/// A load that a store keeps from being read once.
struct Repeat<'a> {
    cause: Cause,
    /// The place of the parameter read, and of the one written.
    input: usize,
    output: usize,
    load: &'a AccessFact,
    store: &'a AccessFact,
    /// How many loads of the source are repeated for this cause.
    loads: usize,
}

/// A kernel with its repeated loads.
struct Evidence<'a> {
    kernel: &'a KernelFact,
    repeats: Vec<Repeat<'a>>,
    /// The smallest set of parameters whose `__restrict__` suffices.
    change: Vec<&'a ParamFact>,
}

impl Rule for MissingRestrict {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn check(&self, cx: &Context, out: &mut Vec<Finding>) {
        let mut definitions: BTreeMap<Span, Vec<&KernelFact>> = BTreeMap::new();
        for kernel in cx.kernels {
            definitions.entry(kernel.span).or_default().push(kernel);
        }
        for launches in definitions.values() {
            if let Some(evidence) = decide(launches, cx.pedantic) {
                out.push(report(cx, &evidence));
            }
        }
    }
}

/// The repeated loads of a kernel, in the launch with most of them; `None` where any launch passes one buffer twice.
fn decide<'a>(launches: &[&'a KernelFact], pedantic: bool) -> Option<Evidence<'a>> {
    let found = launches.iter().map(|kernel| (*kernel, repeats(kernel, launches, pedantic)));
    let (kernel, repeats) = found.rev().max_by_key(|(_, repeats)| repeats.len())?;
    let is_little = repeats.iter().all(|repeat| repeat.cause == Cause::Again)
        && repeats.iter().map(|repeat| repeat.loads).sum::<usize>() < LEAST_AGAIN;
    if repeats.is_empty() || (is_little && !pedantic) {
        return None;
    }
    let inputs: BTreeSet<usize> = repeats.iter().map(|repeat| repeat.input).collect();
    // A load is repeated as long as any store may reach it, so that either all pointers written are restricted or all read.
    let outputs: BTreeSet<usize> = kernel
        .accesses
        .iter()
        .filter(|access| access.space == MemorySpace::Global && access.operation == Operation::Store)
        .filter_map(|access| param_of(kernel, access))
        .filter(|&place| kernel.params.get(place).is_some_and(|param| !param.is_restrict))
        .collect();
    let change = if outputs.len() < inputs.len() { outputs } else { inputs };
    let change = change.into_iter().filter_map(|place| kernel.params.get(place)).collect();
    Some(Evidence { kernel, repeats, change })
}

fn repeats<'a>(kernel: &'a KernelFact, launches: &[&KernelFact], pedantic: bool) -> Vec<Repeat<'a>> {
    let global = |access: &&AccessFact| access.space == MemorySpace::Global;
    let writes = |access: &&AccessFact| global(access) && access.operation != Operation::Load;
    let stores: Vec<&AccessFact> = kernel.accesses.iter().filter(writes).collect();
    // A store through a pointer of unknown origin may be to anything.
    if !kernel.gaps.is_empty() || stores.iter().any(|store| param_of(kernel, store).is_none()) {
        return Vec::new();
    }
    let is_written = |place: usize| stores.iter().any(|store| param_of(kernel, store) == Some(place));
    let mut found = Vec::new();
    for (input, param) in kernel.params.iter().enumerate() {
        let loads = kernel.accesses.iter().enumerate().filter(|(_, access)| {
            global(access) && access.path == AccessPath::Plain && param_of(kernel, access) == Some(input)
        });
        let loads: Vec<(usize, &AccessFact)> = loads.collect();
        if !param.is_pointer
            || param.is_restrict
            || param.is_volatile
            || is_written(input)
            || loads.is_empty()
        {
            continue;
        }
        // What an atomic keeps the compiler from was not measured.
        let plain = stores.iter().copied().filter(|store| store.operation == Operation::Store);
        let others = plain.filter_map(|store| {
            let output = param_of(kernel, store)?;
            let is_restrict = kernel.params.get(output)?.is_restrict;
            let may_alias = !is_restrict && !share_buffer(launches, input, output);
            may_alias.then_some((output, store))
        });
        let others: Vec<(usize, &AccessFact)> = others.collect();
        // Where a launch passes one buffer for both, the promise of `__restrict__` would be false.
        if stores
            .iter()
            .filter_map(|store| param_of(kernel, store))
            .any(|of| share_buffer(launches, input, of))
        {
            continue;
        }
        found.extend(repeat(kernel, input, &loads, &others, pedantic));
    }
    found
}

/// The first reason to read an input more than once.
fn repeat<'a>(
    kernel: &'a KernelFact,
    input: usize,
    loads: &[(usize, &'a AccessFact)],
    stores: &[(usize, &'a AccessFact)],
    pedantic: bool,
) -> Option<Repeat<'a>> {
    let pairs = loads
        .iter()
        .flat_map(|&(at, load)| stores.iter().map(move |&(output, store)| (at, load, output, store)));
    let causes = pairs.filter_map(|(at, load, output, store)| {
        let cause = if shares_loop(load, store, |id| accumulates_in(kernel, store, id)) {
            Cause::Accumulates
        } else if shares_loop(load, store, |id| stays_within(load, id)) {
            Cause::Invariant
        } else if is_read_again(kernel, at, load, store) {
            Cause::Again
        } else if pedantic {
            Cause::Eligible
        } else {
            return None;
        };
        Some(Repeat { cause, input, output, load, store, loads: 1 })
    });
    let causes: Vec<Repeat> = causes.collect();
    let cause = causes.iter().map(|repeat| repeat.cause).min()?;
    let places: BTreeSet<Span> =
        causes.iter().filter(|repeat| repeat.cause == cause).map(|repeat| repeat.load.span).collect();
    let first = causes.into_iter().find(|repeat| repeat.cause == cause)?;
    Some(Repeat { loads: places.len(), ..first })
}

fn param_of(kernel: &KernelFact, access: &AccessFact) -> Option<usize> {
    let base = kernel.bases.get(access.base)?;
    let place = base.param?;
    kernel.params.get(place).filter(|param| param.is_pointer && param.name == base.name).map(|_| place)
}

fn share_buffer(launches: &[&KernelFact], a: usize, b: usize) -> bool {
    launches.iter().any(|kernel| {
        let buffer = |place: usize| kernel.params.get(place).and_then(|param| param.buffer);
        buffer(a).is_some() && buffer(a) == buffer(b)
    })
}

/// Whether a loop around both accesses has a property.
fn shares_loop(load: &AccessFact, store: &AccessFact, has: impl Fn(u32) -> bool) -> bool {
    load.flow.loops.iter().any(|&id| store.flow.loops.contains(&id) && has(id))
}

/// Whether the address stays the same throughout a loop, the loops inside it included.
fn stays_within(access: &AccessFact, id: u32) -> bool {
    let mut inner = access.flow.loops.iter().skip_while(|&&around| around != id);
    inner.all(|around| access.flow.invariant_in.contains(around))
}

/// Whether a store updates one element in every iteration of a loop: `out[t] += …`.
fn accumulates_in(kernel: &KernelFact, store: &AccessFact, id: u32) -> bool {
    store.operation == Operation::Store
        && stays_within(store, id)
        && kernel.accesses.iter().any(|other| {
            other.operation == Operation::Load
                && other.base == store.base
                && other.flow.address == store.flow.address
                && other.flow.guard == store.flow.guard
                && other.flow.loops.contains(&id)
        })
}

/// Whether the load at `at` is made again, under the same conditions, after the store.
fn is_read_again(kernel: &KernelFact, at: usize, load: &AccessFact, store: &AccessFact) -> bool {
    let same = |other: &AccessFact| {
        other.base == load.base
            && other.operation == Operation::Load
            && other.flow.address == load.flow.address
            && other.flow.guard == load.flow.guard
            && other.flow.loops == load.flow.loops
    };
    let mut later = kernel.accesses.iter().skip(at + 1);
    let is_between = |other: &AccessFact| {
        std::ptr::eq(other, store)
            && store.flow.guard == load.flow.guard
            && store.flow.loops == load.flow.loops
    };
    later.any(is_between) && later.any(same)
}

fn report(cx: &Context, evidence: &Evidence) -> Finding {
    let Evidence { kernel, repeats, change } = evidence;
    let name = |place: usize| kernel.params.get(place).map_or("?", |param| param.name.as_str());
    let cause = repeats.iter().map(|repeat| repeat.cause).min().unwrap_or(Cause::Eligible);
    let first = repeats.iter().find(|repeat| repeat.cause == cause).or(repeats.first());
    let mut inputs: Vec<String> = repeats.iter().map(|repeat| format!("`{}`", name(repeat.input))).collect();
    inputs.dedup();
    let count: usize = repeats.iter().filter(|repeat| repeat.cause == cause).map(|repeat| repeat.loads).sum();
    let list = inputs.join(", ");
    let output = first.map_or("?", |repeat| name(repeat.output));
    let are = if inputs.len() == 1 { "is" } else { "are" };
    let message = match cause {
        Cause::Accumulates => {
            format!(
                "{list} {are} loaded one iteration at a time: {count} {} behind each store to `{output}`",
                loads(count)
            )
        }
        Cause::Invariant => {
            format!(
                "{list} {are} loaded again in every iteration: {count} {} after each store to `{output}`",
                loads(count)
            )
        }
        Cause::Again => {
            format!(
                "{list} {are} loaded again: {count} {} repeated after a store to `{output}`",
                loads(count)
            )
        }
        Cause::Eligible => format!("{list} {are} only read: {count} {} without `__restrict__`", loads(count)),
    };
    let span = change.first().map_or(kernel.name_span, |param| param.span);
    let mut trail: Vec<TrailStep> = Vec::new();
    for repeat in repeats {
        trail.push(TrailStep { span: repeat.load.span, text: "loaded again".to_owned() });
        trail.push(TrailStep {
            span: repeat.store.span,
            text: format!("may change `{}`", name(repeat.input)),
        });
    }
    trail.sort_by(|a, b| (a.span, &a.text).cmp(&(b.span, &b.text)));
    trail.dedup_by_key(|step| step.span);
    Finding {
        rule: &INFO,
        level: if cause == Cause::Eligible { Level::Note } else { INFO.default_level },
        span,
        message,
        label: "may alias".to_owned(),
        notes: notes(cause),
        help: Some(help(kernel, repeats, change)),
        trail,
        kernel: kernel.name.clone(),
        access_text: cx.sources.text(span).split_whitespace().collect::<Vec<_>>().join(" "),
        numbers: Numbers { space: Some(MemorySpace::Global), ..Numbers::default() },
        fix: fix(cx, kernel, change),
    }
}

fn loads(count: usize) -> &'static str {
    if count == 1 { "load" } else { "loads" }
}

fn notes(cause: Cause) -> Vec<String> {
    let why = "without `__restrict__` the compiler has to expect that a store changes what other pointers read; it \
               takes no account of their types";
    let cost = match cause {
        Cause::Accumulates => "a sum kept in memory this way took 1.89 times as long (measured on an H200)",
        Cause::Invariant | Cause::Again => {
            "four coefficients loaded again after each store took 1.25 times as long (measured on an H200)"
        }
        Cause::Eligible => "a load that is not repeated gains nothing measurable",
    };
    vec![why.to_owned(), cost.to_owned()]
}

fn help(kernel: &KernelFact, repeats: &[Repeat], change: &[&ParamFact]) -> String {
    let names: Vec<String> = change.iter().map(|param| format!("`{}`", param.name)).collect();
    let is_output = change.iter().any(|param| {
        repeats.iter().any(|repeat| kernel.params.get(repeat.output).is_some_and(|of| of.name == param.name))
    });
    let (qualifier, and) = if is_output {
        ("__restrict__", "no other pointer may reach what it writes")
    } else {
        ("const … __restrict__", "nothing may write what it reads while the kernel runs")
    };
    format!("`{qualifier}` on {} suffices, if that is true: {and}", names.join(", "))
}

/// `float *in` becomes `float *__restrict__ in`, in the definition and in every declaration of the kernel that the project
/// shows; `None` where the definition spells a parameter in another way. Unsafe, for it is a promise of the author.
fn fix(cx: &Context, kernel: &KernelFact, change: &[&ParamFact]) -> Option<Fix> {
    let own = |param: &&ParamFact| restricted(cx, param.span, param.name_span, &param.name);
    let mut edits: Vec<Edit> = change.iter().map(own).collect::<Option<_>>()?;
    for declaration in cx.project.declarations(kernel.name_span) {
        let params = kernel.params.iter().zip(&declaration.item.params);
        for (_, param) in params.filter(|(own, _)| change.iter().any(|changed| changed.span == own.span)) {
            if !param.storage.restrict {
                edits.extend(restricted(cx, param.span, param.name_span, param.name.as_str()));
            }
        }
    }
    Some(Fix { title: "add `__restrict__`".to_owned(), applicability: Applicability::Unsafe, edits })
}

/// The edit of one parameter that is spelt `T *name` or `T *`.
fn restricted(cx: &Context, span: Span, name_span: Span, name: &str) -> Option<Edit> {
    let source = cx.sources.get(span.file);
    let lead = if name.is_empty() { span } else { Span { end: name_span.start, ..span } };
    let named = name.is_empty() || (span.contains(name_span) && cx.sources.text(name_span) == name);
    let is_plain = named && !source.lossy && cx.sources.text(lead).trim_end().ends_with('*');
    let replacement = if name.is_empty() { "__restrict__" } else { "__restrict__ " };
    let at = lead.end as usize;
    is_plain.then(|| Edit { span: Span::new(span.file, at, at), replacement: replacement.to_owned() })
}
