//! Writes what was found, in every format asked for.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::super::lint::finding::Level;
use super::super::report::text::{Drawing, Style};
use super::super::report::{self, Format, Report, Summary, concise};
use super::analysis::{Outcome, Timings};
use super::args::{OutputArgs, SarifLevel};
use super::failure::Failure;
use super::project::Project;
use super::shell::Shell;

/// A format, to standard output or to a file.
#[derive(Debug)]
pub struct Target {
    format: Format,
    /// Absolute.
    file: Option<PathBuf>,
}

/// Reads `--output-format`, before anything else is done.
pub fn targets(shell: &Shell<'_>, args: &OutputArgs) -> Result<Vec<Target>, Failure> {
    if args.output_format.is_empty() {
        let full = Target { format: Format::Full, file: None };
        return Ok(if args.statistics { Vec::new() } else { vec![full] });
    }
    let read = |text: &String| {
        let (format, file) = text.split_once('=').map_or((text.as_str(), None), |(f, file)| (f, Some(file)));
        let format = format.parse().map_err(|error| Failure::Usage(format!("--output-format: {error}")))?;
        Ok(Target { format, file: file.map(|file| shell.absolute(Path::new(file))) })
    };
    args.output_format.iter().map(read).collect()
}

pub fn write(
    shell: &mut Shell<'_>,
    args: &OutputArgs,
    targets: &[Target],
    project: &Project,
    outcome: &Outcome,
    timings: &mut Timings,
) -> Result<(), Failure> {
    let cwd = shell.cwd.clone();
    let mut report = report(&cwd, args, project, outcome);
    for target in targets {
        match &target.file {
            Some(file) => {
                let text = report::render(&report, target.format, &Style::PLAIN);
                std::fs::write(file, text)
                    .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", file.display())))?;
            }
            None => {
                let text = report::render(&report, target.format, &style(shell, args));
                shell.stdout.write_all(text.as_bytes())?;
            }
        }
    }
    if targets.iter().any(|target| target.format == Format::Github) {
        job_summary(shell, &report)?;
    }
    if args.statistics {
        shell.stdout.write_all(statistics(outcome).as_bytes())?;
    }
    timings.step("report");
    report.summary.elapsed = Some(timings.total());
    report.suppressed = &outcome.suppressed;
    if !args.quiet {
        unreadable(shell, project)?;
        let for_people = |target: &Target| {
            target.file.is_none() && matches!(target.format, Format::Full | Format::Concise | Format::Grouped)
        };
        // Silence is the good news of a hook or a pipeline.
        if shell.terminal || (!outcome.findings.is_empty() && targets.iter().any(for_people)) {
            writeln!(shell.stderr, "{}", concise::summary(&report))?;
        }
    }
    shell.stdout.flush()?;
    Ok(())
}

/// In a GitHub job, the table that the job's page shows.
fn job_summary(shell: &Shell<'_>, report: &Report<'_>) -> Result<(), Failure> {
    let Some(file) = (shell.variable)("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty()) else {
        return Ok(());
    };
    let text = report::github::step_summary(report);
    let append =
        || std::fs::OpenOptions::new().append(true).create(true).open(&file)?.write_all(text.as_bytes());
    append().map_err(|error| Failure::Usage(format!("cannot write {}: {error}", Path::new(&file).display())))
}

fn report<'a>(cwd: &'a Path, args: &'a OutputArgs, project: &'a Project, outcome: &'a Outcome) -> Report<'a> {
    Report {
        sources: &project.sources,
        findings: &outcome.findings,
        suppressed: if args.show_suppressed { &outcome.suppressed } else { &[] },
        gaps: &outcome.gaps,
        rules: &outcome.rules,
        working_dir: cwd,
        root: &project.root,
        summary: Summary {
            files: outcome.files,
            kernels: outcome.kernels,
            accesses: outcome.accesses,
            baselined: outcome.known,
            elapsed: None,
        },
        category: args.sarif_category.as_deref(),
        sarif_max_level: match args.sarif_max_level {
            Some(SarifLevel::Note) => Level::Note,
            Some(SarifLevel::Warning) => Level::Warning,
            Some(SarifLevel::Error) | None => Level::Error,
        },
    }
}

/// How reports look on standard output.
pub fn style(shell: &Shell<'_>, args: &OutputArgs) -> Style {
    if !shell.terminal {
        return Style { colour: shell.color(args.color.unwrap_or_default()), ..Style::PLAIN };
    }
    let columns = (shell.variable)("COLUMNS").and_then(|text| text.to_str()?.parse().ok());
    let colour = shell.color(args.color.unwrap_or_default());
    Style { drawing: Drawing::Unicode, colour, links: colour, width: columns.unwrap_or(100) }
}

/// Files that could not be read, and directories without any.
fn unreadable(shell: &mut Shell<'_>, project: &Project) -> Result<(), Failure> {
    for directory in &project.empty {
        writeln!(shell.stderr, "warning: {}: no CUDA files here", directory.display())?;
    }
    for gap in &project.gaps {
        writeln!(shell.stderr, "warning: {}: {}", project.sources.path(gap.span.file).display(), gap.reason)?;
    }
    Ok(())
}

fn statistics(outcome: &Outcome) -> String {
    let mut text = String::new();
    let count = |name: &str| outcome.findings.iter().filter(|finding| finding.rule.name == name).count();
    let mut counts: Vec<(usize, &str, &str)> =
        outcome.rules.iter().map(|rule| (count(rule.name), rule.name, rule.summary)).collect();
    counts.retain(|(count, ..)| *count > 0);
    counts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let width = counts.first().map_or(0, |(count, ..)| count.to_string().len());
    for (count, rule, summary) in counts {
        let _ = writeln!(text, "{count:>width$}  {rule}  {summary}");
    }
    text
}

/// `1 file`, `2 files`.
pub fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
