//! The world around a run: directory, streams and environment, so that a test can hold all of it.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Component, Path, PathBuf};

use super::args::ColorWhen;

pub struct Shell<'a> {
    /// Absolute.
    pub cwd: PathBuf,
    pub stdin: &'a mut dyn Read,
    pub stdout: &'a mut dyn Write,
    pub stderr: &'a mut dyn Write,
    /// Whether standard output is a terminal.
    pub terminal: bool,
    /// Whether standard error is the process's own, and a terminal.
    pub progress: bool,
    pub variable: fn(&str) -> Option<OsString>,
}

impl Shell<'_> {
    /// An absolute path without `.` and, where they name no link, `..`.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        normalize(&self.cwd.join(path))
    }

    /// A path as reports print it: relative to the working directory where it lies in it.
    pub fn display(&self, absolute: &Path) -> PathBuf {
        match absolute.strip_prefix(&self.cwd) {
            Ok(relative) if relative.as_os_str().is_empty() => PathBuf::from("."),
            Ok(relative) => relative.to_owned(),
            Err(_) => absolute.to_owned(),
        }
    }

    /// Whether to colour what goes to standard output: the option, then `NO_COLOR`, `FORCE_COLOR`, `CLICOLOR`.
    pub fn color(&self, when: ColorWhen) -> bool {
        let set = |name: &str| (self.variable)(name).filter(|value| !value.is_empty());
        match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto if set("NO_COLOR").is_some() => false,
            ColorWhen::Auto
                if [set("FORCE_COLOR"), set("CLICOLOR_FORCE")].iter().flatten().any(|v| v != "0") =>
            {
                true
            }
            ColorWhen::Auto if set("CLICOLOR").is_some_and(|value| value == "0") => false,
            ColorWhen::Auto => self.terminal && set("TERM").is_none_or(|term| term != "dumb"),
        }
    }
}

/// Removes `.` and resolves `..` by name.
pub fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            Component::ParentDir if normal.has_root() => {}
            part => normal.push(part),
        }
    }
    normal
}

/// Runs with the process's own world.
pub fn with_process<T>(run: impl FnOnce(&mut Shell<'_>) -> T) -> io::Result<T> {
    let cwd = std::env::current_dir()?;
    let terminal = io::stdout().is_terminal();
    let mut stdout = io::BufWriter::with_capacity(1 << 16, io::stdout());
    let mut shell = Shell {
        cwd,
        stdin: &mut io::stdin(),
        stdout: &mut stdout,
        stderr: &mut io::stderr(),
        terminal,
        progress: io::stderr().is_terminal(),
        variable: |name| std::env::var_os(name),
    };
    Ok(run(&mut shell))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn color(terminal: bool, when: ColorWhen, variable: fn(&str) -> Option<OsString>) -> bool {
        let (mut stdin, mut stdout, mut stderr) = (io::empty(), io::sink(), io::sink());
        let cwd = PathBuf::from("/");
        let streams = (&mut stdin, &mut stdout, &mut stderr);
        let shell = Shell {
            cwd,
            stdin: streams.0,
            stdout: streams.1,
            stderr: streams.2,
            terminal,
            progress: false,
            variable,
        };
        shell.color(when)
    }

    fn one(name: &str, wanted: &str, value: &str) -> Option<OsString> {
        (name == wanted).then(|| value.into())
    }

    #[test]
    fn the_option_goes_first_then_the_environment_then_the_terminal() {
        use ColorWhen::{Always, Auto, Never};
        assert!(color(true, Auto, |_| None));
        assert!(!color(false, Auto, |_| None));
        assert!(color(false, Always, |name| one(name, "NO_COLOR", "1")));
        assert!(!color(true, Never, |name| one(name, "FORCE_COLOR", "1")));
        assert!(!color(true, Auto, |name| one(name, "NO_COLOR", "1")));
        assert!(color(true, Auto, |name| one(name, "NO_COLOR", "")));
        assert!(color(false, Auto, |name| one(name, "FORCE_COLOR", "1")));
        assert!(!color(false, Auto, |name| one(name, "FORCE_COLOR", "0")));
        assert!(color(false, Auto, |name| one(name, "CLICOLOR_FORCE", "1")));
        assert!(!color(true, Auto, |name| one(name, "CLICOLOR", "0")));
        assert!(!color(true, Auto, |name| one(name, "TERM", "dumb")));
    }

    #[test]
    fn paths_are_normal() {
        assert_eq!(normalize(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(normalize(Path::new("/../a")), Path::new("/a"));
        assert_eq!(normalize(Path::new("../a/..")), Path::new(".."));
    }
}
