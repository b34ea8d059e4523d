#![doc = include_str!("README.md")]

use cudalint::ir::facts::{AccessFact, Bound, Bytes, FieldFact, MemorySpace, Operation, RequestFact};
use cudalint::lint::finding::{Applicability, Category, Finding, Fix, Level, Measured, RuleInfo};
use cudalint::lint::place::{self, Place, Seen};
use cudalint::lint::rule::{Context, Rule};
use cudalint::memory::{Lanes, global};

pub struct ArrayOfStructures;

static INFO: RuleInfo = RuleInfo {
    name: "array-of-structures",
    summary: "fields read or written at the stride of their struct while the rest of each sector goes unused",
    category: Category::Layout,
    default_level: Level::Warning,
    since: "0.1.0",
    // By lines of 466 public programs measured on an H200 (2026-11-30), 211 of them not looked at before.
    measured: Some(Measured { right: 88, found: 89 }),
    doc: include_str!("README.md"),
};

/// The share of the touched bytes from which the layout is called used: 3 of 4 fields cost little.
const USED_ENOUGH: f64 = 2.0 / 3.0;

/// Sectors over the ideal from which one access of a group makes the group worth a finding.
const RATIO: f64 = 2.0;

/// Bytes of a struct from which loads lose time although they use it whole: a warp's elements then outgrow what L1 keeps
/// between the loads of the fields (H200: 48 bytes 1.0, 64 bytes 2.0, 128 bytes 4.0 times separate arrays).
const LOADED_WHOLE: i64 = 64;

/// The excess from which whole structs lose time: below it the lanes of a warp are within few structs, unlike what was measured.
const FAR_APART: f64 = 3.0;

/// The same of stores, which write each sector once per field. Below it, a store of many narrow fields loses too
/// ([`MANY_FIELDS`]). H200: 16 bytes 1.3, 20 bytes 2.7, 32 bytes 9.3 times separate arrays.
const STORED_WHOLE: i64 = 20;

/// The same of a kernel that also loads the struct: reads and writes then share the sectors (20 bytes 0.8, 28 bytes 2.5).
const UPDATED_WHOLE: i64 = 24;

/// Sectors over the ideal from which a struct of 8 bytes or more that is stored whole loses time: 2-byte fields 1.6 at 8
/// bytes, 1-byte fields 4.7, 4-byte fields 1.3 at 16 bytes; at a ratio of 3 and 12 bytes 1.0.
const MANY_FIELDS: f64 = 4.0;

/// A place in excess, judged with every other access of its kernel to the same element.
struct Evidence<'a> {
    worst: Seen<'a>,
    field: &'a FieldFact,
    bad: Vec<Seen<'a>>,
    /// Bytes of one element that the kernel uses with this operation.
    used: Bytes,
    /// Those are all of its bytes but padding.
    whole: bool,
    /// By the measurements the layout loses time; else it only shows in a profiler.
    costs: bool,
    /// Sectors of one warp over all accesses of the group, and the bytes used of them.
    union: global::Union,
}

impl Rule for ArrayOfStructures {
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
    let mut worst: Option<Evidence<'a>> = None;
    let mut bad = Vec::new();
    for &seen in &place.seen {
        let Some(evidence) = judge(seen) else { continue };
        bad.push(seen);
        let share = |of: &Evidence| f64::from(of.union.used_bytes) / f64::from(of.union.sectors.max(1));
        let rank = |of: &Evidence| (!of.costs, share(of));
        if worst.as_ref().is_none_or(|known| rank(&evidence) < rank(known)) {
            worst = Some(evidence);
        }
    }
    worst.map(|evidence| Evidence { bad, ..evidence })
}

/// Neighbouring lanes on neighbouring elements, an array within a struct: the excess is that of an offset.
fn is_contiguous(access: &AccessFact) -> bool {
    access.lane_stride.is_some_and(|stride| stride.0.abs() == access.width.0)
}

