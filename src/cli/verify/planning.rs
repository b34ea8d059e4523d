//! From findings to what is run: a job per kernel instance and launch, and what becomes of findings about no access.

use std::collections::{BTreeMap, BTreeSet};

use super::super::super::ir::facts::{AccessFact, KernelFact};
use super::super::super::launch::persist;
use super::super::super::lint::check::{Analysis, Input, KernelInputs, analyze};
use super::super::super::lint::config::FailOn;
use super::super::super::lint::finding::{Category, Finding};
use super::super::super::source::Sources;
use super::super::super::verify::Availability;
use super::super::super::verify::exact::Exact;
use super::super::super::verify::host::HostCode;
use super::super::super::verify::inputs::Sizes;
use super::super::super::verify::job::{Arg, Here, Job, Prediction, Verification, Window};
use super::super::super::verify::plan::{Given, MOST, OTHER_SIZES, Planner, Proposal, SIZES};
use super::super::super::verify::report::AccessReport;
use super::super::Engine;
use super::super::analysis::{self, Outcome};
use super::super::args::VerifyArgs;
use super::super::failure::Failure;
use super::super::project::{self, Project};
use super::super::settings::Configs;
use super::super::shell::Shell;

/// What is to be run of a project.
pub struct Plan {
    /// In the order of files and kernels.
    pub kernels: Vec<PlannedKernel>,
    pub findings: Vec<PlannedFinding>,
    pub project: Project,
    pub outcome: Outcome,
}

/// A kernel with the accesses to confirm, or why there is no job for it.
pub struct PlannedKernel {
    pub kernel: String,
    pub path: String,
    pub line: u32,
    pub job: Result<Job, String>,
    /// The job with smaller sizes, should it leave its buffers or not end.
    pub smaller: Vec<Variant>,
    /// The job with other sizes, should it execute none of the accesses.
    pub others: Vec<Variant>,
    /// The rules that found something, by index of the access.
    pub rules: BTreeMap<usize, Vec<String>>,
    /// Accesses with a finding of the failing level.
    pub failing: BTreeSet<usize>,
    pub notes: Vec<String>,
    /// Line, column and words of each access to confirm, for a kernel without a job.
    places: Vec<(usize, u32, u32, String)>,
}

/// Other arguments for a job, and what is predicted with them.
pub struct Variant {
    pub args: Vec<Arg>,
    pub predictions: Vec<Prediction>,
    rest: Vec<Prediction>,
}

impl Variant {
    /// The job with these arguments. Its grid was made for other sizes, and a prediction is for blocks inside it, of which there may
    /// be few now: a number that differs refutes nothing.
    pub fn of(&self, job: &Job) -> Job {
        const FILLED: &str = "sizes that fill the grid, as these do not";
        let with = |assumed: &Option<String>| match assumed.as_deref() {
            None | Some("") => Some(FILLED.to_owned()),
            Some(assumed) => Some(format!("{assumed}; {FILLED}")),
        };
        let cut = |of: &Prediction| {
            let here = of.here.as_ref().map(|here| Here { assumed: with(&here.assumed), ..here.clone() });
            Prediction { assumed: with(&of.assumed), here, ..of.clone() }
        };
        Job {
            args: self.args.clone(),
            predictions: self.predictions.iter().map(cut).collect(),
            others: self.rest.iter().map(cut).collect(),
            ..job.clone()
        }
    }
}

impl PlannedKernel {
    /// Its accesses where there is no job for it.
    pub fn not_run(&self, why: &str) -> Vec<AccessReport> {
        let report = |(index, line, column, access): &(usize, u32, u32, String)| AccessReport {
            path: self.path.clone(),
            line: *line,
            column: *column,
            access: access.clone(),
            rules: self.rules.get(index).cloned().unwrap_or_default(),
            verification: Verification { id: *index as u64, ..Verification::not_run(why) },
        };
        self.places.iter().map(report).collect()
    }
}

/// A finding about no access of a kernel.
pub struct PlannedFinding {
    pub rule: &'static str,
    pub path: String,
    pub line: u32,
    pub column: u32,
    /// Whether it fails the run, once it is confirmed.
    pub fails: bool,
    pub about: About,
}

pub enum About {
    /// A fix that saves requests: its kernel's place in [`Plan::kernels`], its own in the job's fixes.
    Fix {
        kernel: usize,
        fix: usize,
    },
    Window(Window),
    /// Nothing to run, and why.
    Nothing(String),
}

