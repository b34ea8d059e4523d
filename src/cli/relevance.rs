//! Which files of a large project can matter to the files that are checked.
//!
//! A hook checks ten files of a repository with thousands. What a kernel costs depends on what its file includes, on
//! who launches it, with which values, on who calls those, and on what all of these include and call. That is found
//! by names, before anything is parsed, and errs on the side of reading more:
//!
//! ```text
//! users(F)   = files that call or launch what F defines: they include F, or see only a declaration of it
//! needed     = checked and their includers, with users(…) of all of these, and all that these include or call
//! ```
//!
//! Read backwards, the same relation says what a change can reach: the files for which a changed one is needed. All
//! others have the same findings before and after it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use memchr::memmem;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::shell::normalize;

/// Projects with no more files around the checked ones are read whole.
const SMALL: usize = 64;
/// A parameter list longer than this is not one.
const PARAMETER_BYTES: usize = 4096;

pub struct Candidate<'a> {
    pub path: &'a Path,
    pub text: &'a [u8],
    pub checked: bool,
}

/// For each file: can it matter?
pub fn needed(files: &[Candidate<'_>], include_dirs: &[PathBuf]) -> Vec<bool> {
    if files.iter().filter(|file| !file.checked).count() <= SMALL {
        return vec![true; files.len()];
    }
    let facts = facts(files);
    Graph::new(files, &facts, include_dirs).needed(files)
}

/// For each file: can a difference in the `changed` ones matter to it?
pub fn reached(files: &[Candidate<'_>], changed: &[bool], include_dirs: &[PathBuf]) -> Vec<bool> {
    if files.len() <= SMALL {
        return vec![true; files.len()];
    }
    let facts = facts(files);
    Graph::new(files, &facts, include_dirs).reached(changed)
}

fn facts<'a>(files: &[Candidate<'a>]) -> Vec<Facts<'a>> {
    files.par_iter().map(|file| Facts::of(file.text)).collect()
}

/// What a text says by its words.
#[derive(Default)]
struct Facts<'a> {
    includes: Vec<&'a str>,
    /// Functions with a body.
    defines: FxHashSet<&'a str>,
    kernels: FxHashSet<&'a str>,
    /// Functions without a body.
    declares: FxHashSet<&'a str>,
    /// Words that may call a function.
    calls: FxHashSet<&'a str>,
    /// All words: a kernel may be passed by its name.
    words: FxHashSet<&'a str>,
    /// Is a program of its own: others can hardly call into it.
    program: bool,
    /// Speaks of the L2 cache's persisting part, whose reset may be anywhere.
    persisting: bool,
}