/// Do the lanes fill one run of bytes, in whatever order? Then what is left is an offset.
fn is_one_run(request: &RequestFact, width: i64) -> bool {
    let mut places: Vec<i64> = request.worst_lanes.iter().map(|(_, address)| address).collect();
    places.sort_unstable();
    places.windows(2).all(|pair| matches!(pair, [a, b] if b - a <= width))
}

fn judge(seen: Seen<'_>) -> Option<Evidence<'_>> {
    let access = seen.access;
    let field = access.field.as_ref()?;
    let request = access.request.as_ref().filter(|_| !access.irregular)?;
    let in_excess =
        request.units >= RATIO * request.ideal - 1e-6 && request.units - request.ideal >= 1.0 - 1e-6;
    // An array with gaps between its elements is `uncoalesced-access`'s.
    let is_dense = place::whole_struct_ratio(access).is_some_and(|ratio| ratio < RATIO);
    if !in_excess || !is_dense || is_contiguous(access) || is_one_run(request, access.width.0) {
        return None;
    }
    let group = group(seen);
    let used = used_bytes(&group);
    let meaningful = meaningful_bytes(field);
    let mut requests: Vec<(&Lanes, u32)> = Vec::new();
    for other in &group {
        if let Some(lanes) = other.request.as_ref().and_then(|request| request.samples.first()) {
            requests.push((lanes, place::width_of(other)));
        }
    }
    let union = global::union(&requests);
    let share = f64::from(union.used_bytes) / (32.0 * f64::from(union.sectors.max(1)));
    let whole = used >= meaningful;
    let unused = !whole && share < USED_ENOUGH;
    let ratio = request.units / request.ideal.max(1e-9);
    let costs = unused
        || match access.operation {
            Operation::Load => whole && field.struct_bytes.0 >= LOADED_WHOLE && ratio >= FAR_APART,
            Operation::Store => stores_cost(seen, field, whole, ratio),
            Operation::Atomic => false,
        };
    // What loses no time is told where a profiler shows it for sure: not where the compiler makes one access of the fields.
    // It loads fields that nobody asks for; it cannot store them.
    let is_one_vector = field.struct_bytes.0 <= field.struct_align.0.min(16) && !is_volatile(seen);
    let is_merged = is_one_vector && (whole || access.operation == Operation::Load);
    let is_sure = !matches!(request.open, Some(Bound::AtMost(_))) && access.operation != Operation::Atomic;
    (costs || (is_sure && !is_merged)).then_some(Evidence {
        worst: seen,
        field,
        bad: Vec::new(),
        used: Bytes(used),
        whole,
        costs,
        union,
    })
}

/// Do stores to most or all of a struct, field by field, take longer than stores to separate arrays?
fn stores_cost(seen: Seen<'_>, field: &FieldFact, whole: bool, ratio: f64) -> bool {
    let size = field.struct_bytes.0;
    // Below 8 bytes no loss was measured: the stores of a warp stay within few sectors.
    if size < 8 {
        return false;
    }
    if whole && size <= field.struct_align.0.min(16) && !is_volatile(seen) {
        return false;
    }
    let loaded = seen.kernel.accesses.iter().any(|other| {
        other.operation == Operation::Load
            && other.base == seen.access.base
            && other.field.as_ref().is_some_and(|other| other.element == field.element)
    });
    match (whole, loaded) {
        (true, true) => ratio >= FAR_APART && size >= UPDATED_WHOLE,
        (true, false) => (ratio >= FAR_APART && size >= STORED_WHOLE) || ratio >= MANY_FIELDS,
        (false, true) => size >= STORED_WHOLE,
        (false, false) => true,
    }
}

fn is_volatile(seen: Seen<'_>) -> bool {
    let base = seen.kernel.bases.get(seen.access.base);
    let param = base.and_then(|base| base.param).and_then(|place| seen.kernel.params.get(place));
    param.is_some_and(|param| param.is_volatile)
}

/// The accesses of the kernel to the same element with the same kind of operation.
fn group(seen: Seen<'_>) -> Vec<&AccessFact> {
    let reads = seen.access.operation == Operation::Load;
    let element = seen.access.field.as_ref().map(|field| field.element);
    let same = |other: &&AccessFact| {
        other.base == seen.access.base
            && other.field.as_ref().map(|field| field.element) == element
            && (other.operation == Operation::Load) == reads
    };
    seen.kernel.accesses.iter().filter(same).collect()
}

fn used_bytes(group: &[&AccessFact]) -> i64 {
    let ranges = group.iter().filter_map(|access| access.field.as_ref()).flat_map(|field| &field.used);
    covered(ranges.map(|(start, size)| (start.0, size.0)).collect())
}

/// The bytes of a struct that are no padding.
fn meaningful_bytes(field: &FieldFact) -> i64 {
    let fields = covered(field.members.iter().map(|(_, start, size)| (start.0, size.0)).collect());
    if fields == 0 { field.struct_bytes.0 } else { fields }
}

/// The length of a union of `(start, size)`.
fn covered(mut ranges: Vec<(i64, i64)>) -> i64 {
    ranges.sort_unstable();
    let (mut total, mut free) = (0, i64::MIN);
    for (start, size) in ranges {
        let (start, end) = (start.max(free), start.saturating_add(size));
        if end > start {
            total += end - start;
            free = end;
        }
    }
    total
}

fn report(cx: &Context, place: &Place<'_>, evidence: &Evidence<'_>) -> Finding {
    let Evidence { worst, field, used, whole, costs, union, .. } = evidence;
    let text = place::access_text(cx.sources, place.span);
    let request = worst.access.request.as_ref();
    let (units, ideal) = request.map_or_else(Default::default, |request| {
        (place::units(request), place::mean(place::ideal_sectors(worst.access, request)))
    });
    let does = match place.operation {
        Operation::Load => "uses",
        Operation::Store => "writes",
        Operation::Atomic => "updates",
    };
    let one = field.used.iter().map(|(_, size)| size.0).sum::<i64>();
    let (size, name) = (field.struct_bytes.0, &field.struct_name);
    let message = if !costs && one >= meaningful_bytes(field) {
        let (verb, width) = (place::verb(place.operation), worst.access.width.0);
        format!(
            "{verb} `{text}` moves the {size} bytes of `{name}` by {width}: {units} sectors per request where {ideal} would do"
        )
    } else {
        let rest = if *costs { "" } else { " (the kernel uses the rest by other accesses)" };
        format!(
            "`{text}` {does} {one} of the {size} bytes of `{name}`: {units} sectors per request where {ideal} would do{rest}"
        )
    };
    let percent = place::mean(f64::from(union.used_bytes) * 100.0 / (32.0 * f64::from(union.sectors.max(1))));
    let mut notes = Vec::new();
    notes.extend(costs.then(|| format!(
        "the kernel {does} {} of the {} bytes of each `{}`: {} of the {} bytes in the sectors that a warp touches ({percent} %)",
        used.0,
        field.struct_bytes.0,
        field.struct_name,
        union.used_bytes,
        u64::from(union.sectors) * 32,
    )));
    notes.push(if *costs { cost(place.operation, *whole) } else { free(place.operation) }.to_owned());
    notes.extend(request.and_then(RequestFact::range_note).map(str::to_owned));
    notes.extend(place::reach_note(&place.seen, &evidence.bad));
    notes.extend(place::view_note(cx.sources, &place.seen));
    Finding {
        rule: &INFO,
        level: if *costs { INFO.default_level } else { Level::Note },
        span: place.span,
        message,
        label: format!(
            "neighbouring lanes are {} bytes apart: one `{}`",
            field.struct_bytes.0, field.struct_name
        ),
        notes,
        help: Some(if *costs { remedy(field, *whole) } else { keep(field, place.operation) }),
        trail: place::trail(*worst),
        kernel: worst.kernel.name.clone(),
        access_text: text,
        numbers: place::sector_numbers(*worst),
        fix: if *costs { vector_load(field, place.operation) } else { None },
    }
}

/// What a profiler shows, and why it need not matter.
fn free(operation: Operation) -> &'static str {
    match operation {
        Operation::Load => {
            "no traffic is lost: the sectors that this access leaves in part are used by the others while L1 keeps them; measured \
             on an H200, all fields of 4 bytes loaded: structs up to 48 bytes 1.0 times the time of separate arrays"
        }
        Operation::Store | Operation::Atomic => {
            "the kernel's other stores write most or all of the rest of these sectors; measured on an H200, all fields of 4 \
             bytes stored: structs of 12 bytes 1.0 times the time of separate arrays, of 16 bytes 1.3; loaded and stored: of 20 \
             bytes 0.8"
        }
    }
}

