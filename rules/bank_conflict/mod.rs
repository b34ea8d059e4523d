#![doc = include_str!("README.md")]

mod fix;
mod remedy;
mod words;

use std::collections::BTreeMap;

use cudalint::ir::facts::{
    AccessFact, AccessPath, BaseFact, KernelFact, MemorySpace, Operation, RequestFact,
};
use cudalint::lint::finding::{Category, Finding, Level, Measured, RuleInfo};
use cudalint::lint::rule::{Context, Rule};
use cudalint::memory::SharedOp;
use cudalint::memory::shared::{self, Witness};
use cudalint::source::Span;

use remedy::{Remedies, Remedy};

pub struct BankConflict;

static INFO: RuleInfo = RuleInfo {
    name: "bank-conflict",
    summary: "shared accesses whose lanes meet in a bank and take turns",
    category: Category::Bank,
    default_level: Level::Warning,
    since: "0.1.0",
    // By lines of 466 public programs measured on an H200 (2026-11-30), 211 of them not looked at before.
    measured: Some(Measured { right: 287, found: 300 }),
    doc: include_str!("README.md"),
};

/// The share of an access's wavefronts that conflicts add, from which on it is reported.
const LEAST_SHARE: f64 = 0.3;

/// Wavefronts that conflicts add to a request on average, from which on it is reported.
const LEAST_EXCESS: f64 = 0.5;

/// One access in the launch where it is worst.
struct Evidence<'a> {
    kernel: &'a KernelFact,
    access: &'a AccessFact,
    base: &'a BaseFact,
    request: &'a RequestFact,
    witness: Option<Witness>,
    /// Launches and calls in which the access was measured, and in how many of them it conflicts.
    measured: usize,
    conflicting: usize,
    /// It takes more wavefronts than its bytes fill, but no bank is to blame.
    is_spread: bool,
    remedy: Remedy,
}

impl Rule for BankConflict {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn check(&self, cx: &Context, out: &mut Vec<Finding>) {
        let mut remedies = Remedies::new(cx);
        for uses in places(cx).values() {
            if let Some(evidence) = worst(&mut remedies, uses) {
                let fix = if evidence.is_spread { None } else { fix::fix(cx, &remedies, &evidence) };
                out.push(Finding { fix, ..words::report(&INFO, cx, &evidence) });
            }
        }
    }
}

/// A load, store or atomic of the source in every launch and call.
type Places<'a> = BTreeMap<(Span, Operation), Vec<(&'a KernelFact, usize)>>;

fn places<'a>(cx: &Context<'a>) -> Places<'a> {
    let mut places = Places::new();
    for kernel in cx.kernels {
        for (at, access) in kernel.accesses.iter().enumerate() {
            // Banks tell 2-byte elements from 8-byte ones: without the width there is no conflict to speak of.
            if access.space == MemorySpace::Shared && !access.is_repeated && access.is_width_seen {
                places.entry((access.span, access.operation)).or_default().push((kernel, at));
            }
        }
    }
    places
}

/// The launch and call in which an access conflicts most.
fn worst<'a>(remedies: &mut Remedies<'a>, uses: &[(&'a KernelFact, usize)]) -> Option<Evidence<'a>> {
    let measured = uses.iter().filter_map(|&(kernel, at)| {
        let access = kernel.accesses.get(at).filter(|access| !access.irregular)?;
        Some((kernel, access, access.request.as_ref()?))
    });
    let conflicting: Vec<_> = measured
        .clone()
        .filter(|&(_, access, request)| {
            // One access in place of several is a gain.
            let is_gain = is_merged(access) && is_spread(access, request);
            conflicts(request) && !is_broadcast(request) && !is_contention(access, request) && !is_gain
        })
        .collect();
    let severity = |&(_, access, request): &(_, &AccessFact, &RequestFact)| {
        (!is_spread(access, request), excess(request))
    };
    // The first of equals, so that launches are reported in the order of the source.
    let &(kernel, access, request) = conflicting.iter().rev().max_by(|a, b| {
        let (a, b) = (severity(a), severity(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })?;
    let base = kernel.bases.get(access.base)?;
    Some(Evidence {
        kernel,
        access,
        base,
        request,
        witness: shared::witness(&request.worst_lanes, width(access), operation(access)),
        measured: measured.count(),
        conflicting: conflicting.len(),
        is_spread: is_spread(access, request),
        remedy: remedies.of(kernel, base).for_access(access, request),
    })
}

/// All lanes want the same bytes. Two wavefronts are the least that a load of 16 bytes takes, however few lanes are active.
fn is_broadcast(request: &RequestFact) -> bool {
    request.samples.iter().all(|lanes| {
        let mut addresses = lanes.iter().map(|(_, address)| address);
        let first = addresses.next();
        addresses.all(|address| Some(address) == first)
    })
}

/// Does the compiler make one access of this and its neighbours?
fn is_merged(access: &AccessFact) -> bool {
    access.width > access.bytes && access.path == AccessPath::Plain
}

/// No bank is wanted for two words at once. Wide accesses are served a half or a quarter of the warp at a time, so that a
/// request of few lanes can take more wavefronts than its bytes fill, whatever the layout.
fn is_spread(access: &AccessFact, request: &RequestFact) -> bool {
    request.samples.iter().all(|lanes| shared::witness(lanes, width(access), operation(access)).is_none())
}

fn excess(request: &RequestFact) -> f64 {
    request.units - request.ideal
}

fn conflicts(request: &RequestFact) -> bool {
    is_conflict(request.units, request.ideal)
}

/// Whether wavefronts per request are so many above the ideal that they are reported.
fn is_conflict(units: f64, ideal: f64) -> bool {
    let excess = units - ideal;
    excess >= LEAST_EXCESS && excess >= LEAST_SHARE * units
}

/// Whether lanes only meet at one address. A compare-and-swap loop serves them in turns, each free of conflicts; and
/// where data decide which lanes there are, it is as good as one.
fn is_contention(access: &AccessFact, request: &RequestFact) -> bool {
    let in_doubt = match operation(access) {
        SharedOp::AtomicLoop => true,
        SharedOp::Atomic | SharedOp::AtomicCas => access.flow.guarded_by_data,
        SharedOp::Load | SharedOp::Store | SharedOp::AtomicIncrement | SharedOp::Matrix(_) => false,
    };
    in_doubt
        && request.samples.iter().all(|lanes| {
            let words = shared::wavefronts(lanes, width(access), SharedOp::AtomicIncrement);
            !is_conflict(f64::from(words.units), f64::from(words.ideal))
        })
}

fn width(access: &AccessFact) -> u32 {
    u32::try_from(access.width.0).unwrap_or(16).max(1)
}

fn operation(access: &AccessFact) -> SharedOp {
    access.shared_op.unwrap_or(match access.operation {
        Operation::Load => SharedOp::Load,
        Operation::Store => SharedOp::Store,
        Operation::Atomic => SharedOp::Atomic,
    })
}