impl<'a> Facts<'a> {
    fn of(text: &'a [u8]) -> Facts<'a> {
        let persisting = memmem::find(text, b"ersisting").is_some();
        let mut facts = Facts { includes: includes(text), persisting, ..Facts::default() };
        let mut scan = Scan { before: b';', plain: true, ..Scan::default() };
        let mut at = 0;
        while let Some(byte) = text.get(at).copied() {
            let rest = text.get(at..).unwrap_or_default();
            let skipped = skipped(rest);
            if skipped > 0 {
                at += skipped;
            } else if byte.is_ascii_alphabetic() || byte == b'_' {
                let length = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
                let (word, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
                if let Ok(word) = std::str::from_utf8(word) {
                    facts.word(word, &scan, after);
                    at += scan.word(word, after);
                }
                at += length;
            } else {
                scan.byte(byte);
                at += 1;
            }
        }
        facts
    }

    fn word(&mut self, word: &'a str, scan: &Scan<'_>, after: &[u8]) {
        self.program |= word == "main" && after.trim_ascii_start().starts_with(b"(");
        const KEYWORDS: [&str; 9] =
            ["if", "for", "while", "switch", "return", "sizeof", "main", "catch", "constexpr"];
        const LIBRARIES: [&str; 7] = ["std", "cub", "thrust", "cuda", "cooperative_groups", "cg", "nvcuda"];
        const NO_TYPES: [&str; 7] = ["return", "else", "new", "delete", "throw", "case", "goto"];
        if KEYWORDS.contains(&word) || (scan.before == b':' && LIBRARIES.contains(&scan.qualifier)) {
            return;
        }
        self.words.insert(word);
        let next = after.trim_ascii_start();
        let passed = matches!(scan.before, b'&' | b')');
        if scan.before != b'.' && (matches!(next.first(), Some(b'(' | b'<')) || passed) {
            self.calls.insert(word);
        }
        let typed = scan.before == b'a' && !NO_TYPES.contains(&scan.last);
        if next.first() != Some(&b'(')
            || !(typed || matches!(scan.before, b'*' | b'&' | b'>' | b')' | b']' | b':' | b'~'))
        {
            return;
        }
        match after_parameters(next) {
            After::Body => {
                self.defines.insert(word);
                if scan.kernel {
                    self.kernels.insert(word);
                }
            }
            After::End if scan.plain => {
                self.declares.insert(word);
            }
            After::End | After::Other => {}
        }
    }
}

/// Where a scan is in its statement.
#[derive(Default)]
struct Scan<'a> {
    /// The last byte that is no white space; `a` for a word, `.` for a member access.
    before: u8,
    last: &'a str,
    /// The word before the last `::`.
    qualifier: &'a str,
    /// `__global__` stands in this statement.
    kernel: bool,
    /// Only what a declaration has before its name stands in this statement.
    plain: bool,
}

impl<'a> Scan<'a> {
    /// Takes a word; returns the bytes of an attribute's parentheses after it.
    fn word(&mut self, word: &'a str, after: &[u8]) -> usize {
        self.kernel |= word == "__global__";
        self.before = b'a';
        self.last = word;
        if !matches!(word, "__launch_bounds__" | "__attribute__" | "alignas" | "__align__") {
            return 0;
        }
        let space = after.len() - after.trim_ascii_start().len();
        closing(after.trim_ascii_start()).map_or(0, |close| space + close + 1)
    }

    fn byte(&mut self, byte: u8) {
        match byte {
            b';' | b'{' | b'}' | b'#' => (self.kernel, self.plain) = (false, true),
            b'*' | b'&' | b'<' | b'>' | b':' | b',' | b'"' | b'~' => {}
            byte if byte.is_ascii_whitespace() || byte.is_ascii_digit() => {}
            _ => self.plain = false,
        }
        if byte == b':' {
            self.qualifier = if self.before == b'a' { self.last } else { self.qualifier };
        }
        if !byte.is_ascii_whitespace() {
            // `->` is told from `>`.
            self.before = if byte == b'>' && self.before == b'-' { b'.' } else { byte };
        }
    }
}

/// Bytes of a comment or a literal at the start of a text, 0 where there is none.
fn skipped(rest: &[u8]) -> usize {
    let until = |from: usize, mark: &[u8]| {
        let rest = rest.get(from..).unwrap_or_default();
        from + memmem::find(rest, mark).map_or(rest.len(), |found| found + mark.len())
    };
    match rest {
        [b'/', b'/', ..] => until(2, b"\n"),
        [b'/', b'*', ..] => until(2, b"*/"),
        [b'"', ..] => {
            let mut at = 1;
            while let Some(byte) = rest.get(at) {
                match byte {
                    b'"' | b'\n' => break,
                    b'\\' => at += 2,
                    _ => at += 1,
                }
            }
            at + 1
        }
        _ => 0,
    }
}

/// What follows a parameter list.
enum After {
    Body,
    End,
    Other,
}

/// Reads past the parameter list that starts here, and past qualifiers.
fn after_parameters(text: &[u8]) -> After {
    let Some(close) = closing(text) else { return After::Other };
    let mut rest = text.get(close + 1..).unwrap_or_default().trim_ascii_start();
    for word in [&b"const"[..], b"noexcept", b"override", b"final"] {
        rest = rest.strip_prefix(word).unwrap_or(rest).trim_ascii_start();
    }
    while skipped(rest) > 0 {
        rest = rest.get(skipped(rest)..).unwrap_or_default().trim_ascii_start();
    }
    match rest {
        [b'{', ..] | [b'-', b'>', ..] => After::Body,
        [b':', b':', ..] => After::Other,
        [b':', ..] => After::Body,
        [b';', ..] => After::End,
        _ => After::Other,
    }
}

/// The byte of the parenthesis that closes the one at the start.
fn closing(text: &[u8]) -> Option<usize> {
    let mut depth = 0usize;
    text.iter().take(PARAMETER_BYTES).position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })
}

