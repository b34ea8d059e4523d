//! `verify`: runs the kernels of findings on a GPU and says which findings it confirms.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::ir::facts::KernelFact;
use super::super::lint::check::{Analysis, KernelInputs, analyze};
use super::super::lint::finding::{Finding, Level};
use super::super::report;
use super::super::source::Sources;
use super::super::verify::job::{Arg, Job, Run};
use super::super::verify::plan::{Given, Planner, SIZES};
use super::super::verify::report::{KernelReport, Report};
use super::super::verify::{self, Launcher, compare};
use super::Engine;
use super::analysis::{self, Outcome};
use super::args::{VerifyArgs, VerifyFormat};
use super::failure::Failure;
use super::project::{self, Project};
use super::settings::Configs;
use super::shell::Shell;

/// A kernel with the accesses to confirm, or why there is no job for it.
struct Planned {
    kernel: String,
    path: String,
    line: u32,
    job: Result<Job, String>,
    /// Other arguments for the job, with smaller sizes, should it leave its buffers.
    smaller: Vec<Vec<Arg>>,
    /// The rules that found something, by index of the access.
    rules: BTreeMap<usize, Vec<String>>,
}

pub fn run(args: &VerifyArgs, engine: &Engine, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    if !args.dry_run {
        let availability = verify::availability();
        if !availability.can_run() {
            return Err(Failure::Usage(format!("this machine cannot run kernels\n{availability}")));
        }
    }
    let (planned, project, outcome) = plan(args, engine, shell)?;
    if args.dry_run {
        return show(&planned, shell);
    }
    let launcher = Launcher::this_executable().map_err(Failure::Output)?;
    let launcher =
        Launcher { timeout: Duration::from_secs_f64(args.timeout.clamp(0.1, 86_400.0)), ..launcher };
    keep(args, &planned)?;
    let runs = run_all(&planned, &launcher, args.jobs.max(1), shell);
    let report = collected(planned, runs);
    let text = match args.output_format {
        VerifyFormat::Text => report.text(),
        VerifyFormat::Json => report.json(),
        VerifyFormat::Sarif => report.sarif(&log(&project, &outcome, shell)),
    };
    shell.stdout.write_all(text.as_bytes())?;
    shell.stdout.flush()?;
    // Confirmed findings are still findings; with `--all` only a wrong number fails.
    let failed = report.summary.refuted > 0 || !args.all && report.summary.confirmed > 0;
    Ok(u8::from(failed))
}

/// The jobs of the project, in the order of files and kernels.
fn plan(
    args: &VerifyArgs,
    engine: &Engine,
    shell: &mut Shell<'_>,
) -> Result<(Vec<Planned>, Project, Outcome), Failure> {
    let mut configs = Configs::new(shell, &args.project, &args.selection, &engine.infos())?;
    let mut project = project::load(shell, &args.project, &mut configs)?;
    let mut planned = Vec::new();
    let outcome = if args.all { Outcome::default() } else { analysis::run(engine, &mut project) };
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
        for kernel in &known.kernels {
            let checked = input.checked.binary_search(&kernel.name_span.file).is_ok();
            let named = args.kernel.as_ref().is_none_or(|name| plain(&kernel.name) == plain(name));
            if checked && named {
                let given = given(&input.settings.inputs, &kernel.name);
                planned.extend(plan_kernel(
                    args,
                    &planner,
                    &input.sources,
                    kernel,
                    &outcome.findings,
                    &given,
                ));
            }
        }
        drop(planner);
        project.sources = input.sources;
    }
    Ok((planned, project, outcome))
}

/// The findings as `check` writes them in SARIF.
fn log(project: &Project, outcome: &Outcome, shell: &Shell<'_>) -> String {
    report::sarif::render(&report::Report {
        sources: &project.sources,
        findings: &outcome.findings,
        suppressed: &[],
        gaps: &outcome.gaps,
        rules: &outcome.rules,
        working_dir: &shell.cwd,
        root: &project.root,
        summary: report::Summary::default(),
        category: None,
        sarif_max_level: Level::Error,
    })
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
        size: None,
    }
}

fn plain(kernel: &str) -> &str {
    let plain = kernel.split('<').next().unwrap_or(kernel);
    plain.rsplit("::").next().unwrap_or(plain)
}

fn planner<'a>(sources: &'a Sources, known: &'a Analysis) -> Planner<'a> {
    let macros = known.project.files.iter().flat_map(|file| &file.macros);
    let macros =
        macros.filter(|m| m.params.is_none() && !m.is_undef).map(|m| (m.name.as_str(), m.body.as_str()));
    Planner::new(sources, known.project.files.iter().map(|file| &file.unit), macros)
}

