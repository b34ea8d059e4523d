#![doc = include_str!("README.md")]

mod remedy;
mod words;

use std::collections::BTreeMap;

use cudalint::ir::facts::{AccessFact, BaseFact, KernelFact, MemorySpace, Operation, RequestFact};
use cudalint::lint::finding::{Category, Finding, Level, RuleInfo};
use cudalint::lint::rule::{Context, Rule};
use cudalint::memory::SharedOp;
use cudalint::memory::shared::{self, Witness};
use cudalint::source::Span;

use remedy::Remedy;

pub struct BankConflict;

static INFO: RuleInfo = RuleInfo {
    name: "bank-conflict",
    summary: "shared accesses whose lanes meet in a bank and take turns",
    category: Category::Bank,
    default_level: Level::Warning,
    since: "0.1.0",
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
    remedy: Remedy,
}

impl Rule for BankConflict {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn check(&self, cx: &Context, out: &mut Vec<Finding>) {
        for evidence in decide(cx) {
            out.push(words::report(&INFO, cx, &evidence));
        }
    }
}

/// Every shared access that conflicts, once for each place and operation, in the launch where it is worst.
fn decide<'a>(cx: &Context<'a>) -> Vec<Evidence<'a>> {
    let mut places: BTreeMap<(Span, Operation), Vec<(&'a KernelFact, &'a AccessFact)>> = BTreeMap::new();
    for kernel in cx.kernels {
        for access in kernel.accesses.iter().filter(|access| access.space == MemorySpace::Shared) {
            places.entry((access.span, access.operation)).or_default().push((kernel, access));
        }
    }
    places.values().filter_map(|uses| worst(cx, uses)).collect()
}

fn worst<'a>(cx: &Context<'a>, uses: &[(&'a KernelFact, &'a AccessFact)]) -> Option<Evidence<'a>> {
    let measured = uses.iter().filter_map(|&(kernel, access)| {
        let request = access.request.as_ref().filter(|_| !access.irregular)?;
        Some((kernel, access, request))
    });
    let conflicting: Vec<_> = measured.clone().filter(|(.., request)| conflicts(request)).collect();
    // The first of equals, so that launches are reported in the order of the source.
    let &(kernel, access, request) =
        conflicting.iter().rev().max_by(|a, b| excess(a.2).total_cmp(&excess(b.2)))?;
    let base = kernel.bases.get(access.base)?;
    Some(Evidence {
        kernel,
        access,
        base,
        request,
        witness: shared::witness(&request.worst_lanes, width(access), operation(access)),
        measured: measured.count(),
        conflicting: conflicting.len(),
        remedy: remedy::find(cx, kernel, access, base),
    })
}

fn excess(request: &RequestFact) -> f64 {
    request.units - request.ideal
}

fn conflicts(request: &RequestFact) -> bool {
    excess(request) >= LEAST_EXCESS && excess(request) >= LEAST_SHARE * request.units
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
