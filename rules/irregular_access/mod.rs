#![doc = include_str!("README.md")]

use cudalint::ir::facts::{MemorySpace, Operation};
use cudalint::lint::finding::{Category, Finding, Level, RuleInfo};
use cudalint::lint::place::{self, Place, Seen};
use cudalint::lint::rule::{Context, Rule};

pub struct IrregularAccess;

static INFO: RuleInfo = RuleInfo {
    name: "irregular-access",
    summary: "gathers and scatters: addresses that depend on data that differ between lanes",
    category: Category::Coalescing,
    default_level: Level::Off,
    since: "0.1.0",
    measured: None,
    doc: include_str!("README.md"),
};

impl Rule for IrregularAccess {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn check(&self, cx: &Context, out: &mut Vec<Finding>) {
        for place in place::places(cx, MemorySpace::Global) {
            let bad: Vec<Seen> = place.seen.iter().copied().filter(|seen| seen.access.irregular).collect();
            if let Some(&first) = bad.first() {
                out.push(report(cx, &place, first, &bad));
            }
        }
    }
}

fn report(cx: &Context, place: &Place<'_>, seen: Seen<'_>, bad: &[Seen<'_>]) -> Finding {
    let text = place::access_text(cx.sources, place.span);
    let name = match place.operation {
        Operation::Load => "gather",
        Operation::Store => "scatter",
        Operation::Atomic => "scattered atomic",
    };
    let mut notes = vec![
        "measured on an H200: a random gather of 4-byte elements takes 5.5 times a contiguous load"
            .to_owned(),
    ];
    notes.extend(place::reach_note(&place.seen, bad));
    notes.extend(place::view_note(cx.sources, &place.seen));
    Finding {
        rule: &INFO,
        level: INFO.default_level,
        span: place.span,
        message: format!("{name} `{text}` touches up to 32 sectors per request, as the data decide"),
        label: "the index differs between lanes as loaded data do".to_owned(),
        notes,
        help: Some("sort or bin the indices, so that neighbouring lanes meet in a sector".to_owned()),
        trail: place::trail(seen),
        kernel: seen.kernel.name.clone(),
        access_text: text,
        numbers: place::sector_numbers(seen),
        fix: None,
    }
}
