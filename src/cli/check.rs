//! `cudalint check`.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::lint::baseline;
use super::super::lint::config::FailOn;
use super::super::lint::finding::{Finding, Level};
use super::super::lint::fix;
use super::super::lint::suppression;
use super::Engine;
use super::analysis::{self, Outcome, Timings};
use super::args::{CheckArgs, KnownArgs};
use super::edits::{self, Changes};
use super::failure::Failure;
use super::fixing;
use super::git::{self, Git};
use super::known::{Baseline, Known};
use super::output::{self, counted};
use super::progress::Progress;
use super::project::{self, Project};
use super::settings::Configs;
use super::shell::Shell;

pub fn run(args: &CheckArgs, engine: &Engine, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    let mut timings = Timings::start();
    let targets = output::targets(shell, &args.output)?;
    if let Some(threads) = args.project.threads {
        // Fails only where a pool exists already; then that one is used.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
    let mut configs = Configs::new(shell, &args.project, &args.selection, &engine.infos())?;
    let project = project::load(shell, &args.project, &mut configs)?;
    timings.step("read");
    let (mut project, before) = versions(shell, &args.known, project, &mut configs)?;
    if before.is_some() {
        timings.step("compare");
    }
    if args.output.show_files {
        for file in &project.checked {
            writeln!(shell.stdout, "{}", project.sources.path(*file).display())?;
        }
        shell.stdout.flush()?;
        return Ok(0);
    }
    let progress = Progress::start(shell, project.checked.len());
    let mut outcome = analysis::run(engine, &mut project);
    timings.step("check");
    drop(progress);
    let known = known(shell, &args.known, engine, &mut project, before, &mut configs)?;
    if let Some(reason) = &args.fix.add_allow {
        known.remove_from(&project, &mut outcome);
        return add_allow(shell, args, &project, &outcome, reason);
    }
    if args.fix.any() {
        let fixed = fixing::run(engine, &mut project, outcome, &known, args.fix.unsafe_fixes);
        timings.step("fix");
        report_refused(shell, &project, &fixed)?;
        if args.fix.diff {
            edits::show(shell, &project, &fixed.changes)?;
            return Ok(u8::from(!fixed.changes.is_empty() && !args.output.exit_zero));
        }
        edits::write(shell, &project, &fixed.changes)?;
        report_fixes(shell, args, &fixed)?;
        if args.fix.fix_only {
            return Ok(0);
        }
        outcome = fixed.outcome;
    }
    let everything = outcome.findings.clone();
    known.remove_from(&project, &mut outcome);
    // Standard output holds the fixed text where that came from standard input.
    if !(args.fix.any() && project.stdin.is_some()) {
        output::write(shell, &args.output, &targets, &project, &outcome, &mut timings)?;
    }
    report_stale(shell, args, &project, &known, &outcome, &everything)?;
    report_timings(shell, args, &timings)?;
    Ok(u8::from(fails(args, &project, &outcome) && !args.output.exit_zero))
}

/// Whether a finding is at the failing level, or more of them than are put up with.
fn fails(args: &CheckArgs, project: &Project, outcome: &Outcome) -> bool {
    let fails = |finding: &&Finding| {
        let config = project.config(finding.span.file).map_or(FailOn::Warn, |config| config.fail_on);
        args.output.fail_on.unwrap_or(config).fails(finding.level)
    };
    let (errors, others): (Vec<&Finding>, Vec<&Finding>) =
        outcome.findings.iter().filter(fails).partition(|finding| finding.level == Level::Error);
    !errors.is_empty() || others.len() > args.output.max_warnings.unwrap_or(0)
}

/// The version to check and, where only new findings count, the one before it; of these what the change can reach.
fn versions(
    shell: &mut Shell<'_>,
    args: &KnownArgs,
    project: Project,
    configs: &mut Configs,
) -> Result<(Project, Option<Project>), Failure> {
    if args.staged {
        let (staged, last) = Git::open(&shell.cwd)?.staged()?;
        let before = project.at(&last, configs)?;
        let (staged, before) = project.at(&staged, configs)?.differing(before);
        return Ok((staged, Some(before)));
    }
    let overlay = match (&args.new_from, &args.diff_file) {
        (Some(rev), _) => Git::open(&shell.cwd)?.since(rev)?,
        (None, Some(file)) => git::before_diff(shell, &project, file)?,
        (None, None) => return Ok((project, None)),
    };
    let before = project.at(&overlay, configs)?;
    let (project, before) = project.differing(before);
    Ok((project, Some(before)))
}

/// What need not be reported: the baseline's findings and those of the version before.
fn known(
    shell: &Shell<'_>,
    args: &KnownArgs,
    engine: &Engine,
    project: &mut Project,
    before: Option<Project>,
    configs: &mut Configs,
) -> Result<Known, Failure> {
    let mut known = Known::default();
    if let Some(mut before) = before {
        let outcome = analysis::run(engine, &mut before);
        let name = |finding: &Finding| before.name(&before.root, finding.span.file);
        known.before = Some(baseline::entries(&before.sources, &outcome.findings, name));
    }
    let configured = match configs.of(&project.root)?.baseline.clone() {
        Some((file, missing)) if !file.is_file() && args.baseline.is_none() && !args.no_baseline => {
            return Err(missing.into());
        }
        configured => configured.map(|(file, _)| file),
    };
    let usual = Some(project.root.join(baseline::FILE_NAME)).filter(|file| file.is_file());
    let file = match &args.baseline {
        Some(file) => Some(shell.absolute(file)),
        None if args.no_baseline => None,
        None => configured.or(usual),
    };
    known.baseline = file.map(|file| Baseline::read(shell, &file)).transpose()?;
    Ok(known)
}

/// `--add-allow`: comments instead of a report.
fn add_allow(
    shell: &mut Shell<'_>,
    args: &CheckArgs,
    project: &Project,
    outcome: &Outcome,
    reason: &str,
) -> Result<u8, Failure> {
    let edits = suppression::insertions(&project.sources, &outcome.findings, reason);
    let lossy: BTreeSet<&Path> = outcome
        .findings
        .iter()
        .filter(|finding| project.sources.get(finding.span.file).lossy)
        .map(|finding| project.sources.path(finding.span.file))
        .collect();
    for path in lossy {
        writeln!(shell.stderr, "warning: {}: not changed, it is not UTF-8", path.display())?;
    }
    let mut changes = Changes::new();
    for file_edits in edits.chunk_by(|a, b| a.span.file == b.span.file) {
        let Some(first) = file_edits.first() else { continue };
        let old = &project.sources.get(first.span.file).text;
        if let Some(new) = fix::apply(old, file_edits) {
            changes.insert(first.span.file, (old.clone(), new));
        }
    }
    if args.fix.diff {
        edits::show(shell, project, &changes)?;
        return Ok(0);
    }
    edits::write(shell, project, &changes)?;
    if !args.output.quiet {
        let (comments, files) = (counted(edits.len(), "allow comment"), counted(changes.len(), "file"));
        writeln!(shell.stderr, "added {comments} to {files}")?;
    }
    Ok(0)
}

/// What was proposed and not done, with the reason.
fn report_refused(shell: &mut Shell<'_>, project: &Project, fixed: &fixing::Fixed) -> Result<(), Failure> {
    for finding in &fixed.refused {
        let (path, line) =
            (project.sources.path(finding.span.file).display(), project.sources.line(finding.span));
        let title = finding.fix.as_ref().map_or("", |fix| fix.title.as_str());
        writeln!(
            shell.stderr,
            "warning: {path}:{line}: not fixed, it would make something else worse: {title}"
        )?;
    }
    Ok(())
}

fn report_fixes(shell: &mut Shell<'_>, args: &CheckArgs, fixed: &fixing::Fixed) -> Result<(), Failure> {
    if fixed.applied > 0 && !args.output.quiet {
        let (fixes, files) = (counted(fixed.applied, "finding"), counted(fixed.changes.len(), "file"));
        writeln!(shell.stderr, "fixed {fixes} in {files}")?;
    }
    Ok(())
}

fn report_stale(
    shell: &mut Shell<'_>,
    args: &CheckArgs,
    project: &Project,
    known: &Known,
    outcome: &Outcome,
    everything: &[Finding],
) -> Result<(), Failure> {
    let Some(accepted) = known.baseline.as_ref().filter(|_| !args.output.quiet) else { return Ok(()) };
    let stale = accepted.stale(project, outcome, everything).len();
    if stale > 0 {
        let file = shell.display(&accepted.file);
        let (entries, verb) = (counted(stale, "accepted finding"), if stale == 1 { "is" } else { "are" });
        writeln!(
            shell.stderr,
            "{}: {entries} {verb} gone; `cudalint baseline prune` drops them",
            file.display()
        )?;
    }
    Ok(())
}

fn report_timings(shell: &mut Shell<'_>, args: &CheckArgs, timings: &Timings) -> Result<(), Failure> {
    if args.output.timings {
        for (step, time) in &timings.steps {
            writeln!(shell.stderr, "{step:>8} {:9.3} ms", time.as_secs_f64() * 1e3)?;
        }
    }
    Ok(())
}
