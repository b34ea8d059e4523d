//! The command line: files are read and written here.
//!
//! ```text
//! arguments, cudalint.toml -settings-> Config      paths -walk, project-> Sources
//!     Config, Sources -analysis-> Outcome -known, fixing-> Outcome -output-> reader
//! ```

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use super::lint::check::{Checked, Input};
use super::lint::finding::RuleInfo;
use super::lint::rule::Rule;
use super::lint::selection::UNUSED_ALLOW;
use super::report::inspect::InspectFile;

pub mod args;

pub mod shell;

pub mod failure;

mod walk;

mod settings;

mod relevance;

mod makefile;

mod project;

mod analysis;

mod patch;

mod git;

mod known;

mod edits;

mod fixing;

mod output;

mod progress;

mod check;

mod baseline;

mod listing;

mod inspect;

mod config;

mod shellfiles;

#[cfg(feature = "verify")]
mod verify;

use args::{Cli, Command};
use failure::Failure;
use shell::Shell;

/// The analysis that the commands drive.
pub struct Engine {
    pub rules: &'static [&'static dyn Rule],
    pub check: fn(&Input, &[&'static dyn Rule]) -> Checked,
    pub inspect: fn(&Input) -> Vec<InspectFile>,
}

impl Engine {
    pub fn real() -> Engine {
        Engine { rules: super::rules::ALL, check: super::lint::check::check, inspect: inspect::files }
    }

    /// Every rule that can be named, the one about comments included.
    pub fn infos(&self) -> Vec<&'static RuleInfo> {
        self.rules.iter().map(|rule| rule.info()).chain([&UNUSED_ALLOW]).collect()
    }
}

/// The whole program.
pub fn main() -> ExitCode {
    let run = |shell: &mut Shell<'_>| run(std::env::args_os(), &Engine::real(), shell);
    match shell::with_process(run) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: no working directory: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs one command line; returns the exit status.
pub fn run(args: impl IntoIterator<Item = OsString>, engine: &Engine, shell: &mut Shell<'_>) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, shell),
    };
    match dispatch(cli, engine, shell) {
        Ok(code) => code,
        Err(Failure::BrokenPipe) => 0,
        Err(failure) => {
            let _ = shell.stdout.flush();
            let _ = shell.stderr.write_all(failure::render(&failure).as_bytes());
            2
        }
    }
}

/// Help and version go to standard output and are no failure.
fn usage(error: &clap::Error, shell: &mut Shell<'_>) -> u8 {
    let text = error.render();
    if error.use_stderr() {
        let _ = write!(shell.stderr, "{text}");
        return 2;
    }
    let _ = write!(shell.stdout, "{text}");
    let _ = shell.stdout.flush();
    0
}

fn dispatch(cli: Cli, engine: &Engine, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    match cli.command {
        None => check::run(&cli.check, engine, shell),
        Some(Command::Check(args)) => check::run(&args, engine, shell),
        Some(Command::Rules(args)) => listing::rules(&args, engine, shell),
        #[cfg(feature = "verify")]
        Some(Command::Verify(args)) => verify::run(&args, engine, shell),
        Some(Command::Inspect(args)) => inspect::run(&args, engine, shell),
        Some(Command::Survey(args)) => inspect::survey(&args, engine, shell),
        Some(Command::Explain { rule }) => listing::explain(&rule, engine, shell),
        Some(Command::Config { action }) => config::run(&action, engine, shell),
        Some(Command::Init) => config::init(shell, engine),
        Some(Command::Completions { shell: which }) => shellfiles::completions(which, shell),
        Some(Command::Man { command }) => shellfiles::manual(command.as_deref(), shell),
        Some(Command::Baseline { action }) => baseline::run(&action, engine, shell),
    }
}
