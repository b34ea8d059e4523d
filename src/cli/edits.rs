//! Changes of files: shown as a diff, or written so that a file is never half changed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use super::super::report;
use super::super::source::FileId;
use super::failure::Failure;
use super::project::Project;
use super::shell::Shell;

/// The old and the new text of each file that changes.
pub type Changes = BTreeMap<FileId, (String, String)>;

/// Prints a patch; nothing is written.
pub fn show(shell: &mut Shell<'_>, project: &Project, changes: &Changes) -> Result<(), Failure> {
    for (file, (old, new)) in changes {
        let name = project.name(&shell.cwd, *file);
        shell.stdout.write_all(report::patch(&name, old, new).as_bytes())?;
    }
    shell.stdout.flush()?;
    Ok(())
}

/// Writes the changes; the text of standard input goes to standard output.
pub fn write(shell: &mut Shell<'_>, project: &Project, changes: &Changes) -> Result<(), Failure> {
    for (file, (old, new)) in changes {
        if project.stdin == Some(*file) {
            continue;
        }
        let path = project.path(*file);
        let written = replace(path, old, new);
        written.map_err(|error| {
            Failure::Usage(format!("cannot write {}: {error}", shell.display(path).display()))
        })?;
    }
    if let Some(file) = project.stdin {
        let text = changes.get(&file).map_or(project.sources.get(file).text.as_str(), |(_, new)| new);
        shell.stdout.write_all(text.as_bytes())?;
        shell.stdout.flush()?;
    }
    Ok(())
}

/// Replaces a file's text by way of a new file beside it. Links are followed, permissions kept; a file that changed
/// since it was read is left alone.
fn replace(path: &Path, old: &str, new: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    if fs::read(&path)? != old.as_bytes() {
        return Err(io::Error::other("it changed in the meantime"));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.cudalint-{}", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&beside)?;
        file.write_all(new.as_bytes())?;
        file.sync_all()?;
        fs::set_permissions(&beside, fs::metadata(&path)?.permissions())?;
        fs::rename(&beside, &path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}
