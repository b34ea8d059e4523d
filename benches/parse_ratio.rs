//! How much processor time does the whole analysis take, over what tree-sitter alone takes to parse the same bytes?
//!
//! `cargo bench --bench parse_ratio -- [DIRECTORY]`, or `CUDALINT_BENCH=DIRECTORY`; the repository's fixtures without
//! either. Each side repeats until it has used a second. The analysis gets every file of the tree, from text in memory to findings,
//! on all cores; the parser gets those with device code, one after the other. Time is user time of the process, which
//! is what a machine shared with others leaves comparable; read from /proc, in ticks of 10 ms, so Linux only.

use std::path::{Path, PathBuf};

use cudalint::lint::check::{Input, Settings, check};
use cudalint::rules::ALL;
use cudalint::source::{SourceFile, Sources};

const EXTENSIONS: &[&str] = &["cu", "cuh", "h", "hpp", "hh", "hxx", "inl", "inc", "cpp", "cc", "cxx", "c"];
const DEVICE_CODE: &[&str] = &["__global__", "__device__", "__shared__", "<<<"];

fn main() {
    let named = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    let root = named.or_else(|| std::env::var("CUDALINT_BENCH").ok()).unwrap_or_else(|| fixtures.to_owned());
    let mut paths = Vec::new();
    walk(Path::new(&root), &mut paths);
    paths.sort();
    let mut sources = Sources::default();
    for path in paths {
        if let Ok(bytes) = std::fs::read(&path) {
            sources.add(SourceFile::from_bytes(path, bytes));
        }
    }
    let parsed: Vec<String> = sources
        .ids()
        .map(|id| sources.get(id).text.to_string())
        .filter(|text| has_device_code(text))
        .collect();
    let bytes: usize = parsed.iter().map(String::len).sum();
    let (all, device) = (sources.len(), parsed.len());
    println!("{root}: {all} files, {device} with device code, {:.2} MB in these", bytes as f64 / 1e6);

    let checked = sources.ids().collect();
    let input = Input { sources, checked, settings: Settings::default(), ..Input::default() };
    let Some(parse) = seconds(|| parsed.iter().for_each(|text| parse(text))) else {
        println!("skipped: there is no /proc/self/stat to read user time from");
        return;
    };
    let Some(whole) = seconds(|| drop(check(&input, ALL))) else { return };
    println!("tree-sitter's parse  {:9.1} ms user", parse * 1e3);
    println!("the whole analysis   {:9.1} ms user", whole * 1e3);
    println!("ratio                {:9.2}", whole / parse);
}

/// User seconds of one call, over as many as take a second.
fn seconds(mut work: impl FnMut()) -> Option<f64> {
    let start = user_ticks()?;
    let mut calls = 0;
    loop {
        work();
        calls += 1;
        let used = user_ticks()? - start;
        if used >= 100 {
            return Some(used as f64 / 100.0 / f64::from(calls));
        }
    }
}

/// Field 14 of proc(5)'s `stat`: user time of all threads, in ticks of 10 ms. The second field may hold spaces.
fn user_ticks() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(11)?.parse().ok()
}

fn parse(text: &str) {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).expect("the grammar fits the library");
    std::hint::black_box(parser.parse(text, None));
}

fn has_device_code(text: &str) -> bool {
    DEVICE_CODE.iter().any(|word| text.contains(word))
}

fn walk(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let Ok(entries) = std::fs::read_dir(path) else { return };
        entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink())).for_each(
            |entry| {
                walk(&entry.path(), found);
            },
        );
    } else if path.extension().is_some_and(|end| EXTENSIONS.iter().any(|known| end == *known)) {
        found.push(path.to_owned());
    }
}
