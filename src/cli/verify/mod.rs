//! `verify`: runs the kernels of findings on a GPU and says which findings it confirms.

mod planning;
mod running;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::report;
use super::super::verify::job::{Arch, Job, Run, Status, Verification};
use super::super::verify::report::{FindingReport, KernelReport, Report};
use super::super::verify::{self, Availability, Launcher, compare};
use super::Engine;
use super::analysis::Outcome;
use super::args::{ArchName, VerifyArgs};
use super::failure::Failure;
use super::project::Project;
use super::shell::Shell;
use planning::{About, Plan, PlannedKernel, plain};
use running::Ran;

/// A report's form, to standard output or to a file.
struct Target {
    format: Format,
    /// Absolute.
    file: Option<PathBuf>,
}

#[derive(Clone, Copy)]
enum Format {
    Text,
    Json,
    Sarif,
}

pub fn run(args: &VerifyArgs, engine: &Engine, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    let targets = targets(args, shell)?;
    let arch = match args.arch {
        ArchName::Auto => None,
        ArchName::Named(arch) => Some(arch),
    };
    let availability = verify::availability();
    check(args, arch, &availability)?;
    let plan = planning::plan(args, engine, shell, &availability)?;
    let launcher = Launcher::this_executable().map_err(Failure::Output)?;
    let launcher = launcher.limited(Duration::from_secs_f64(args.timeout.clamp(0.1, 86_400.0)));
    keep(args, &plan)?;
    if args.dry_run {
        return show(args, arch, &plan, &launcher, shell);
    }
    let (kernels, windows) = running::run(&plan, &launcher, arch, args.jobs.max(1), shell);
    let of_kernels = kernels.iter().flatten().map(|ran| &ran.run);
    let device = of_kernels.chain(windows.iter().flatten()).find_map(|run| run.device.clone());
    let findings = finding_reports(&plan, &kernels, &windows);
    let failed = fails(&plan, &findings);
    let reports: Vec<KernelReport> =
        plan.kernels.iter().zip(&kernels).map(|(kernel, ran)| kernel_report(kernel, ran.as_ref())).collect();
    let failed =
        failed || plan.kernels.iter().zip(&reports).any(|(kernel, report)| kernel_fails(kernel, report));
    let report = Report::new(device, reports, findings);
    for target in &targets {
        let text = match target.format {
            Format::Text => report.text(),
            Format::Json => report.json(),
            Format::Sarif => report.sarif(&log(&plan.project, &plan.outcome, shell)),
        };
        match &target.file {
            Some(file) => std::fs::write(file, text)
                .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", file.display())))?,
            None => shell.stdout.write_all(text.as_bytes())?,
        }
    }
    shell.stdout.flush()?;
    Ok(u8::from(failed))
}

fn targets(args: &VerifyArgs, shell: &Shell<'_>) -> Result<Vec<Target>, Failure> {
    if args.output_format.is_empty() {
        return Ok(vec![Target { format: Format::Text, file: None }]);
    }
    let read = |text: &String| {
        let (format, file) = text.split_once('=').map_or((text.as_str(), None), |(f, file)| (f, Some(file)));
        let format = match format {
            "text" => Format::Text,
            "json" => Format::Json,
            "sarif" => Format::Sarif,
            _ => {
                let why = format!("--output-format: `{format}` is none of text, json, sarif");
                return Err(Failure::Usage(why));
            }
        };
        Ok(Target { format, file: file.map(|file| shell.absolute(Path::new(file))) })
    };
    args.output_format.iter().map(read).collect()
}

/// Whether what is asked for can be done here at all.
fn check(args: &VerifyArgs, arch: Option<Arch>, availability: &Availability) -> Result<(), Failure> {
    let here = |what: &str| Failure::Usage(format!("this machine cannot {what}\n{availability}"));
    if !args.dry_run && !availability.can_run() {
        return Err(here("run kernels"));
    }
    let Some(arch) = arch else { return Ok(()) };
    if !availability.can_compile() {
        return Err(here("compile kernels"));
    }
    let known = verify::nvrtc_architectures();
    if let (Ok(version), false) = (&availability.nvrtc, known.is_empty() || known.contains(&arch.number)) {
        let known: Vec<String> = known.iter().map(|arch| format!("sm_{arch}")).collect();
        let known = known.join(", ");
        return Err(Failure::Usage(format!("--arch {arch}: NVRTC {version} compiles for {known}")));
    }
    match &availability.device {
        Ok(device) if !args.dry_run && !arch.runs_on(device.arch) => Err(Failure::Usage(format!(
            "--arch {arch}: the device, {}, is sm_{} and cannot run it",
            device.name, device.arch
        ))),
        Ok(_) | Err(_) => Ok(()),
    }
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
        sarif_max_level: super::super::lint::finding::Level::Error,
    })
}

