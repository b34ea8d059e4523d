//! `inspect` and `survey`: what the analysis understands, without any rule.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use serde::Serialize;

use super::super::lint::check::{Input, check};
use super::super::report::inspect::{Inspect, InspectFile, InspectGap, json, table};
use super::Engine;
use super::analysis;
use super::args::{InspectArgs, ListFormat, SelectionArgs};
use super::failure::Failure;
use super::project::{self, Project};
use super::settings::Configs;
use super::shell::Shell;

/// The checked files with their kernels and accesses.
pub fn files(input: &Input) -> Vec<InspectFile> {
    let checked = check(input, &[]);
    let file = |id: &super::super::source::FileId| {
        let gaps = checked.gaps.iter().filter(|gap| gap.span.file == *id);
        InspectFile {
            path: input.sources.path(*id).to_string_lossy().into_owned(),
            gaps: gaps
                .map(|gap| InspectGap { line: input.sources.line(gap.span), reason: gap.reason.clone() })
                .collect(),
            kernels: Vec::new(),
        }
    };
    input.checked.iter().map(file).collect()
}

fn load(args: &InspectArgs, engine: &Engine, shell: &mut Shell<'_>) -> Result<Project, Failure> {
    let mut configs = Configs::new(shell, &args.project, &SelectionArgs::default(), &engine.infos())?;
    project::load(shell, &args.project, &mut configs)
}

pub fn run(args: &InspectArgs, engine: &Engine, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    let mut project = load(args, engine, shell)?;
    let mut files = Vec::new();
    for (settings, checked) in analysis::groups(&project) {
        let input = analysis::input(&mut project, settings, checked);
        files.extend((engine.inspect)(&input));
        project.sources = input.sources;
    }
    for gap in &project.gaps {
        let path = project.sources.path(gap.span.file).to_string_lossy().into_owned();
        let gaps = vec![InspectGap { line: 1, reason: gap.reason.clone() }];
        files.push(InspectFile { path, gaps, kernels: Vec::new() });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let inspect = Inspect::new(files);
    let columns = (shell.variable)("COLUMNS").and_then(|text| text.to_str()?.parse().ok());
    let text = match args.output_format {
        ListFormat::Json => json(&inspect),
        ListFormat::Text => table(&inspect, columns.unwrap_or(120)),
    };
    shell.stdout.write_all(text.as_bytes())?;
    shell.stdout.flush()?;
    Ok(0)
}

/// How much of a tree is understood, in numbers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Survey {
    schema_version: u32,
    files: usize,
    bytes: usize,
    kernels: usize,
    accesses: usize,
    gaps: usize,
    gaps_by_reason: BTreeMap<String, usize>,
    seconds: f64,
}

pub fn survey(args: &InspectArgs, engine: &Engine, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    let start = Instant::now();
    let mut project = load(args, engine, shell)?;
    let bytes = project.checked.iter().map(|file| project.sources.get(*file).text.len()).sum();
    let outcome = analysis::run(engine, &mut project);
    let mut gaps_by_reason: BTreeMap<String, usize> = BTreeMap::new();
    for gap in &outcome.gaps {
        // What a reason quotes differs from place to place.
        let kind = gap.reason.split('`').step_by(2).collect::<Vec<_>>().join("…");
        *gaps_by_reason.entry(kind).or_default() += 1;
    }
    let survey = Survey {
        schema_version: 1,
        files: outcome.files,
        bytes,
        kernels: outcome.kernels,
        accesses: outcome.accesses,
        gaps: outcome.gaps.len(),
        gaps_by_reason,
        seconds: start.elapsed().as_secs_f64(),
    };
    let text = match args.output_format {
        ListFormat::Json => serde_json::to_string_pretty(&survey).unwrap_or_default() + "\n",
        ListFormat::Text => survey.text(),
    };
    shell.stdout.write_all(text.as_bytes())?;
    shell.stdout.flush()?;
    Ok(0)
}

impl Survey {
    fn text(&self) -> String {
        let mut text = String::new();
        let Survey { files, bytes, kernels, accesses, gaps, seconds, .. } = self;
        let _ = writeln!(
            text,
            "{files} files, {bytes} bytes, {kernels} kernels, {accesses} accesses, {gaps} gaps"
        );
        let _ = writeln!(text, "{seconds:.3} s");
        let mut reasons: Vec<(&String, &usize)> = self.gaps_by_reason.iter().collect();
        reasons.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        for (reason, count) in reasons {
            let _ = writeln!(text, "{count:7}  {reason}");
        }
        text
    }
}