/// The names in `#include` lines, quoted or angled.
fn includes(text: &[u8]) -> Vec<&str> {
    let mut names = Vec::new();
    for at in memmem::find_iter(text, b"include") {
        let before = text.get(..at).unwrap_or_default().trim_ascii_end();
        let after = text.get(at + b"include".len()..).unwrap_or_default().trim_ascii_start();
        let close = match after.first() {
            Some(b'"') => b'"',
            Some(b'<') => b'>',
            _ => continue,
        };
        let name = after.get(1..).unwrap_or_default().split(|byte| *byte == close || *byte == b'\n').next();
        if let Some(name) =
            name.filter(|_| before.ends_with(b"#")).and_then(|name| std::str::from_utf8(name).ok())
        {
            names.push(name);
        }
    }
    names
}

struct Graph<'a> {
    facts: &'a [Facts<'a>],
    /// Files that each file includes, itself first, transitively.
    closures: Vec<Vec<usize>>,
    includers: Vec<Vec<usize>>,
    /// Files that define a function of this name.
    definers: FxHashMap<&'a str, Vec<usize>>,
    /// Files that call it, or mention it where it is a kernel.
    users: FxHashMap<&'a str, Vec<usize>>,
    components: Vec<Vec<&'a std::ffi::OsStr>>,
    /// Directories with a `main`.
    programs: FxHashSet<Vec<&'a std::ffi::OsStr>>,
}

