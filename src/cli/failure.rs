//! Why a run ends with exit status 2, or quietly.

use std::fmt::Write as _;
use std::io;

use super::super::lint::config::{ConfigError, ErrorPlace};

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Config(#[from] Box<ConfigError>),
    #[error("cannot write: {0}")]
    Output(io::Error),
    /// The reader of standard output went away; not our failure.
    #[error("the reader went away")]
    BrokenPipe,
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::Config(Box::new(error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::Output(error),
        }
    }
}

/// The error as people read it: message, place, the line, the hint.
pub fn render(failure: &Failure) -> String {
    let mut text = format!("error: {failure}\n");
    if let Failure::Config(error) = failure {
        if let Some(at) = &error.at {
            excerpt(&mut text, at);
        }
        if let Some(help) = &error.help {
            let _ = writeln!(text, "  = help: {help}");
        }
    }
    text
}

fn excerpt(out: &mut String, at: &ErrorPlace) {
    let before = at.text.get(..at.span.start).unwrap_or_default();
    let number = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = at.text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
    let column = at.text.get(line_start..at.span.start).unwrap_or_default().chars().count();
    let marked = at.text.get(at.span.clone()).unwrap_or_default().lines().next().unwrap_or_default();
    let margin = " ".repeat(number.to_string().len());
    let _ = writeln!(out, "{margin}--> {}:{number}:{}", at.file.display(), column + 1);
    let _ = writeln!(out, "{margin} |\n{number} | {line}");
    let _ = writeln!(out, "{margin} | {}{}", " ".repeat(column), "^".repeat(marked.chars().count().max(1)));
}