/// Plans for the findings of the project or, with `--all`, for every access that has a number.
pub fn plan(
    args: &VerifyArgs,
    engine: &Engine,
    shell: &mut Shell<'_>,
    availability: &Availability,
) -> Result<Plan, Failure> {
    let mut selection = args.selection.clone();
    selection.select.extend(args.rule.iter().cloned());
    let mut configs = Configs::new(shell, &args.project, &selection, &engine.infos())?;
    let mut project = project::load(shell, &args.project, &mut configs)?;
    let outcome = analysis::run(engine, &mut project);
    let fails: Vec<bool> = outcome.findings.iter().map(|finding| fails(args, &project, finding)).collect();
    let mut kernels = Vec::new();
    let mut findings = Vec::new();
    let mut is_named = args.kernel.is_none();
    for (settings, checked) in analysis::groups(&project) {
        let input = analysis::input(&mut project, settings, checked);
        let known = analyze(&input);
        let mut planner = planner(&input.sources, &known);
        planner.defines = input
            .settings
            .defines
            .iter()
            .map(|(name, value)| value.as_ref().map_or(name.clone(), |value| format!("{name}={value}")))
            .collect();
        planner.include_dirs =
            input.settings.include_dirs.iter().map(|dir| dir.display().to_string()).collect();
        planner.build_defines.clone_from(&input.build_defines);
        let units = known.project.files.iter().map(|file| &file.unit);
        let device = availability.device.as_ref().ok();
        let host = HostCode::new(&input.sources, units, planner.types(), device);
        let own = known.kernels.iter().filter(|kernel| {
            let named = args.kernel.as_ref().is_none_or(|name| plain(&kernel.name) == plain(name));
            named && input.checked.binary_search(&kernel.name_span.file).is_ok()
        });
        let own: Vec<&KernelFact> = own.collect();
        is_named |= !own.is_empty();
        let here = outcome.findings.iter().zip(&fails);
        let here: Vec<(&Finding, bool)> = here
            .map(|(finding, fails)| (finding, *fails))
            .filter(|(finding, _)| input.checked.binary_search(&finding.span.file).is_ok())
            .collect();
        let project_plan = ProjectPlan {
            all: args.all,
            planner: &planner,
            host: &host,
            sources: &input.sources,
            here: &here,
        };
        let first = kernels.len();
        let mut planned: Vec<&KernelFact> = Vec::new();
        for kernel in &own {
            let given = given(&input.settings.inputs, &kernel.name);
            project_plan.kernel(kernel, &given, &own, &mut kernels, &mut findings);
            planned.resize(kernels.len() - first, kernel);
        }
        predict_here(&planner, &host, &input, &known, &planned, kernels.get_mut(first..).unwrap_or_default());
        let facts = persist::facts(&known.project, &input.sources);
        let others = here.iter().filter(|_| args.kernel.is_none());
        for (finding, fails) in others.filter(|(finding, _)| is_about_nothing_else(finding, &own)) {
            let about = match facts.iter().find(|fact| fact.span == finding.span) {
                Some(fact) if finding.kernel.is_empty() => {
                    host.window(fact).map_or_else(About::Nothing, About::Window)
                }
                _ => About::Nothing(
                    "there is neither an access with a number nor a fix to compare with".to_owned(),
                ),
            };
            findings.push(finding_at(&input.sources, finding, *fails, about));
        }
        drop(host);
        drop(planner);
        project.sources = input.sources;
    }
    if let (Some(name), false) = (&args.kernel, is_named) {
        return Err(Failure::Usage(format!("--kernel {name}: these files have no such kernel")));
    }
    Ok(Plan { kernels, findings, project, outcome })
}

/// Has the very launches analysed that are to be run, and adds to each prediction what is predicted there.
fn predict_here(
    planner: &Planner,
    host: &HostCode,
    input: &Input,
    known: &Analysis,
    facts: &[&KernelFact],
    kernels: &mut [PlannedKernel],
) {
    let mut exact = Exact::default();
    let mut asked = Vec::new();
    for (fact, kernel) in facts.iter().zip(kernels.iter()) {
        let Ok(job) = &kernel.job else {
            asked.push(Vec::new());
            continue;
        };
        let mut seen: Vec<(&[Arg], Option<usize>)> = Vec::new();
        let variants = kernel.smaller.iter().chain(&kernel.others).map(|variant| variant.args.as_slice());
        let questions = std::iter::once(job.args.as_slice()).chain(variants).map(|args| {
            let number = match seen.iter().find(|(known, _)| *known == args) {
                Some((_, number)) => *number,
                None => planner.ask(&mut exact, fact, job, args, host),
            };
            seen.push((args, number));
            number
        });
        asked.push(questions.collect());
    }
    if exact.is_empty() {
        return;
    }
    let (sources, places) = exact.copy(&input.sources, known.project.files.iter().map(|file| &file.unit));
    let copy = Input {
        sources,
        checked: input.checked.clone(),
        settings: input.settings.clone(),
        build_defines: input.build_defines.clone(),
    };
    let again = analyze(&copy);
    for ((fact, kernel), numbers) in facts.iter().zip(kernels).zip(asked) {
        let Ok(job) = &mut kernel.job else { continue };
        let block = job.launch.block;
        let first = (&mut job.predictions, &mut job.others);
        let variants = kernel.smaller.iter_mut().chain(&mut kernel.others);
        let variants = variants.map(|variant| (&mut variant.predictions, &mut variant.rest));
        for ((predictions, others), number) in std::iter::once(first).chain(variants).zip(numbers) {
            if let Some(number) = number {
                places.tell(number, &again.kernels, fact, block, predictions.iter_mut().chain(others));
            }
        }
    }
}

