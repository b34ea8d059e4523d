//! Other versions of the tree, as git or a diff has them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::failure::Failure;
use super::patch;
use super::project::{Overlay, Project};
use super::shell::{Shell, normalize};
use super::walk::Kind;

/// The tree of a repository without any commit.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// A repository around a directory.
pub struct Git {
    top: PathBuf,
}

impl Git {
    pub fn open(directory: &Path) -> Result<Git, Failure> {
        let top = git(directory, &["rev-parse", "--show-toplevel"])
            .map_err(|error| Failure::Usage(format!("this needs a git repository: {error}")))?;
        let top = String::from_utf8_lossy(&top).trim_end().to_owned();
        // The walk names files below the working directory as given; keep to its spelling.
        let top = match directory
            .ancestors()
            .find(|parent| parent.canonicalize().is_ok_and(|p| p == Path::new(&top)))
        {
            Some(parent) => parent.to_owned(),
            None => PathBuf::from(top),
        };
        Ok(Git { top })
    }

    /// The tree where the current branch left `rev`: what this branch changed is new.
    pub fn since(&self, rev: &str) -> Result<Overlay, Failure> {
        let base = self.base(rev)?;
        let mut overlay = self.differing(&["diff", "--name-only", "--no-renames", "-z", &base], &base)?;
        self.without_untracked(&mut overlay)?;
        Ok(overlay)
    }

    fn base(&self, rev: &str) -> Result<String, Failure> {
        let line = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
        let name = format!("{rev}^{{commit}}");
        let commit = git(&self.top, &["rev-parse", "--verify", "--quiet", "--end-of-options", &name]);
        let commit = commit.map(line).map_err(|_| self.unknown(&format!("no commit `{rev}`")))?;
        let base = git(&self.top, &["merge-base", &commit, "HEAD"]);
        base.map(line).map_err(|_| self.unknown(&format!("`{rev}` and HEAD have no common commit")))
    }

    /// The message, with the remedy where the history was cut off.
    fn unknown(&self, message: &str) -> Failure {
        let shallow = git(&self.top, &["rev-parse", "--is-shallow-repository"]);
        let shallow = shallow.is_ok_and(|answer| answer.starts_with(b"true"));
        Failure::Usage(match shallow {
            true => format!(
                "{message} here: this is a shallow clone\n  = help: fetch the history: `git fetch --unshallow`, or \
                 `fetch-depth: 0` of actions/checkout, or `GIT_DEPTH: 0` in GitLab"
            ),
            false => format!("{message} in this repository"),
        })
    }

    /// What is staged, and the last commit, both as differences from the files on disk.
    pub fn staged(&self) -> Result<(Overlay, Overlay), Failure> {
        let head = git(&self.top, &["rev-parse", "--verify", "--quiet", "HEAD"]);
        let head = if head.is_ok() { "HEAD" } else { EMPTY_TREE };
        let mut staged = self.differing(&["diff", "--name-only", "--no-renames", "-z"], "")?;
        self.without_untracked(&mut staged)?;
        let mut last = self.differing(&["diff", "--name-only", "--no-renames", "-z", head], head)?;
        // A file that only the index differs in from the commit is not in the first list.
        let cached =
            self.differing(&["diff", "--cached", "--name-only", "--no-renames", "-z", head], head)?;
        last.extend(cached);
        self.without_untracked(&mut last)?;
        Ok((staged, last))
    }

    /// The text that `tree` (empty: the index) has of each file that `list` names.
    fn differing(&self, list: &[&str], tree: &str) -> Result<Overlay, Failure> {
        let names = git(&self.top, list)
            .map_err(|error| Failure::Usage(format!("git {}: {error}", list.join(" "))))?;
        let mut overlay = Overlay::new();
        for name in paths(&names).filter(|name| Kind::of(name) != Kind::Other) {
            let object = format!("{tree}:{}", name.display());
            overlay.insert(self.top.join(&name), git(&self.top, &["cat-file", "blob", &object]).ok());
        }
        Ok(overlay)
    }

    /// Files that git does not know are new.
    fn without_untracked(&self, overlay: &mut Overlay) -> Result<(), Failure> {
        let names = git(&self.top, &["ls-files", "--others", "-z"])
            .map_err(|error| Failure::Usage(format!("git ls-files: {error}")))?;
        for name in paths(&names).filter(|name| Kind::of(name) != Kind::Other) {
            overlay.insert(self.top.join(name), None);
        }
        Ok(())
    }
}

fn paths(names: &[u8]) -> impl Iterator<Item = PathBuf> {
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
}

/// Runs git; the error is its last words.
fn git(directory: &Path, args: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new("git").args(args).current_dir(directory).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run git: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.lines().last().unwrap_or("git failed").to_owned())
}

/// The tree before a diff was applied. Names in the diff are relative to the repository, or to the working directory.
pub fn before_diff(shell: &mut Shell<'_>, project: &Project, file: &Path) -> Result<Overlay, Failure> {
    let text = match file.as_os_str() == "-" {
        true => std::io::read_to_string(&mut shell.stdin),
        false => std::fs::read_to_string(shell.absolute(file)),
    };
    let named =
        |error: &dyn std::fmt::Display| Failure::Usage(format!("--diff-file {}: {error}", file.display()));
    let text = text.map_err(|error| named(&error))?;
    let patches = patch::parse(&text).map_err(|error| named(&error))?;
    let known: BTreeSet<&Path> = project.paths.iter().map(PathBuf::as_path).collect();
    let place = |name: &Path| {
        let here = normalize(&shell.cwd.join(name));
        let there = normalize(&project.root.join(name));
        if known.contains(there.as_path()) || !known.contains(here.as_path()) { there } else { here }
    };
    let mut overlay = Overlay::new();
    for patch in patches {
        let new = patch.new.as_deref().map(place);
        let now = match &new {
            Some(path) if known.contains(path.as_path()) => text_of(project, path),
            Some(_) => continue,
            None => Some(String::new()),
        };
        let old = now.and_then(|now| patch.reverse(&now));
        let old = old.ok_or_else(|| {
            let name = patch.new.as_deref().or(patch.old.as_deref()).unwrap_or(Path::new(""));
            named(&format!(
                "it does not fit {}: the files must be as they are after the diff",
                name.display()
            ))
        })?;
        if let Some(path) = new {
            overlay.insert(path, None);
        }
        if let Some(path) = patch.old.as_deref().map(place) {
            overlay.insert(path, Some(old.into_bytes()));
        }
    }
    Ok(overlay)
}

fn text_of(project: &Project, path: &Path) -> Option<String> {
    let at = project.paths.iter().position(|known| known == path)?;
    Some(project.sources.get(super::super::source::FileId(at as u32)).text.clone())
}
