#![doc = include_str!("README.md")]

use cudalint::ir::facts::TrailStep;
use cudalint::launch::persist::{PersistFact, PersistKind};
use cudalint::lint::finding::{Category, Finding, Level, Numbers, RuleInfo};
use cudalint::lint::rule::{Context, Rule};

pub struct PersistingL2NotReset;

static INFO: RuleInfo = RuleInfo {
    name: "persisting-l2-not-reset",
    summary: "L2 lines left persisting, which later kernels then lack",
    category: Category::Cache,
    default_level: Level::Warning,
    since: "0.1.0",
    measured: None,
    doc: include_str!("README.md"),
};

impl Rule for PersistingL2NotReset {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn check(&self, cx: &Context, out: &mut Vec<Finding>) {
        let left: Vec<&PersistFact> = cx.persisting.iter().filter(|fact| fact.released.is_none()).collect();
        let windows = |fact: &&PersistFact| fact.kind != PersistKind::SetAside;
        for fact in &left {
            // A set-aside whose windows are reported in the same file is the same mistake.
            let is_told = !windows(fact)
                && left
                    .iter()
                    .filter(|other| windows(other))
                    .any(|window| window.span.file == fact.span.file);
            if !is_told {
                out.push(report(cx, fact));
            }
        }
    }
}

fn report(cx: &Context, fact: &PersistFact) -> Finding {
    let (what, label) = match fact.kind {
        PersistKind::StreamWindow => ("the stream's access-policy window", "persists lines in L2"),
        PersistKind::GraphNodeWindow => ("the graph node's access-policy window", "persists lines in L2"),
        PersistKind::LaunchWindow => ("the launch's access-policy window", "persists lines in L2"),
        PersistKind::SetAside => ("the L2 set-aside", "takes a part of L2"),
    };
    let function = &fact.function;
    let no_reset = format!("no `cudaCtxResetPersistingL2Cache()` follows `{function}`");
    let message = match (fact.kind, fact.cleared) {
        (PersistKind::SetAside, _) => format!("{what} is never given back, and {no_reset}"),
        (_, Some(_)) => format!("{what} is cleared, but its lines stay persisting: {no_reset}"),
        (_, None) => format!("{what} leaves its lines persisting: {no_reset}"),
    };
    let mut trail = Vec::new();
    if let Some(span) = fact.property {
        trail.push(TrailStep { span, text: "hits become persisting here".to_owned() });
    }
    if let Some(span) = fact.cleared {
        trail.push(TrailStep { span, text: "cleared here, which frees no line".to_owned() });
    }
    let folded = cx.sources.text(fact.span).split_whitespace().collect::<Vec<_>>().join(" ");
    Finding {
        rule: &INFO,
        level: INFO.default_level,
        span: fact.span,
        message,
        label: label.to_owned(),
        notes: vec![
            "persisting lines are not evicted by normal accesses: kernels that re-read 24 to 48 MiB took 1.37 to 1.87 \
             times as long beside 37 MiB left persisting (measured on an H200 with 60 MiB of L2)"
                .to_owned(),
        ],
        help: Some(match fact.kind {
            PersistKind::SetAside => {
                "call `cudaCtxResetPersistingL2Cache()` and `cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0)` \
                 when the kernels that profit are done"
                    .to_owned()
            }
            PersistKind::StreamWindow | PersistKind::GraphNodeWindow | PersistKind::LaunchWindow => {
                "call `cudaCtxResetPersistingL2Cache()` when the kernels that profit are done; `num_bytes = 0` alone \
                 frees nothing"
                    .to_owned()
            }
        }),
        trail,
        kernel: String::new(),
        access_text: folded,
        numbers: Numbers::default(),
        fix: None,
    }
}
