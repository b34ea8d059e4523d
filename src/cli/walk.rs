//! Which files a run looks at.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use memchr::memmem;

/// Files of a project that are read for context only; beyond these the context is cut off.
pub const CONTEXT_FILES: usize = 20_000;
/// Bytes of one file that is read for context only.
pub const CONTEXT_FILE_BYTES: u64 = 4 << 20;

/// What a file's name says about device code in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CUDA by name.
    Cuda,
    /// C or C++: looked at where it holds device code.
    Maybe,
    Other,
}

impl Kind {
    pub fn of(path: &Path) -> Kind {
        const MAYBE: [&str; 15] = [
            "h", "hh", "hpp", "hxx", "h++", "inl", "ipp", "tpp", "inc", "c", "cc", "cpp", "cxx", "c++",
            "impl",
        ];
        let Some(extension) = path.extension().and_then(|extension| extension.to_str()) else {
            return Kind::Other;
        };
        match extension.to_ascii_lowercase().as_str() {
            "cu" | "cuh" => Kind::Cuda,
            extension if MAYBE.contains(&extension) => Kind::Maybe,
            _ => Kind::Other,
        }
    }
}

/// Whether a C or C++ text holds device code, launches kernels or sets the L2 cache's policy.
pub fn has_device_code(text: &[u8]) -> bool {
    const MARKS: [&str; 10] = [
        "__global__",
        "__device__",
        "__shared__",
        "threadIdx",
        "<<<",
        "cudaLaunchKernel",
        "cudaAccessPolicyWindow",
        "accessPolicyWindow",
        "AccessPropertyPersisting",
        "PersistingL2",
    ];
    MARKS.iter().any(|mark| memmem::find(text, mark.as_bytes()).is_some())
}

/// Globs as in `.gitignore`, relative to a directory.
#[derive(Clone, Debug)]
pub struct Globs {
    directory: PathBuf,
    globs: Gitignore,
}

impl Globs {
    /// The error names the glob that is wrong by its place in the list.
    pub fn new<'a>(
        directory: &Path,
        globs: impl IntoIterator<Item = &'a str>,
    ) -> Result<Globs, (usize, String)> {
        let mut builder = GitignoreBuilder::new(directory);
        for (at, glob) in globs.into_iter().enumerate() {
            builder.add_line(None, glob).map_err(|error| (at, error.to_string()))?;
        }
        let globs = builder.build().map_err(|error| (0, error.to_string()))?;
        Ok(Globs { directory: directory.to_owned(), globs })
    }

    pub fn matches(&self, absolute: &Path) -> bool {
        let Ok(relative) = absolute.strip_prefix(&self.directory) else { return false };
        self.globs.matched_path_or_any_parents(relative, false).is_ignore()
    }
}

/// A directory's files that may hold device code, sorted, and what could not be entered.
pub fn directory(
    root: &Path,
    no_ignore: bool,
    depth: Option<usize>,
) -> (Vec<PathBuf>, Vec<(PathBuf, String)>) {
    let mut builder = WalkBuilder::new(root);
    builder.standard_filters(!no_ignore).max_depth(depth).sort_by_file_name(std::cmp::Ord::cmp);
    let (mut files, mut unreadable) = (Vec::new(), Vec::new());
    for entry in builder.build() {
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_dir()) => {}
            Ok(entry) if Kind::of(entry.path()) == Kind::Other => {}
            Ok(entry) if entry.path_is_symlink() && !entry.path().is_file() => {}
            Ok(entry) => files.push(entry.into_path()),
            Err(error) => {
                let path = error_path(&error).unwrap_or(root).to_owned();
                unreadable.push((path, error.to_string()));
            }
        }
    }
    files.sort();
    (files, unreadable)
}

fn error_path(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => error_path(err),
        _ => None,
    }
}

/// Where a path's project is, for context.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    /// A repository, or a directory with a configuration file: everything in it belongs together.
    Tree(PathBuf),
    /// Nothing says how far the project goes: only the directory itself.
    Directory(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_the_name() {
        assert_eq!(Kind::of(Path::new("a/b.CU")), Kind::Cuda);
        assert_eq!(Kind::of(Path::new("a.cuh")), Kind::Cuda);
        assert_eq!(Kind::of(Path::new("a.hpp")), Kind::Maybe);
        assert_eq!(Kind::of(Path::new("a.py")), Kind::Other);
        assert_eq!(Kind::of(Path::new("cu")), Kind::Other);
    }

    #[test]
    fn globs_are_those_of_gitignore() {
        let globs = Globs::new(Path::new("/p"), ["third_party/", "*.gen.cu", "/top.cu"]).unwrap();
        assert!(globs.matches(Path::new("/p/third_party/a/b.cu")));
        assert!(globs.matches(Path::new("/p/src/x.gen.cu")));
        assert!(globs.matches(Path::new("/p/top.cu")));
        assert!(!globs.matches(Path::new("/p/src/top.cu")));
        assert!(!globs.matches(Path::new("/q/x.gen.cu")));
        assert_eq!(Globs::new(Path::new("/p"), ["ok", "a{b"]).unwrap_err().0, 1);
    }
}
