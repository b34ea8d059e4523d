//! Which file an `#include` names, among the files of the run.

use std::path::{Component, Path, PathBuf};

use rustc_hash::FxHashMap;

use super::{FileId, Sources};

/// Finds the file that an include names among the files of the run.
pub struct IncludeResolver<'a> {
    by_path: FxHashMap<PathBuf, FileId>,
    by_file_name: FxHashMap<std::ffi::OsString, Vec<(FileId, PathBuf)>>,
    include_dirs: &'a [PathBuf],
}

impl<'a> IncludeResolver<'a> {
    pub fn new(sources: &Sources, include_dirs: &'a [PathBuf]) -> Self {
        let mut by_path = FxHashMap::default();
        let mut by_file_name: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for id in sources.ids() {
            let path = normalize(sources.path(id));
            if let Some(name) = path.file_name() {
                by_file_name.entry(name.to_owned()).or_default().push((id, path.clone()));
            }
            by_path.insert(path, id);
        }
        IncludeResolver { by_path, by_file_name, include_dirs }
    }

    /// Beside the including file, in the include directories, else the nearest file whose path ends so, if there is one that is
    /// nearer than all others.
    pub fn resolve(&self, directory: &Path, include: &str) -> Option<FileId> {
        if let Some(&id) = self.by_path.get(&normalize(&directory.join(include))) {
            return Some(id);
        }
        for dir in self.include_dirs {
            if let Some(&id) = self.by_path.get(&normalize(&dir.join(include))) {
                return Some(id);
            }
        }
        let candidates = self.by_file_name.get(Path::new(include).file_name()?)?;
        nearest(directory, include, candidates.iter().map(|(id, path)| (*id, path.as_path())))
    }
}

/// Of files with their paths, the one whose path ends as an include in `directory` says and that is nearer than all others that do.
pub fn nearest<'p, T: Copy>(
    directory: &Path,
    include: &str,
    candidates: impl Iterator<Item = (T, &'p Path)> + Clone,
) -> Option<T> {
    let wanted: PathBuf = normalize(Path::new(include))
        .components()
        .filter(|part| !matches!(part, Component::ParentDir))
        .collect();
    let common =
        |path: &Path| path.components().zip(directory.components()).take_while(|(a, b)| a == b).count();
    let fitting = candidates.filter(|(_, path)| path.ends_with(&wanted));
    let nearest = fitting.clone().map(|(_, path)| common(path)).max()?;
    let mut nearest = fitting.filter(|(_, path)| common(path) == nearest);
    // One of several that are equally near would be a guess.
    let (best, path) = nearest.next().filter(|_| nearest.next().is_none())?;
    // A lone file name needs a common directory: `util.h` of another program is not this program's.
    (wanted.components().count() > 1 || common(path) + 2 >= directory.components().count()).then_some(best)
}

/// The path without `.` and with `..` taken back, by text alone.
pub fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::SourceFile;
    use super::*;

    #[test]
    fn an_include_that_several_files_fit_equally_well_is_none_of_them() {
        let mut sources = Sources::default();
        for path in ["a/one/kernels.h", "a/two/kernels.h", "a/two/only.h"] {
            sources.add(SourceFile::new(path, String::new()));
        }
        let resolver = IncludeResolver::new(&sources, &[]);
        let found = |directory: &str, include: &str| {
            resolver.resolve(Path::new(directory), include).map(|id| sources.path(id).to_owned())
        };
        assert_eq!(found("a/three", "kernels.h"), None);
        assert_eq!(found("a/one", "kernels.h"), Some(PathBuf::from("a/one/kernels.h")));
        assert_eq!(found("a/three", "only.h"), Some(PathBuf::from("a/two/only.h")));
    }
}
