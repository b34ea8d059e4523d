//! What the finding says.

use cudalint::ir::facts::{AccessFact, Operation, TrailStep};
use cudalint::lint::finding::{Finding, Level, Numbers, RuleInfo};
use cudalint::lint::rule::Context;
use cudalint::memory::layout::Layout;
use cudalint::memory::{SharedOp, Tally};
use cudalint::source::Span;

use super::Evidence;
use super::remedy::{Better, Remedy};

pub fn report(info: &'static RuleInfo, cx: &Context, evidence: &Evidence) -> Finding {
    let text = folded(cx.sources.text(evidence.access.span));
    let request = evidence.request;
    let degree = degree(evidence);
    let (units, ideal) = (request.units_in_words(number), number(request.ideal));
    let is_even = (f64::from(request.worst.units) - request.units).abs() < 0.05;
    let message = if evidence.is_spread {
        format!(
            "`{text}` takes {units} wavefronts per request where {ideal} would do, without a bank conflict"
        )
    } else if is_even {
        format!(
            "{degree} bank conflict: `{text}` takes {units} wavefronts per request where {ideal} would do"
        )
    } else {
        format!(
            "up to {degree} bank conflict: `{text}` takes {units} wavefronts per request on average where \
             {ideal} would do"
        )
    };
    Finding {
        rule: info,
        level: if evidence.is_spread { Level::Note } else { info.default_level },
        span: evidence.access.span,
        message,
        label: format!("{} wavefronts, ideal {}", request.worst.units, request.worst.ideal),
        notes: notes(evidence),
        help: Some(help(evidence)),
        trail: trail(evidence),
        kernel: evidence.kernel.name.clone(),
        access_text: text,
        numbers: numbers(evidence),
        fix: None,
    }
}

/// `32-way`; a degree that is no whole number keeps a decimal.
fn degree(evidence: &Evidence) -> String {
    let worst = evidence.request.worst;
    format!("{}-way", number(f64::from(worst.units) / f64::from(worst.ideal.max(1))))
}

/// At most one decimal, and none where it is 0.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The text of an access on one line, cut where it is long.
fn folded(text: &str) -> String {
    const MOST: usize = 60;
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if folded.chars().count() <= MOST {
        return folded;
    }
    folded.chars().take(MOST).chain(['…']).collect()
}

fn notes(evidence: &Evidence) -> Vec<String> {
    let mut notes = Vec::new();
    if evidence.is_spread {
        notes.push(format!(
            "accesses of {} bytes are served {} of the warp after the other, however few lanes of each take part",
            evidence.access.width.0,
            part_of_warp(evidence.access)
        ));
        notes.extend(reach(evidence));
        return notes;
    }
    if let Some(witness) = &evidence.witness {
        let lanes = list(witness.lanes.iter());
        let same = match super::operation(evidence.access) {
            SharedOp::Atomic | SharedOp::AtomicCas | SharedOp::AtomicLoop => {
                format!("lanes {lanes} update bank {} one after another", witness.bank)
            }
            SharedOp::Load | SharedOp::Store | SharedOp::AtomicIncrement | SharedOp::Matrix(_) => {
                let words = witness.words.len();
                format!("lanes {lanes} want {words} different words of bank {}", witness.bank)
            }
        };
        notes.push(same);
    }
    notes.push(
        "a bank gives one 4-byte word per wavefront; shared memory takes as long as there are wavefronts"
            .to_owned(),
    );
    if super::is_merged(evidence.access) {
        let width = evidence.access.width.0;
        notes.push(format!("as the compiler merges neighbouring accesses into one of {width} bytes"));
    }
    notes.extend(evidence.request.range_note().map(str::to_owned));
    notes.extend(reach(evidence));
    notes
}

/// Where it holds, if not everywhere.
fn reach(evidence: &Evidence) -> Option<String> {
    let (conflicting, measured) = (evidence.conflicting, evidence.measured);
    let kernel = &evidence.kernel.name;
    let shape = evidence.kernel.shape_of(evidence.access);
    let conflict = if evidence.is_spread { "do so" } else { "conflict here" };
    (conflicting < measured).then(|| {
        format!(
            "holds for `{kernel}` in blocks of {shape}; {conflicting} of the {measured} launches and calls that were looked at {conflict}"
        )
    })
}

/// What is served at a time.
fn part_of_warp(access: &AccessFact) -> &'static str {
    if access.width.0 % 16 == 0 { "one quarter" } else { "one half" }
}

/// `0, 1, 2, … 31`
fn list<'a>(lanes: impl ExactSizeIterator<Item = &'a u32>) -> String {
    const MOST: usize = 6;
    let count = lanes.len();
    let all: Vec<String> = lanes.map(u32::to_string).collect();
    match all.split_at_checked(MOST - 2) {
        Some((first, [.., last])) if count > MOST => format!("{}, … {last}", first.join(", ")),
        _ => all.join(", "),
    }
}