/// `--dry-run`: the translation units and inputs that would be run, compiled where an architecture is named.
fn show(
    args: &VerifyArgs,
    arch: Option<Arch>,
    plan: &Plan,
    launcher: &Launcher,
    shell: &mut Shell<'_>,
) -> Result<u8, Failure> {
    let compiled = arch.map(|arch| running::compile(plan, launcher, arch, args.jobs.max(1), shell));
    for (at, kernel) in plan.kernels.iter().enumerate() {
        writeln!(shell.stdout, "// {}:{}", kernel.path, kernel.line)?;
        if let (Some(arch), Some(Some(run))) = (arch, compiled.as_ref().and_then(|runs| runs.get(at))) {
            match (&run.failure, &run.compiler) {
                (None, Some(compiler)) => writeln!(shell.stdout, "// compiles for {arch} with {compiler}")?,
                (failure, _) => {
                    let why = failure.as_deref().unwrap_or("no compiler answered");
                    writeln!(shell.stdout, "// {arch}: {}", why.lines().next().unwrap_or_default())?;
                }
            }
        }
        let text = match &kernel.job {
            Ok(job) => verify::describe(job),
            Err(why) => format!("// kernel `{}` is not run: {why}\n", kernel.kernel),
        };
        writeln!(shell.stdout, "{text}")?;
    }
    for finding in &plan.findings {
        let what = match &finding.about {
            About::Fix { .. } => continue,
            About::Window(window) => {
                let (bytes, ratio, aside) = (window.bytes, window.hit_ratio, window.set_aside);
                format!(
                    "a window of {bytes} B, hit ratio {ratio}, {aside} B set aside: shown with kernels of cudalint's own"
                )
            }
            About::Nothing(why) => format!("not run: {why}"),
        };
        writeln!(shell.stdout, "// {}:{} ({}): {what}", finding.path, finding.line, finding.rule)?;
    }
    shell.stdout.flush()?;
    Ok(0)
}

/// `--keep`: writes each job's translation unit and JSON into a directory.
fn keep(args: &VerifyArgs, plan: &Plan) -> Result<(), Failure> {
    let Some(folder) = &args.keep else { return Ok(()) };
    std::fs::create_dir_all(folder).map_err(Failure::Output)?;
    for (index, kernel) in plan.kernels.iter().enumerate() {
        let Ok(job) = &kernel.job else { continue };
        let name = format!("{index:04}-{}", plain(&kernel.kernel));
        std::fs::write(folder.join(format!("{name}.cu")), verify::describe(job)).map_err(Failure::Output)?;
        for (at, fix) in job.fixes.iter().enumerate() {
            let fixed = Job { source: fix.source.clone(), ..job.clone() };
            let text = format!("// {}\n{}", fix.title, verify::describe(&fixed));
            std::fs::write(folder.join(format!("{name}-fix{at}.cu")), text).map_err(Failure::Output)?;
        }
        let json = serde_json::to_string(job).unwrap_or_default();
        std::fs::write(folder.join(format!("{name}.json")), json).map_err(Failure::Output)?;
    }
    Ok(())
}

fn kernel_report(kernel: &PlannedKernel, ran: Option<&Ran>) -> KernelReport {
    let report = match (&kernel.job, ran) {
        (Ok(job), Some(ran)) => {
            let rules = |id| kernel.rules.get(&(id as usize)).cloned().unwrap_or_default();
            KernelReport::of(job, &ran.run, ran.verdicts.clone(), &rules)
        }
        (Ok(job), None) => KernelReport::of(
            job,
            &Run { failure: Some("not started".to_owned()), ..Run::default() },
            compare::not_run(job, "not started"),
            &|_| Vec::new(),
        ),
        (Err(why), _) => KernelReport {
            failure: Some(why.clone()),
            accesses: kernel.not_run(why),
            ..KernelReport::default()
        },
    };
    let notes = kernel.notes.iter().cloned().chain(report.notes).collect();
    KernelReport {
        kernel: kernel.kernel.clone(),
        path: kernel.path.clone(),
        line: kernel.line,
        notes,
        ..report
    }
}

/// Verdicts on findings that are about no access.
fn finding_reports(plan: &Plan, kernels: &[Option<Ran>], windows: &[Option<Run>]) -> Vec<FindingReport> {
    let mut shown = windows.iter();
    let reports = plan.findings.iter().map(|finding| {
        let verification = match &finding.about {
            About::Fix { kernel, fix } => {
                let planned = plan.kernels.get(*kernel).map(|kernel| &kernel.job);
                match (planned, kernels.get(*kernel)) {
                    (Some(Ok(_)), Some(Some(ran))) => compare::saved_requests(&ran.run, *fix),
                    (Some(Err(why)), _) => Verification::not_run(why.clone()),
                    _ => Verification::not_run("not started"),
                }
            }
            About::Window(window) => match shown.next() {
                Some(Some(run)) => compare::left_persisting(*window, run),
                _ => Verification::not_run("not started"),
            },
            About::Nothing(why) => Verification::not_run(why.clone()),
        };
        FindingReport {
            rule: finding.rule.to_owned(),
            path: finding.path.clone(),
            line: finding.line,
            column: finding.column,
            verification,
        }
    });
    reports.collect()
}

fn fails(plan: &Plan, findings: &[FindingReport]) -> bool {
    plan.findings.iter().zip(findings).any(|(finding, report)| match report.verification.status {
        Status::Refuted => true,
        Status::Confirmed => finding.fails,
        Status::NotRun => false,
    })
}

/// A wrong number fails; a confirmed finding does where it has the failing level.
fn kernel_fails(kernel: &PlannedKernel, report: &KernelReport) -> bool {
    let failing: &BTreeSet<usize> = &kernel.failing;
    report.accesses.iter().any(|access| match access.verification.status {
        Status::Refuted => true,
        Status::Confirmed => failing.contains(&(access.verification.id as usize)),
        Status::NotRun => false,
    })
}