impl<'a> Graph<'a> {
    fn new(files: &'a [Candidate<'a>], facts: &'a [Facts<'a>], include_dirs: &[PathBuf]) -> Graph<'a> {
        let components = files.iter().map(|file| file.path.iter().collect()).collect();
        let mut graph = Graph {
            facts,
            closures: Vec::new(),
            includers: vec![Vec::new(); files.len()],
            definers: FxHashMap::default(),
            users: FxHashMap::default(),
            components,
            programs: FxHashSet::default(),
        };
        let mains = (0..files.len()).filter(|at| facts.get(*at).is_some_and(|facts| facts.program));
        let mains: Vec<usize> = mains.collect();
        graph.programs = mains.into_iter().map(|at| graph.directory(at).to_vec()).collect();
        graph.include(files, include_dirs);
        let mut kernels: FxHashSet<&str> = FxHashSet::default();
        for (at, file) in facts.iter().enumerate() {
            kernels.extend(&file.kernels);
            for name in &file.defines {
                graph.definers.entry(name).or_default().push(at);
            }
        }
        for (at, file) in facts.iter().enumerate() {
            let uses =
                file.words.iter().filter(|word| file.calls.contains(**word) || kernels.contains(**word));
            for word in uses.filter(|word| graph.definers.contains_key(**word)) {
                graph.users.entry(word).or_default().push(at);
            }
        }
        graph
    }

    /// Resolves includes as the analysis does: beside the file, in the include directories, else the nearest file
    /// whose path ends so, and for a lone name only one that is not far.
    fn include(&mut self, files: &[Candidate<'_>], include_dirs: &[PathBuf]) {
        let by_path: FxHashMap<&Path, usize> =
            files.iter().enumerate().map(|(at, file)| (file.path, at)).collect();
        let mut by_name: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (at, file) in files.iter().enumerate() {
            by_name.entry(file.path.file_name()).or_default().push(at);
        }
        let mut direct: Vec<Vec<usize>> = Vec::new();
        for (at, (file, facts)) in files.iter().zip(self.facts).enumerate() {
            let mut found = Vec::new();
            for name in &facts.includes {
                let places = file.path.parent().into_iter().chain(include_dirs.iter().map(PathBuf::as_path));
                let exact = places
                    .map(|place| normalize(&place.join(name)))
                    .find_map(|p| by_path.get(p.as_path()).copied());
                let tail: PathBuf = normalize(Path::new(name)).iter().filter(|part| *part != "..").collect();
                let ending = by_name.get(&tail.file_name()).into_iter().flatten().copied();
                let ending =
                    ending.filter(|other| files.get(*other).is_some_and(|file| file.path.ends_with(&tail)));
                match exact {
                    Some(exact) => found.push(exact),
                    None => {
                        let best = self.nearest(at, ending.collect()).into_iter().min();
                        let depth = self.components.get(at).map_or(0, Vec::len).saturating_sub(1);
                        let near =
                            |best: &usize| tail.iter().count() > 1 || self.shared(at, *best) + 2 >= depth;
                        found.extend(best.filter(near));
                    }
                }
            }
            direct.push(found);
        }
        for at in 0..files.len() {
            let closure = reach([at], |file| direct.get(file).cloned().unwrap_or_default());
            for included in closure.iter().skip(1) {
                if let Some(includers) = self.includers.get_mut(*included) {
                    includers.push(at);
                }
            }
            self.closures.push(closure);
        }
    }

    /// Of some files, those with the longest common beginning of the path.
    fn nearest(&self, from: usize, files: Vec<usize>) -> Vec<usize> {
        let most = files.iter().map(|file| self.shared(from, *file)).max().unwrap_or(0);
        files.into_iter().filter(|file| self.shared(from, *file) == most).collect()
    }

    /// How many components the directory of one file has in common with the path of another.
    fn shared(&self, from: usize, file: usize) -> usize {
        let path = |file: usize| self.components.get(file).map(Vec::as_slice).unwrap_or_default();
        let (_, directory) = path(from).split_last().unwrap_or((&std::ffi::OsStr::new(""), &[]));
        directory.iter().zip(path(file)).take_while(|(a, b)| a == b).count()
    }

    fn needed(&self, files: &[Candidate<'_>]) -> Vec<bool> {
        let mut start: BTreeSet<usize> =
            (0..files.len()).filter(|at| files.get(*at).is_some_and(|f| f.checked)).collect();
        let includers = start.iter().filter_map(|at| self.includers.get(*at)).flatten().copied();
        start.extend(includers.collect::<Vec<_>>());
        if start.iter().any(|at| self.facts.get(*at).is_some_and(|facts| facts.persisting)) {
            start.extend(
                (0..files.len()).filter(|at| self.facts.get(*at).is_some_and(|facts| facts.persisting)),
            );
        }
        let users = reach(start, |file| self.users_of(file));
        let mut needed = vec![false; files.len()];
        for file in reach(users, |file| self.uses_of(file)) {
            if let Some(slot) = needed.get_mut(file) {
                *slot = true;
            }
        }
        needed
    }

    /// `needed`, from its end to its start.
    fn reached(&self, changed: &[bool]) -> Vec<bool> {
        let files = || 0..self.facts.len();
        let is = |set: &[bool], at: usize| set.get(at).copied().unwrap_or(false);
        let with = |of: &(dyn Fn(usize) -> Vec<usize> + Sync)| -> Vec<Vec<usize>> {
            let forward: Vec<Vec<usize>> = files().into_par_iter().map(of).collect();
            let mut backward = vec![Vec::new(); forward.len()];
            for (at, targets) in forward.iter().enumerate() {
                for target in targets {
                    if let Some(sources) = backward.get_mut(*target) {
                        sources.push(at);
                    }
                }
            }
            backward
        };
        let mut reached = vec![false; self.facts.len()];
        let mut mark = |at: usize| reached.get_mut(at).map(|slot| std::mem::replace(slot, true));
        let (used_by, user_of) = (with(&|at| self.uses_of(at)), with(&|at| self.users_of(at)));
        let step = |edges: &[Vec<usize>], at: usize| edges.get(at).cloned().unwrap_or_default();
        let used = reach(files().filter(|at| is(changed, *at)), |at| step(&used_by, at));
        let mut started = reach(used, |at| step(&user_of, at));
        // A reset of the L2 cache, wherever it is, matters to all who make lines persist.
        let persisting = |at: &usize| self.facts.get(*at).is_some_and(|facts| facts.persisting);
        if started.iter().any(persisting) {
            started.extend(files().filter(persisting));
        }
        for at in started {
            mark(at);
            self.closures.get(at).into_iter().flatten().for_each(|included| {
                mark(*included);
            });
        }
        reached
    }

    /// Whether a file sees a declaration of a function, but not its body.
    fn only_declares(&self, file: usize, name: &str) -> bool {
        let closure = self.closures.get(file).map(Vec::as_slice).unwrap_or_default();
        let any = |of: &dyn Fn(&Facts<'_>) -> bool| {
            closure.iter().filter_map(|other| self.facts.get(*other)).any(of)
        };
        any(&|facts| facts.declares.contains(name)) && !any(&|facts| facts.defines.contains(name))
    }

    /// Where the body may be of a function that a file only declares.
    fn bodies(&self, file: usize, name: &str) -> Vec<usize> {
        let Some(definers) = self.definers.get(name).filter(|_| self.only_declares(file, name)) else {
            return Vec::new();
        };
        // Others can hardly call into the file that has the `main`.
        let inside = |other: usize| {
            let program = self.facts.get(other).is_some_and(|facts| facts.program);
            !program || self.shared(file, other) + 1 >= self.components.get(other).map_or(0, Vec::len)
        };
        let related = definers.iter().copied().filter(|other| self.related(file, *other));
        let mut bodies = self.nearest(file, related.collect());
        bodies.retain(|other| inside(*other));
        bodies
    }

    /// May the files be parts of one program? As the analysis has it: beside each other or one above the other;
    /// cousins unless both directories have a `main`.
    fn related(&self, a: usize, b: usize) -> bool {
        let (x, y) = (self.directory(a), self.directory(b));
        let common = x.iter().zip(y).take_while(|(a, b)| a == b).count();
        let is_program = |directory: &[&std::ffi::OsStr]| self.programs.contains(directory);
        common == x.len().min(y.len())
            || (common + 2 >= x.len().max(y.len()) && !(is_program(x) && is_program(y)))
    }

    fn directory(&self, file: usize) -> &[&'a std::ffi::OsStr] {
        self.components.get(file).and_then(|path| path.split_last()).map_or(&[], |(_, directory)| directory)
    }

    /// Who may call or launch what a file defines.
    fn users_of(&self, file: usize) -> Vec<usize> {
        let Some(facts) = self.facts.get(file) else { return Vec::new() };
        let mut found = Vec::new();
        for name in &facts.defines {
            let users = self.users.get(name).into_iter().flatten().copied();
            found.extend(users.filter(|user| {
                self.closures.get(*user).is_some_and(|closure| closure.contains(&file))
                    || self.bodies(*user, name).contains(&file)
            }));
        }
        found
    }

    /// What a file includes, and where the functions are that it calls without seeing them.
    fn uses_of(&self, file: usize) -> Vec<usize> {
        let mut found = self.closures.get(file).cloned().unwrap_or_default();
        for name in self.facts.get(file).into_iter().flat_map(|facts| &facts.calls) {
            found.extend(self.bodies(file, name));
        }
        found
    }
}

/// Everything reached from some files, in the order in which it is found.
fn reach(start: impl IntoIterator<Item = usize>, next: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    let mut seen: FxHashSet<usize> = FxHashSet::default();
    let mut queue: Vec<usize> = start.into_iter().filter(|at| seen.insert(*at)).collect();
    while let Some(at) = queue.pop() {
        order.push(at);
        queue.extend(next(at).into_iter().filter(|other| seen.insert(*other)));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the files needed to check the first one, among many that have nothing to do with it.
    fn needed_of(files: &[(&str, &str)]) -> Vec<String> {
        let mut all: Vec<(PathBuf, String)> =
            files.iter().map(|(path, text)| (Path::new("/p").join(path), text.to_string())).collect();
        for at in 0..100 {
            let text = format!(
                "__global__ void other{at}() {{}} void reference() {{}} int main() {{ other{at}<<<1, 2>>>(); }}"
            );
            all.push((PathBuf::from(format!("/p/other{at}/main.cu")), text));
        }
        let candidate =
            |(at, (path, text)): (usize, &'_ (PathBuf, String))| (path.clone(), text.clone(), at == 0);
        let owned: Vec<(PathBuf, String, bool)> = all.iter().enumerate().map(candidate).collect();
        let candidates: Vec<Candidate<'_>> = owned
            .iter()
            .map(|(path, text, checked)| Candidate { path, text: text.as_bytes(), checked: *checked })
            .collect();
        let needed = needed(&candidates, &[]);
        let names = owned.iter().zip(needed).filter(|(_, needed)| *needed);
        names.map(|((path, ..), _)| path.strip_prefix("/p").unwrap().display().to_string()).collect()
    }

    const KERNEL: &str = "#include \"sizes.h\"\n__device__ void f(float *);\n__global__ void __launch_bounds__(256) k(float *p) { f(p); }";

    #[test]
    fn launchers_and_their_callers_matter_and_what_they_see() {
        let found = needed_of(&[
            ("a/k.cu", KERNEL),
            ("a/sizes.h", "#define N 4"),
            (
                "b/launch.cu",
                "#include \"block.h\"\n__global__ void k(float *);\nvoid go(dim3 b) {\n k<<<1, b>>>(0); }",
            ),
            ("b/block.h", "const int block = 32;"),
            (
                "c/main.cpp",
                "void go(dim3); extern \"C\" void reference(); int main() { go(32); reference(); }",
            ),
            ("c/reference.cpp", "void reference() {}"),
            (
                "d/pass.cpp",
                "extern __global__ void k(float *p);\nint run() { cudaLaunchKernel((void*) k, 1, 2); }",
            ),
            ("d/device.cu", "__device__ void f(float *p) {}"),
            ("e/comment.cu", "// k<<<1, 2>>>()\nint x = obj.k(1);"),
        ]);
        let expected = [
            "a/k.cu",
            "a/sizes.h",
            "b/launch.cu",
            "b/block.h",
            "c/main.cpp",
            "c/reference.cpp",
            "d/pass.cpp",
            "d/device.cu",
        ];
        assert_eq!(found, expected);
    }

    /// What a change to one file reaches is what needs it.
    #[test]
    fn what_is_reached_is_what_needs_it() {
        let files: Vec<(&str, &str)> = vec![
            ("/p/a/k.cu", KERNEL),
            ("/p/a/sizes.h", "#define N 4"),
            ("/p/b/launch.cu", "__global__ void k(float *);\nvoid go(dim3 b) {\n k<<<1, b>>>(0); }"),
            ("/p/c/main.cpp", "void go(dim3); int main() { go(32); }"),
            ("/p/d/device.cu", "#include \"../a/sizes.h\"\n__device__ void f(float *p) {}"),
            ("/p/e/set.cu", "void set() { attr.hitProp = cudaAccessPropertyPersisting; }"),
            ("/p/f/reset.cpp", "Owner::~Owner() { cudaCtxResetPersistingL2Cache(); }"),
            ("/p/g/lone.cu", "__global__ void lone() {}\nint main() { lone<<<1, 2>>>(); }"),
        ];
        let with = |checked: usize| -> Vec<Candidate<'_>> {
            let candidate = |(at, (path, text)): (usize, &(&'static str, &'static str))| Candidate {
                path: Path::new(*path),
                text: text.as_bytes(),
                checked: at == checked,
            };
            files.iter().enumerate().map(candidate).collect()
        };
        let all = with(files.len());
        let facts = facts(&all);
        let graph = Graph::new(&all, &facts, &[]);
        let needed: Vec<Vec<bool>> = (0..files.len()).map(|at| graph.needed(&with(at))).collect();
        for changed in 0..files.len() {
            let flags: Vec<bool> = (0..files.len()).map(|at| at == changed).collect();
            let expected: Vec<bool> = needed.iter().map(|needed| needed[changed]).collect();
            assert_eq!(graph.reached(&flags), expected, "{}", files[changed].0);
        }
        // A constant reaches the kernel, its launcher's file sees it through the call, the lone program stays out.
        assert_eq!(graph.reached(&[false, true, false, false, false, false, false, false])[..1], [true]);
        assert!(!needed[7][..7].contains(&true) && needed[0][..5].iter().all(|needed| *needed));
    }

    #[test]
    fn a_checked_header_brings_who_includes_it() {
        let found = needed_of(&[
            ("a/k.cuh", "__device__ inline float g(float *p) { return *p; }"),
            ("b/user.cu", "#include \"../a/k.cuh\"\n__global__ void m(float *p) { g(p); }"),
            ("b/far.cu", "#include \"near.h\""),
            ("b/near.h", "#include \"a/k.cuh\""),
            ("c/own.cu", "float g(float *p) { return *p; } void h() { g(0); }"),
        ]);
        assert_eq!(found, ["a/k.cuh", "b/user.cu", "b/far.cu", "b/near.h"]);
    }

    #[test]
    fn resets_of_the_cache_matter_wherever_they_are() {
        let found = needed_of(&[
            ("a/set.cu", "void set() { attr.hitProp = cudaAccessPropertyPersisting; }"),
            ("b/reset.cpp", "Owner::~Owner() { cudaCtxResetPersistingL2Cache(); }"),
        ]);
        assert_eq!(found, ["a/set.cu", "b/reset.cpp"]);
    }

    #[test]
    fn another_program_does_not_call_into_this_one() {
        let found = needed_of(&[
            ("a/main.cu", "double get_time() { return 0; }\nint main() { get_time(); }"),
            ("a/sub/part.cu", "double get_time(); void part() { get_time(); }"),
            ("b/util.cu", "double get_time(); void util() { get_time(); }"),
        ]);
        assert_eq!(found, ["a/main.cu", "a/sub/part.cu"]);
    }

    #[test]
    fn definitions_are_told_from_calls_and_declarations() {
        let facts = Facts::of(
            b"void d(int); void e(int a = f(1)) const { g(1); if (x) h(2); }\nA::A() : b(1) {}\nLOOP(i, n) { j(1); }",
        );
        let mut defines: Vec<&str> = facts.defines.into_iter().collect();
        defines.sort_unstable();
        assert_eq!(defines, ["A", "b", "e"]);
        assert_eq!(facts.declares.into_iter().collect::<Vec<_>>(), ["d"]);
        assert!(["d", "e", "f", "g", "h", "j", "LOOP"].iter().all(|name| facts.calls.contains(name)));
    }
}
