//! Writes what was found, in every format asked for.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::super::lint::finding::Level;
use super::args::OutputArgs;
use super::check::{Outcome, Timings};
use super::failure::Failure;
use super::project::Project;
use super::shell::Shell;

/// A format, to standard output or to a file.
struct Target {
    format: String,
    file: Option<PathBuf>,
}

pub fn write(
    shell: &mut Shell<'_>,
    args: &OutputArgs,
    project: &Project,
    outcome: &Outcome,
    timings: &mut Timings,
) -> Result<(), Failure> {
    let targets = targets(shell, args)?;
    for target in &targets {
        let text = render(&target.format, project, outcome);
        match &target.file {
            Some(file) => std::fs::write(file, text)
                .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", file.display())))?,
            None => shell.stdout.write_all(text.as_bytes())?,
        }
    }
    if args.statistics {
        let text = statistics(outcome);
        shell.stdout.write_all(text.as_bytes())?;
    }
    timings.step("report");
    let people =
        targets.iter().all(|target| matches!(target.format.as_str(), "full" | "concise" | "grouped"));
    if people && !args.quiet {
        summary(shell, outcome, timings)?;
    }
    shell.stdout.flush()?;
    Ok(())
}

fn targets(shell: &Shell<'_>, args: &OutputArgs) -> Result<Vec<Target>, Failure> {
    if args.output_format.is_empty() {
        let format = if args.statistics { return Ok(Vec::new()) } else { "full".to_owned() };
        return Ok(vec![Target { format, file: None }]);
    }
    let read = |text: &String| match text.split_once('=') {
        Some((format, file)) => {
            Target { format: format.to_owned(), file: Some(shell.absolute(std::path::Path::new(file))) }
        }
        None => Target { format: text.clone(), file: None },
    };
    Ok(args.output_format.iter().map(read).collect())
}

fn render(_format: &str, project: &Project, outcome: &Outcome) -> String {
    let mut text = String::new();
    for finding in &outcome.findings {
        let file = project.sources.get(finding.span.file);
        let at = file.position(finding.span.start);
        let path = file.path.display();
        let (rule, level, message) = (finding.rule.name, finding.level, &finding.message);
        let _ = writeln!(text, "{path}:{}:{}: {level}[{rule}] {message}", at.line, at.column);
    }
    text
}

fn statistics(outcome: &Outcome) -> String {
    let mut text = String::new();
    let mut counts: Vec<(usize, &str, &str)> = outcome
        .rules
        .iter()
        .map(|rule| {
            let count = outcome.findings.iter().filter(|finding| finding.rule.name == rule.name).count();
            (count, rule.name, rule.summary)
        })
        .filter(|(count, ..)| *count > 0)
        .collect();
    counts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let width = counts.first().map_or(0, |(count, ..)| count.to_string().len());
    for (count, rule, summary) in counts {
        let _ = writeln!(text, "{count:>width$}  {rule}  {summary}");
    }
    text
}

/// One line to standard error; nothing where nothing was found and nobody looks.
fn summary(shell: &mut Shell<'_>, outcome: &Outcome, timings: &Timings) -> Result<(), Failure> {
    let levels = [(Level::Error, "error"), (Level::Warning, "warning"), (Level::Note, "note")];
    let parts: Vec<String> = levels
        .iter()
        .map(|(level, word)| {
            (outcome.findings.iter().filter(|finding| finding.level == *level).count(), word)
        })
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| counted(count, word))
        .collect();
    if parts.is_empty() && !shell.terminal {
        return Ok(());
    }
    let found = if parts.is_empty() { "no findings".to_owned() } else { parts.join(", ") };
    let (files, kernels) = (counted(outcome.files, "file"), counted(outcome.kernels, "kernel"));
    let time = timings.total().as_secs_f64();
    writeln!(shell.stderr, "{found} in {files}, {kernels} ({time:.2} s)")?;
    Ok(())
}

pub fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
