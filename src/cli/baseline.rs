//! `cudalint baseline`: accepts today's findings, and keeps the file of them small.

use std::fmt::Write as _;

use super::super::lint::baseline::{self, Entry};
use super::Engine;
use super::analysis::{self, Outcome};
use super::args::{BaselineAction, BaselineArgs};
use super::failure::Failure;
use super::known::Baseline;
use super::output::counted;
use super::project::{self, Project};
use super::settings::Configs;
use super::shell::Shell;

pub fn run(action: &BaselineAction, engine: &Engine, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    let (BaselineAction::Create(args)
    | BaselineAction::Update(args)
    | BaselineAction::Prune(args)
    | BaselineAction::Show(args)) = action;
    let mut configs = Configs::new(shell, &args.project, &args.selection, &engine.infos())?;
    let mut project = project::load(shell, &args.project, &mut configs)?;
    let outcome = analysis::run(engine, &mut project);
    let file = match &args.baseline {
        Some(file) => shell.absolute(file),
        None => configs
            .of(&project.root)?
            .baseline
            .clone()
            .map(|(file, _)| file)
            .unwrap_or_else(|| project.root.join(baseline::FILE_NAME)),
    };
    match action {
        BaselineAction::Create(_) if file.exists() => {
            let shown = shell.display(&file);
            Err(Failure::Usage(format!("{} exists already; `baseline update` changes it", shown.display())))
        }
        BaselineAction::Create(_) => {
            update(shell, &project, &outcome, Baseline { file, entries: Vec::new() })
        }
        BaselineAction::Update(_) => update(shell, &project, &outcome, Baseline::read(shell, &file)?),
        BaselineAction::Prune(_) => prune(shell, args, &project, &outcome, Baseline::read(shell, &file)?),
        BaselineAction::Show(_) => show(shell, &project, &outcome, &Baseline::read(shell, &file)?),
    }
}

/// Accepts all findings; entries of files that were not looked at stay.
fn update(shell: &mut Shell<'_>, project: &Project, outcome: &Outcome, old: Baseline) -> Result<u8, Failure> {
    let judged = old.judged(project);
    let ran = |entry: &Entry| outcome.rules.iter().any(|rule| rule.name == entry.rule);
    let mut entries = old.entries_of(project, &outcome.findings);
    entries.extend(old.entries.iter().filter(|entry| !(judged(entry) && ran(entry))).cloned());
    write(shell, &old, entries)
}

fn prune(
    shell: &mut Shell<'_>,
    args: &BaselineArgs,
    project: &Project,
    outcome: &Outcome,
    old: Baseline,
) -> Result<u8, Failure> {
    let mut stale: Vec<&Entry> = old.stale(project, outcome, &outcome.findings);
    if args.check {
        for entry in &stale {
            writeln!(shell.stdout, "{}", line(entry))?;
        }
        shell.stdout.flush()?;
        return Ok(u8::from(!stale.is_empty()));
    }
    let gone = stale.len();
    let mut entries = old.entries.clone();
    entries.retain(|entry| match stale.iter().position(|stale| *stale == entry) {
        Some(at) => {
            stale.remove(at);
            false
        }
        None => true,
    });
    if gone == 0 {
        writeln!(shell.stderr, "nothing to drop")?;
        return Ok(0);
    }
    write(shell, &old, entries)
}

fn show(shell: &mut Shell<'_>, project: &Project, outcome: &Outcome, old: &Baseline) -> Result<u8, Failure> {
    let mut stale = old.stale(project, outcome, &outcome.findings);
    let mut text = String::new();
    for entry in &old.entries {
        let gone = stale.iter().position(|stale| *stale == entry).map(|at| stale.remove(at)).is_some();
        let _ = writeln!(text, "{}{}", line(entry), if gone { "  (gone)" } else { "" });
    }
    shell.stdout.write_all(text.as_bytes())?;
    shell.stdout.flush()?;
    Ok(0)
}

fn line(entry: &Entry) -> String {
    let kernel = if entry.kernel.is_empty() { String::new() } else { format!(" in `{}`", entry.kernel) };
    format!("{}: {}: `{}`{kernel}", entry.path, entry.rule, entry.access)
}

fn write(shell: &mut Shell<'_>, old: &Baseline, entries: Vec<Entry>) -> Result<u8, Failure> {
    let (before, after) = (old.entries.len(), entries.len());
    let shown = shell.display(&old.file);
    std::fs::write(&old.file, baseline::render(entries))
        .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", shown.display())))?;
    let was = if before == 0 { String::new() } else { format!(" (was {before})") };
    writeln!(shell.stderr, "{}: {} accepted{was}", shown.display(), counted(after, "finding"))?;
    Ok(0)
}
