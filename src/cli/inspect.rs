//! `inspect` and `survey`: what the analysis understands, without any rule.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Instant;

use serde::Serialize;

use super::super::ir::ast::Gap;
use super::super::ir::facts::{AccessFact, AccessPath, KernelFact, LaunchShape, MemorySpace};
use super::super::lint::check::{Input, analyze};
use super::super::report::inspect::{
    Inspect, InspectAccess, InspectFile, InspectGap, InspectKernel, InspectShape, json, table,
};
use super::super::source::{FileId, SourceFile};
use super::super::syntax::lex::launch_sites;
use super::super::syntax::macros::Defines;
use super::super::syntax::mask::{MaskOptions, mask};
use super::Engine;
use super::analysis;
use super::args::{InspectArgs, ListFormat, SelectionArgs};
use super::failure::Failure;
use super::project::{self, Project};
use super::settings::Configs;
use super::shell::Shell;

/// The checked files with their kernels, one entry for each launch, and accesses.
pub fn files(input: &Input) -> Vec<InspectFile> {
    let analysis = analyze(input);
    let file = |id: &FileId| {
        let gaps = analysis.gaps.iter().filter(|gap| gap.span.file == *id);
        let kernels = analysis.kernels.iter().filter(|kernel| kernel.name_span.file == *id);
        let gap = |gap: &Gap| InspectGap { line: input.sources.line(gap.span), reason: gap.reason.clone() };
        let mut file = InspectFile {
            path: path(input, *id),
            gaps: gaps.map(gap).collect(),
            kernels: kernels.clone().map(|fact| kernel(input, fact)).collect(),
        };
        for fact in kernels {
            let line = input.sources.line(fact.name_span);
            file.gaps.extend(fact.gaps.iter().map(|reason| InspectGap { line, reason: reason.clone() }));
        }
        file.gaps.sort_by(|a, b| (a.line, &a.reason).cmp(&(b.line, &b.reason)));
        file.gaps.dedup();
        file
    };
    input.checked.iter().map(file).collect()
}

fn path(input: &Input, file: FileId) -> String {
    input.sources.path(file).to_string_lossy().into_owned()
}

fn kernel(input: &Input, fact: &KernelFact) -> InspectKernel {
    let shape = |shape: &LaunchShape| InspectShape {
        block: shape.block,
        from: shape.source.to_string(),
        line: shape.span.map(|span| input.sources.line(span)),
        file: shape.span.filter(|span| span.file != fact.name_span.file).map(|span| path(input, span.file)),
    };
    InspectKernel {
        name: fact.name.clone(),
        line: input.sources.line(fact.name_span),
        launch_shapes: std::iter::once(&fact.shape).chain(&fact.tried).map(shape).collect(),
        accesses: fact.accesses.iter().map(|item| access(input, fact, item)).collect(),
    }
}

fn access(input: &Input, kernel: &KernelFact, fact: &AccessFact) -> InspectAccess {
    let source = input.sources.get(fact.span.file);
    let at = source.position(fact.span.start);
    let global = fact.space == MemorySpace::Global;
    let shared = fact.space == MemorySpace::Shared;
    let known = fact.request.as_ref().filter(|request| request.open.is_none());
    let open = fact.request.as_ref().and_then(|request| Some(request.open.as_ref()?.reason().to_owned()));
    let units = known.map(|request| request.issued(request.units));
    let ideal = known.map(|request| request.issued(request.ideal));
    InspectAccess {
        line: at.line,
        column: at.column,
        end_line: source.line(fact.span.end),
        file: (fact.span.file != kernel.name_span.file).then(|| path(input, fact.span.file)),
        space: fact.space.to_string(),
        // The hardware's copy is one instruction of its own.
        operation: match fact.path {
            AccessPath::AsyncCopy => "async-copy".to_owned(),
            AccessPath::Plain | AccessPath::ReadOnly | AccessPath::Matrix(_) => fact.operation.to_string(),
        },
        access_bytes: Some(fact.width.0),
        base: kernel.bases.get(fact.base).map(|base| base.name.clone()),
        index: Some(fact.index.clone()),
        lane_stride_bytes: fact.lane_stride.map(|stride| stride.0),
        sectors_per_request: units.filter(|_| global),
        ideal_sectors_per_request: ideal.filter(|_| global),
        wavefronts_per_request: units.filter(|_| shared),
        ideal_wavefronts_per_request: ideal.filter(|_| shared),
        confidence: known.map(|_| fact.confidence.to_string()),
        assumptions: fact.assumptions.clone(),
        unknown: fact.unknown.clone().or(open),
    }
}

fn load(args: &InspectArgs, engine: &Engine, shell: &mut Shell<'_>) -> Result<Project, Failure> {
    let mut configs = Configs::new(shell, &args.project, &SelectionArgs::default(), &engine.infos())?;
    project::load(shell, &args.project, &mut configs)
}

