#![doc = include_str!("README.md")]

mod cause;

use cudalint::ir::facts::{AccessFact, AccessPath, MemorySpace, Operation, RequestFact};
use cudalint::lint::finding::{Category, Finding, Level, Measured, RuleInfo};
use cudalint::lint::place::{self, Place, Seen};
use cudalint::lint::rule::{Context, Rule};

use cause::Cause;

pub struct UncoalescedAccess;

static INFO: RuleInfo = RuleInfo {
    name: "uncoalesced-access",
    summary: "global accesses whose warps touch at least twice the sectors that their bytes would fill",
    category: Category::Coalescing,
    default_level: Level::Warning,
    since: "0.1.0",
    // By lines of 466 public programs measured on an H200 (2026-11-30), 211 of them not looked at before.
    measured: Some(Measured { right: 365, found: 394 }),
    doc: include_str!("README.md"),
};

/// Sectors over the ideal from which an access is reported: a stride of two elements, half of the traffic wasted.
const RATIO: f64 = 2.0;

/// The share of the bytes of its sectors from which on an access and its neighbours are taken to use them: what is left lies
/// at the ends of runs and between them.
const NEARLY_ALL: f64 = 0.66;

/// What is wrong with a place, in the worst of the launches where it is wrong.
struct Evidence<'a> {
    worst: Seen<'a>,
    request: &'a RequestFact,
    /// Every launch and call chain where the place is in excess.
    bad: Vec<Seen<'a>>,
    cause: Cause,
    used_share: f64,
}

impl Rule for UncoalescedAccess {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn check(&self, cx: &Context, out: &mut Vec<Finding>) {
        for place in place::places(cx, MemorySpace::Global) {
            if let Some(evidence) = check(&place) {
                out.push(report(cx, &place, &evidence));
            }
        }
    }
}

fn check<'a>(place: &Place<'a>) -> Option<Evidence<'a>> {
    let bad: Vec<Seen<'a>> = place.seen.iter().copied().filter(|seen| is_uncoalesced(seen)).collect();
    let excess =
        |seen: &Seen| seen.access.request.as_ref().map_or(0.0, |request| request.units - request.ideal);
    let worst = bad.iter().copied().reduce(|a, b| if excess(&b) > excess(&a) { b } else { a })?;
    let request = worst.access.request.as_ref()?;
    let used_share = place::used_share(worst.access, request);
    Some(Evidence { worst, request, cause: Cause::of(worst), bad, used_share })
}

fn is_uncoalesced(seen: &Seen<'_>) -> bool {
    let access = seen.access;
    let Some(request) = access.request.as_ref().filter(|_| !access.irregular) else { return false };
    let excess = request.units - request.ideal;
    request.units >= RATIO * request.ideal - 1e-6
        && excess >= 1.0 - 1e-6
        && !matches!(access.path, AccessPath::Matrix(_))
        && !is_contiguous(access, request)
        && !place::is_once_a_block(seen)
        // Coalesced if it used its structs whole: the layout is the cause (`array-of-structures`).
        && place::whole_struct_ratio(access).is_none_or(|ratio| ratio >= RATIO)
}

/// Neighbouring lanes on neighbouring elements: the excess is that of an offset (`misaligned-access`).
fn is_contiguous(access: &AccessFact, request: &RequestFact) -> bool {
    access.lane_stride.is_some_and(|stride| stride.0.abs() == access.width.0)
        && request.units <= request.ideal + 1.0 + 1e-6
}

fn report(cx: &Context, place: &Place<'_>, evidence: &Evidence<'_>) -> Finding {
    let Evidence { worst, request, cause, used_share, .. } = evidence;
    let text = place::access_text(cx.sources, place.span);
    let (units, ideal) = (place::units(request), place::mean(place::ideal_sectors(worst.access, request)));
    let of_all = if cause.uses_all() { 1.0 } else { cause::share_of_all(*worst) };
    let is_rest_used = of_all >= NEARLY_ALL;
    let is_free = is_rest_used && cause.is_free(place.operation, worst.access);
    let (verb, touched) = match place.operation {
        Operation::Load => ("uses", "fetches"),
        Operation::Store => ("writes", "touches"),
        Operation::Atomic => ("updates", "touches"),
    };
    let percent = |share: f64| place::mean((share * 1000.0).round() / 10.0);
    let wasted = match (of_all < 1.0, cause.is_chunk()) {
        (false, true) => "the next rounds of the loop use the rest".to_owned(),
        (false, false) => "the kernel uses the rest by other accesses".to_owned(),
        (true, _) if is_rest_used => {
            format!(
                "with all accesses of its threads a warp {verb} {} % of what it {touched}",
                percent(of_all)
            )
        }
        _ => format!("a request {verb} {} % of what it {touched}", percent(*used_share)),
    };
    let message = format!(
        "{} `{text}` touches {units} sectors per request where {ideal} would do ({wasted})",
        place::verb(place.operation)
    );
    let cost = cause.cost(place.operation, request.units / request.ideal.max(1e-9));
    // What L1 keeps of a long chunk is another matter.
    let is_short = is_free || cause.is_measured();
    let width = worst.access.width.0;
    let parts = cause.parts(worst.access).filter(|_| is_rest_used && is_short);
    let mut notes = vec![parts.map_or(cost, |parts| cause::used_by_others(place.operation, parts, width))];
    notes.extend(request.range_note().map(str::to_owned));
    notes.extend(place::reach_note(&place.seen, &evidence.bad));
    notes.extend(place::view_note(cx.sources, &place.seen));
    Finding {
        rule: &INFO,
        level: if is_free { Level::Note } else { INFO.default_level },
        span: place.span,
        message,
        label: cause.label(width),
        notes,
        help: Some(cause.remedy(*worst, is_rest_used)),
        trail: place::trail(*worst),
        kernel: worst.kernel.name.clone(),
        access_text: text,
        numbers: place::sector_numbers(*worst),
        fix: None,
    }
}