/// `None` where no access of the kernel is to be confirmed.
fn plan_kernel(
    args: &VerifyArgs,
    planner: &Planner,
    sources: &Sources,
    kernel: &KernelFact,
    findings: &[Finding],
    given: &Given,
) -> Option<Planned> {
    let mut rules: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut edits = Vec::new();
    for finding in findings.iter().filter(|finding| plain(&finding.kernel) == plain(&kernel.name)) {
        let here = kernel.accesses.iter().enumerate().filter(|(_, access)| access.span == finding.span);
        for (index, _) in here {
            rules.entry(index).or_default().push(finding.rule.name.to_owned());
        }
        // Fixes of several findings may overlap; the first that fits is timed.
        if edits.is_empty()
            && let Some(fix) = &finding.fix
        {
            edits.clone_from(&fix.edits);
        }
    }
    let wanted: Vec<usize> = if args.all {
        (0..kernel.accesses.len())
            .filter(|&i| kernel.accesses.get(i).is_some_and(|a| a.request.is_some()))
            .collect()
    } else {
        rules.keys().copied().collect()
    };
    if wanted.is_empty() {
        return None;
    }
    let smaller = SIZES.iter().skip(1).filter_map(|&size| {
        let given = Given { size: Some(size), ..given.clone() };
        Some(planner.job(kernel, &wanted, &given, &[]).ok()?.args)
    });
    Some(Planned {
        smaller: smaller.collect(),
        kernel: kernel.name.clone(),
        path: sources.path(kernel.name_span.file).display().to_string(),
        line: sources.line(kernel.name_span),
        job: planner.job(kernel, &wanted, given, &edits),
        rules,
    })
}

/// `--dry-run`: the translation units and inputs that would be run.
fn show(planned: &[Planned], shell: &mut Shell<'_>) -> Result<u8, Failure> {
    for plan in planned {
        let text = match &plan.job {
            Ok(job) => verify::describe(job),
            Err(why) => format!("// kernel `{}` is not run: {why}\n", plan.kernel),
        };
        writeln!(shell.stdout, "// {}:{}\n{text}", plan.path, plan.line)?;
    }
    shell.stdout.flush()?;
    Ok(0)
}

/// `--keep`: writes each job's translation unit and JSON into a directory.
fn keep(args: &VerifyArgs, planned: &[Planned]) -> Result<(), Failure> {
    let Some(folder) = &args.keep else { return Ok(()) };
    std::fs::create_dir_all(folder).map_err(Failure::Output)?;
    for (index, plan) in planned.iter().enumerate() {
        let Ok(job) = &plan.job else { continue };
        let name = format!("{index:04}-{}", plain(&plan.kernel));
        std::fs::write(folder.join(format!("{name}.cu")), verify::describe(job)).map_err(Failure::Output)?;
        let json = serde_json::to_string(job).unwrap_or_default();
        std::fs::write(folder.join(format!("{name}.json")), json).map_err(Failure::Output)?;
    }
    Ok(())
}

/// Runs the jobs, `parallel` children at a time, with a line of progress where standard error is watched.
fn run_all(
    planned: &[Planned],
    launcher: &Launcher,
    parallel: usize,
    shell: &mut Shell<'_>,
) -> Vec<Option<Run>> {
    let jobs: Vec<(usize, &Planned)> =
        planned.iter().enumerate().filter(|(_, plan)| plan.job.is_ok()).collect();
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let runs: Mutex<Vec<Option<Run>>> = Mutex::new(planned.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..parallel {
            scope.spawn(|| {
                while let Some((at, plan)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = run_one(plan, launcher);
                    if let Ok(mut runs) = runs.lock()
                        && let Some(place) = runs.get_mut(*at)
                    {
                        *place = Some(run);
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while shell.terminal && done.load(Ordering::Relaxed) < jobs.len() {
            // Progress is a courtesy: that it cannot be written is no failure.
            let _ = write!(shell.stderr, "\r{} of {} kernels", done.load(Ordering::Relaxed), jobs.len());
            let _ = shell.stderr.flush();
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    if shell.terminal {
        let _ = write!(shell.stderr, "\r\u{1b}[K");
    }
    runs.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Runs a job, with smaller sizes while it leaves its buffers.
fn run_one(plan: &Planned, launcher: &Launcher) -> Run {
    let Ok(job) = &plan.job else { return Run::default() };
    let mut run = launcher.run(job);
    for args in &plan.smaller {
        if !run.left_its_buffers() || *args == job.args {
            break;
        }
        let seconds = run.seconds;
        run = launcher.run(&Job { args: args.clone(), ..job.clone() });
        run.seconds += seconds;
        run.notes.push("with smaller sizes, since it left its buffers with larger ones".to_owned());
    }
    run
}

fn collected(planned: Vec<Planned>, runs: Vec<Option<Run>>) -> Report {
    let device = runs.iter().flatten().find_map(|run| run.device.clone());
    let kernels = planned.into_iter().zip(runs).map(|(plan, run)| {
        let report = match (&plan.job, run) {
            (Ok(job), Some(run)) => {
                let verdicts = compare::compare(job, &run);
                let rules = |id| plan.rules.get(&(id as usize)).cloned().unwrap_or_default();
                KernelReport::of(job, &run, verdicts, &rules)
            }
            (Ok(_), None) => {
                KernelReport { failure: Some("not started".to_owned()), ..KernelReport::default() }
            }
            (Err(why), _) => KernelReport { failure: Some(why.clone()), ..KernelReport::default() },
        };
        KernelReport { kernel: plan.kernel, path: plan.path, line: plan.line, ..report }
    });
    Report::new(device, kernels.collect())
}