/// Whether no kernel of these speaks for a finding.
fn is_about_nothing_else(finding: &Finding, kernels: &[&KernelFact]) -> bool {
    finding.rule.category != Category::Suppression
        && !kernels.iter().any(|kernel| {
            let has_fix = finding.fix.as_ref().is_some_and(|fix| fix.applies(true));
            let is_own = plain(&kernel.name) == plain(&finding.kernel);
            let is_compared = is_about_code(finding) && has_fix && speaks_for(kernel, finding, kernels);
            is_own && (is_compared || kernel.accesses.iter().any(|access| is_at(access, finding)))
        })
}

fn fails(args: &VerifyArgs, project: &Project, finding: &Finding) -> bool {
    let config = project.config(finding.span.file).map_or(FailOn::Warn, |config| config.fail_on);
    args.fail_on.unwrap_or(config).fails(finding.level)
}

fn finding_at(sources: &Sources, finding: &Finding, fails: bool, about: About) -> PlannedFinding {
    let (line, column) = place(sources, finding.span);
    let path = sources.path(finding.span.file).display().to_string();
    PlannedFinding { rule: finding.rule.name, path, line, column, fails, about }
}

/// 1-based line and byte column.
fn place(sources: &Sources, span: super::super::super::source::Span) -> (u32, u32) {
    let source = sources.get(span.file);
    let line = source.line(span.start);
    (line, span.start.saturating_sub(source.line_range(line).start as u32) + 1)
}

/// What the configuration says of a kernel's launch.
fn given(inputs: &[KernelInputs], kernel: &str) -> Given {
    let fits = |entry: &&KernelInputs| {
        globset::Glob::new(&entry.name).is_ok_and(|glob| glob.compile_matcher().is_match(plain(kernel)))
    };
    let Some(entry) = inputs.iter().find(fits) else { return Given::default() };
    let extent = |extent: u64| u32::try_from(extent).unwrap_or(u32::MAX);
    Given {
        grid: entry.grid.map(|grid| grid.map(extent)),
        block: entry.block,
        shared_bytes: entry.shared_bytes,
        values: entry.args.iter().map(|(name, bits)| (name.clone(), f64::from_bits(*bits))).collect(),
        extents: entry.sizes.iter().cloned().collect(),
        sizes: None,
        most: None,
    }
}

/// A kernel's name without scopes and template arguments.
pub fn plain(kernel: &str) -> &str {
    let plain = kernel.split('<').next().unwrap_or(kernel);
    plain.rsplit("::").next().unwrap_or(plain)
}

fn planner<'a>(sources: &'a Sources, known: &'a Analysis) -> Planner<'a> {
    let macros = known.project.files.iter().flat_map(|file| &file.macros);
    let macros =
        macros.filter(|m| m.params.is_none() && !m.is_undef).map(|m| (m.name.as_str(), m.body.as_str()));
    Planner::new(sources, known.project.files.iter().map(|file| &file.unit), macros)
}

/// What the plans of one project's kernels share.
struct ProjectPlan<'p, 'a> {
    all: bool,
    planner: &'p Planner<'a>,
    host: &'p HostCode<'p>,
    sources: &'a Sources,
    /// The findings of the files that are checked, and whether each fails the run.
    here: &'p [(&'p Finding, bool)],
}