/// What to do about a layout that loses no time: nothing, or less work for L1.
fn keep(field: &FieldFact, operation: Operation) -> String {
    let (size, align) = (field.struct_bytes.0, field.struct_align.0);
    let fitting = [16, 8, 4, 2].into_iter().find(|vector| size % vector == 0 && *vector > align);
    let name = &field.struct_name;
    match fitting {
        Some(vector) if !field.is_vector && operation == Operation::Store => format!(
            "leave it, or align `{name}` to {vector} bytes, so that one instruction stores {vector} of them: measured on an \
             H200 0.8 times the time at 16 bytes"
        ),
        Some(vector) if !field.is_vector => format!(
            "leave it where DRAM is the limit; `alignas({vector})` on `{name}` lets one instruction load {vector} of its \
             bytes: measured on an H200 1.0 times the time from DRAM, from L1 0.9 at 16 bytes and 0.4 at 32"
        ),
        _ if field.is_vector && operation == Operation::Store => format!(
            "leave it where DRAM is the limit; a whole `{name}`, with what is not changed as it was loaded, is one store"
        ),
        _ => "leave it where DRAM is the limit; where L1 is, load whole elements through shared memory"
            .to_owned(),
    }
}

fn cost(operation: Operation, whole: bool) -> &'static str {
    match (operation, whole) {
        (Operation::Load, false) => {
            "measured on an H200: one of 4 fields of 4 bytes 1.6 times the time of an array of its own, one of 8 2.7 times, \
             all fields 1.0"
        }
        (Operation::Load, true) => {
            "each field is a load of its own over all those sectors; measured on an H200, all fields of 4 bytes read: \
             structs of 48 bytes 1.0 times the time of separate arrays, of 64 bytes 2.0, of 128 bytes 4.0"
        }
        (Operation::Store, false) => {
            "measured on an H200: partly written sectors cost most; 3 of 4 fields of 4 bytes stored take 2.8 times the time \
             of separate arrays, 7 of 8 9.4 times"
        }
        (Operation::Store, true) => {
            "each field is a store of its own that writes a part of all those sectors; measured on an H200, all fields of \
             4 bytes stored: structs of 16 bytes 1.3 times the time of separate arrays, of 20 bytes 2.7, of 32 bytes 9.3"
        }
        (Operation::Atomic, _) => "each sector that an atomic touches is an operation of its own at the L2",
    }
}

fn remedy(field: &FieldFact, whole: bool) -> String {
    let name = &field.struct_name;
    if whole {
        format!(
            "give each field of `{name}` an array of its own (structure of arrays), or move whole elements through shared memory"
        )
    } else {
        format!("keep what the kernel needs of `{name}` in arrays of its own (structure of arrays)")
    }
}

/// Where the layout allows one vector access, that is the smaller change.
fn vector_load(field: &FieldFact, operation: Operation) -> Option<Fix> {
    let size = field.struct_bytes.0;
    let fits = matches!(size, 8 | 16)
        && field.struct_align.0 < size
        && !field.is_vector
        && operation == Operation::Load;
    fits.then(|| Fix {
        title: format!(
            "or align `{}` to {size} bytes, so that reading more of it stays one load",
            field.struct_name
        ),
        applicability: Applicability::DisplayOnly,
        edits: Vec::new(),
    })
}