/// Every checked file, by path, with what the analysis knows of it.
fn inspected(project: &mut Project, engine: &Engine) -> Vec<InspectFile> {
    let mut files = Vec::new();
    for (settings, checked) in analysis::groups(project) {
        let input = analysis::input(project, settings, checked);
        files.extend((engine.inspect)(&input));
        project.sources = input.sources;
    }
    for gap in &project.gaps {
        let path = project.sources.path(gap.span.file).to_string_lossy().into_owned();
        let gaps = vec![InspectGap { line: 1, reason: gap.reason.clone() }];
        files.push(InspectFile { path, gaps, kernels: Vec::new() });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

pub fn run(args: &InspectArgs, engine: &Engine, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    let mut project = load(args, engine, shell)?;
    let files = inspected(&mut project, engine);
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
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Survey {
    schema_version: u32,
    files: usize,
    bytes: usize,
    /// Kernel definitions.
    kernels: usize,
    /// Places that launch a kernel: `<<<` and calls of `cudaLaunchKernel` and its like.
    launches: usize,
    /// Those whose block has a shape that is known.
    launches_with_shape: usize,
    /// Kernel definitions by where their block shape was read.
    kernels_by_shape: BTreeMap<String, usize>,
    /// Accesses, counted once for each launch of their kernel.
    accesses: usize,
    accesses_without_number: BTreeMap<String, usize>,
    gaps: usize,
    gaps_by_reason: BTreeMap<String, usize>,
    seconds: f64,
}

pub fn survey(args: &InspectArgs, engine: &Engine, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    let start = Instant::now();
    let mut project = load(args, engine, shell)?;
    let bytes = project.checked.iter().map(|file| project.sources.get(*file).text.len()).sum();
    let files = inspected(&mut project, engine);
    let mut survey = Survey { schema_version: 1, files: files.len(), bytes, ..Survey::default() };
    files.iter().for_each(|file| survey.add(file));
    let known: BTreeSet<(&str, u32)> = files.iter().flat_map(launches_of).collect();
    for &id in &project.checked {
        let path = project.sources.path(id).to_string_lossy();
        let sites = launch_lines(&project.sources.get(id).text);
        survey.launches += sites.len();
        survey.launches_with_shape += sites
            .iter()
            .filter(|lines| lines.iter().any(|&line| known.contains(&(path.as_ref(), line))))
            .count();
    }
    survey.seconds = start.elapsed().as_secs_f64();
    let text = match args.output_format {
        ListFormat::Json => serde_json::to_string_pretty(&survey).unwrap_or_default() + "\n",
        ListFormat::Text => survey.text(),
    };
    shell.stdout.write_all(text.as_bytes())?;
    shell.stdout.flush()?;
    Ok(0)
}

/// Where the launches stand whose shapes are known.
fn launches_of(file: &InspectFile) -> impl Iterator<Item = (&str, u32)> {
    let shapes = file.kernels.iter().flat_map(|kernel| &kernel.launch_shapes);
    shapes.filter(|shape| shape.from == "launch site").filter_map(|shape| {
        let path = shape.file.as_deref().unwrap_or(&file.path);
        Some((path, shape.line?))
    })
}

/// The line of each launch's kernel and that of its statement.
fn launch_lines(text: &str) -> Vec<[u32; 2]> {
    let masked = mask(FileId(0), text, &Defines::default(), &MaskOptions::default()).text;
    let source = SourceFile::new("", masked.clone());
    launch_sites(&masked).iter().map(|site| [source.line(site.name), source.line(site.statement)]).collect()
}

/// A reason without what it quotes, which differs from place to place.
fn kind(reason: &str) -> String {
    reason.split('`').step_by(2).collect::<Vec<_>>().join("…")
}

impl Survey {
    fn add(&mut self, file: &InspectFile) {
        let mut shapes: BTreeMap<u32, String> = BTreeMap::new();
        for kernel in &file.kernels {
            let from = kernel.launch_shapes.first().map_or_else(String::new, |shape| shape.from.clone());
            // One launch whose shape is known is enough.
            let known = shapes.entry(kernel.line).or_insert_with(|| from.clone());
            if from == "launch site" {
                *known = from;
            }
            self.accesses += kernel.accesses.len();
            for reason in kernel.accesses.iter().filter_map(|access| access.unknown.as_deref()) {
                *self.accesses_without_number.entry(kind(reason)).or_default() += 1;
            }
        }
        self.kernels += shapes.len();
        for from in shapes.into_values() {
            *self.kernels_by_shape.entry(from).or_default() += 1;
        }
        self.gaps += file.gaps.len();
        for gap in &file.gaps {
            *self.gaps_by_reason.entry(kind(&gap.reason)).or_default() += 1;
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let Survey { files, bytes, kernels, accesses, gaps, seconds, .. } = self;
        let _ = writeln!(
            text,
            "{files} files, {bytes} bytes, {kernels} kernels, {accesses} accesses, {gaps} gaps"
        );
        let _ =
            writeln!(text, "{} of {} launches with a block shape", self.launches_with_shape, self.launches);
        let _ = writeln!(text, "{seconds:.3} s");
        let lists = [
            ("block shapes from", &self.kernels_by_shape),
            ("accesses without a number", &self.accesses_without_number),
            ("gaps", &self.gaps_by_reason),
        ];
        for (title, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            let _ = writeln!(text, "{title}:");
            let mut counts: Vec<(&String, &usize)> = list.iter().collect();
            counts.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
            for (reason, count) in counts {
                let _ = writeln!(text, "{count:7}  {reason}");
            }
        }
        text
    }
}