impl ProjectPlan<'_, '_> {
    /// Adds a kernel, unless no access of it is to be confirmed and no fix to be compared. `own` are all
    /// kernels of the project, of which the one that a finding names speaks for it.
    fn kernel(
        &self,
        kernel: &KernelFact,
        given: &Given,
        own: &[&KernelFact],
        kernels: &mut Vec<PlannedKernel>,
        findings: &mut Vec<PlannedFinding>,
    ) {
        let mut rules: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut failing = BTreeSet::new();
        let mut proposals: Vec<Proposal> = Vec::new();
        let mut saving: Vec<(&Finding, bool, usize)> = Vec::new();
        let is_own = |finding: &Finding| plain(&finding.kernel) == plain(&kernel.name);
        for (finding, fails) in self.here.iter().filter(|(finding, _)| is_own(finding)) {
            let at = kernel.accesses.iter().enumerate().filter(|(_, access)| is_at(access, finding));
            let at: Vec<usize> = at.map(|(index, _)| index).collect();
            for &index in &at {
                rules.entry(index).or_default().push(finding.rule.name.to_owned());
                if *fails {
                    failing.insert(index);
                }
            }
            let is_theirs = !at.is_empty() || is_about_code(finding) && speaks_for(kernel, finding, own);
            if let Some(fix) = finding.fix.as_ref().filter(|fix| is_theirs && fix.applies(true)) {
                let place = propose(&mut proposals, finding, &fix.title, &fix.edits, &at);
                if at.is_empty() {
                    saving.push((finding, *fails, place));
                }
            }
        }
        let wanted: Vec<usize> = if self.all {
            let numbered = |&i: &usize| kernel.accesses.get(i).is_some_and(|a| a.request.is_some());
            (0..kernel.accesses.len()).filter(numbered).collect()
        } else {
            rules.keys().copied().collect()
        };
        if wanted.is_empty() && saving.is_empty() {
            return;
        }
        let variant = |sizes: &Sizes, most: Option<f64>| {
            let given = Given { sizes: Some(*sizes), most, ..given.clone() };
            let job = self.planner.job(kernel, &wanted, &given, &[], self.host).ok()?;
            Some(Variant { args: job.args, predictions: job.predictions, rest: job.others })
        };
        let smaller = SIZES.iter().skip(1).flat_map(|sizes| [(sizes, None), (sizes, Some(MOST))]);
        let smaller = smaller.filter_map(|(sizes, most)| variant(sizes, most)).collect();
        let others = OTHER_SIZES.iter().filter_map(|sizes| variant(sizes, None)).collect();
        let mut notes = Vec::new();
        let job = self.planner.job(kernel, &wanted, given, &proposals, self.host).or_else(|why| {
            let alone = self.planner.job(kernel, &wanted, given, &[], self.host)?;
            notes.push(format!("fixes are not timed: {why}"));
            Ok(alone)
        });
        for (finding, fails, fix) in saving {
            let about = match job.as_ref().is_ok_and(|job| job.fixes.is_empty()) {
                true => About::Nothing(notes.join("; ")),
                false => About::Fix { kernel: kernels.len(), fix },
            };
            findings.push(finding_at(self.sources, finding, fails, about));
        }
        let places = wanted.iter().filter_map(|&index| {
            let access = kernel.accesses.get(index)?;
            let (line, column) = place(self.sources, access.span);
            Some((index, line, column, format!("{} {}", access.space, access.operation)))
        });
        kernels.push(PlannedKernel {
            smaller,
            others,
            kernel: kernel.name.clone(),
            path: self.sources.path(kernel.name_span.file).display().to_string(),
            line: self.sources.line(kernel.name_span),
            job,
            rules,
            failing,
            notes,
            places: places.collect(),
        });
    }
}

/// Whether an access is the one of a finding and has a number.
fn is_at(access: &AccessFact, finding: &Finding) -> bool {
    access.span == finding.span && access.request.is_some()
}

/// Whether a finding is about the code of a kernel and no access of it: it has no number.
fn is_about_code(finding: &Finding) -> bool {
    finding.numbers.sectors.is_none() && finding.numbers.wavefronts.is_none()
}

/// Of the instances and launches of one kernel the one that a finding names, else the first.
fn speaks_for(kernel: &KernelFact, finding: &Finding, own: &[&KernelFact]) -> bool {
    let around = || own.iter().filter(|other| other.span.contains(finding.span));
    let named = around().find(|other| other.name == finding.kernel);
    let first = named.or_else(|| around().find(|other| plain(&other.name) == plain(&finding.kernel)));
    first.is_some_and(|first| std::ptr::eq(*first, kernel))
}

/// Adds a fix, or the accesses to one that makes the same edits; its place.
fn propose(
    proposals: &mut Vec<Proposal>,
    finding: &Finding,
    title: &str,
    edits: &[super::super::super::source::Edit],
    accesses: &[usize],
) -> usize {
    if let Some(place) = proposals.iter().position(|known| known.edits == edits) {
        if let Some(known) = proposals.get_mut(place) {
            known.accesses.extend(accesses);
            known.saves_requests |= accesses.is_empty();
        }
        return place;
    }
    proposals.push(Proposal {
        title: title.to_owned(),
        rule: finding.rule.name.to_owned(),
        accesses: accesses.to_vec(),
        edits: edits.to_vec(),
        saves_requests: accesses.is_empty(),
    });
    proposals.len() - 1
}