fn help(evidence: &Evidence) -> String {
    let array = &evidence.base.name;
    if evidence.is_spread {
        return format!("let the lanes that take part fill {} of the warp", part_of_warp(evidence.access));
    }
    if updates_one_word(evidence) {
        return "combine the lanes' values first (`__reduce_add_sync`, `__shfl_down_sync`) and let one lane update the \
                word, or give each warp a copy of it"
            .to_owned();
    }
    match &evidence.remedy {
        Remedy::Layout(better) => layout(array, better, evidence.access),
        Remedy::NothingHelps => format!(
            "no padding or swizzle of `{array}` helps without making another access worse: let neighbouring lanes \
             take neighbouring words"
        ),
        Remedy::NotSimulated(why) if evidence.base.extents.len() > 1 => format!(
            "let neighbouring lanes take neighbouring words; rows of `{array}` padded by one element often help (not \
             simulated: {why})"
        ),
        Remedy::NotSimulated(why) => format!(
            "let neighbouring lanes take neighbouring words (no other layout of `{array}` was simulated: {why})"
        ),
    }
}

/// An atomic whose lanes want the same word: no layout can help.
fn updates_one_word(evidence: &Evidence) -> bool {
    evidence.access.operation == Operation::Atomic
        && evidence.witness.as_ref().is_some_and(|witness| witness.words.len() == 1)
}

fn layout(array: &str, better: &Better, access: &AccessFact) -> String {
    let after = better.after.get(&(access.span, access.operation)).and_then(Tally::mean_units);
    let after = number(after.unwrap_or(0.0));
    let after = if after == "1" { "1 wavefront".to_owned() } else { format!("{after} wavefronts") };
    let outcome = format!(
        "simulated over all {} accesses to `{array}`: {after} per request here, {} instead of {} in all, none \
         worse",
        better.after.len(),
        better.total_after,
        better.total_before
    );
    let columns = better.extents.last().copied().unwrap_or(0);
    match better.layout {
        Layout::Plain => outcome,
        Layout::Pad { elements } if better.is_flat => format!(
            "leave {} free after every {columns} of `{array}`: element `i` at `i + i / {columns}{}` ({outcome}; about \
             {} B more)",
            counted(elements),
            if elements == 1 { String::new() } else { format!(" * {elements}") },
            better.extra_bytes
        ),
        Layout::Pad { elements } => {
            let extents: Vec<String> = better.extents.iter().map(u64::to_string).collect();
            let outer: String =
                extents.iter().rev().skip(1).rev().map(|extent| format!("[{extent}]")).collect();
            format!(
                "pad its rows: `{array}{outer}[{columns} + {elements}]` ({outcome}; {} B more)",
                better.extra_bytes
            )
        }
        Layout::Swizzle(swizzle) if better.is_flat => format!(
            "permute the rows of {columns} elements: with `r = i / {columns}` and `c = i % {columns}`, element `i` at \
             `r * {columns} + ({swizzle})` ({outcome})"
        ),
        Layout::Swizzle(swizzle) => {
            let index = |(dimension, _): (usize, &u64)| match dimension {
                _ if dimension + 1 == better.extents.len() => format!("[{swizzle}]"),
                _ if dimension == swizzle.dimension => "[r]".to_owned(),
                _ => "[…]".to_owned(),
            };
            let indices: String = better.extents.iter().enumerate().map(index).collect();
            format!("permute its rows: `{array}{indices}` at every access ({outcome}; no byte more)")
        }
    }
}

fn counted(elements: u64) -> String {
    if elements == 1 { "1 element".to_owned() } else { format!("{elements} elements") }
}

/// The array, the launch, and the calls that lead to the access.
fn trail(evidence: &Evidence) -> Vec<TrailStep> {
    let step = |span: Span, text: String| TrailStep { span, text };
    let mut trail = Vec::new();
    if let Some(declaration) = evidence.base.declaration {
        let element = &evidence.base.element;
        trail.push(step(declaration, format!("`{}`, elements of `{element}`", evidence.base.name)));
    }
    if let Some(span) = evidence.kernel.shape.span {
        trail.push(step(span, format!("launched in blocks of {}", evidence.kernel.shape)));
    }
    trail.extend(evidence.access.calls.iter().map(|&call| step(call, "called here".to_owned())));
    trail
}

fn numbers(evidence: &Evidence) -> Numbers {
    let AccessFact { space, operation, width, lane_stride, confidence, assumptions, .. } = evidence.access;
    Numbers {
        launch_shape: Some(evidence.kernel.shape_of(evidence.access).to_string()),
        launch_source: Some(evidence.kernel.shape.source.to_string()),
        space: Some(*space),
        operation: Some(*operation),
        access_bytes: Some(*width),
        lane_stride: *lane_stride,
        sectors: None,
        ideal_sectors: None,
        wavefronts: Some(evidence.request.units),
        ideal_wavefronts: Some(evidence.request.ideal),
        confidence: Some(*confidence),
        assumptions: assumptions.clone(),
    }
}
