//! Counts kernels that parse cleanly after masking: `clean [-v] DIRECTORY…`.
//!
//! A kernel is clean where the tree has a function definition with exactly its body and no ERROR or MISSING node
//! overlaps its head or body. Kernels that are not clean are parsed once more on their own (an island).

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cudalint::source::{FileId, SourceFile};
use cudalint::syntax::macros::Defines;
use cudalint::syntax::mask::{self, MaskOptions, Masked};
use cudalint::syntax::mask_types;
use tree_sitter::{Node, Parser, Tree};

const EXTENSIONS: &[&str] = &["cu", "cuh", "h", "hpp", "hh", "hxx", "inl", "cpp", "cc", "cxx", "inc"];

#[derive(Default)]
struct Count {
    files: u32,
    bytes: usize,
    /// Files with an error anywhere.
    broken: u32,
    kernels: u32,
    clean: u32,
    islands: u32,
    undecided: usize,
    mask: Duration,
    parse: Duration,
    slowest: Duration,
}

fn main() {
    let mut verbose = false;
    let mut total = Count::default();
    println!(
        "{:30} {:>6} {:>6} {:>8} {:>7} {:>7} {:>7} {:>8} {:>8} {:>7} {:>7}",
        "tree",
        "files",
        "broken",
        "kernels",
        "clean",
        "%",
        "+island",
        "mask MB/s",
        "parse",
        "slowest",
        "undecided"
    );
    for argument in std::env::args().skip(1) {
        if argument == "-v" {
            verbose = true;
            continue;
        }
        let mut count = Count::default();
        for path in files(Path::new(&argument)) {
            file(&path, verbose, &mut count);
        }
        print(&argument, &count);
        total.add(&count);
    }
    print("all", &total);
}

impl Count {
    fn add(&mut self, other: &Count) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.broken += other.broken;
        self.kernels += other.kernels;
        self.clean += other.clean;
        self.islands += other.islands;
        self.undecided += other.undecided;
        self.mask += other.mask;
        self.parse += other.parse;
        self.slowest = self.slowest.max(other.slowest);
    }
}

fn print(name: &str, count: &Count) {
    let share = |part: u32| 100.0 * f64::from(part) / f64::from(count.kernels.max(1));
    let speed = count.bytes as f64 / 1e6 / count.mask.as_secs_f64().max(1e-9);
    println!(
        "{:30} {:6} {:6} {:8} {:7} {:7.2} {:7.2} {:8.0} {:7.1}s {:6.2}s {:7}",
        name.rsplit('/').next().unwrap_or(name),
        count.files,
        count.broken,
        count.kernels,
        count.clean,
        share(count.clean),
        share(count.clean + count.islands),
        speed,
        count.parse.as_secs_f64(),
        count.slowest.as_secs_f64(),
        count.undecided,
    );
}

fn files(root: &Path) -> Vec<PathBuf> {
    let walk = ignore::WalkBuilder::new(root).standard_filters(false).build();
    let mut files: Vec<PathBuf> = walk
        .filter_map(Result::ok)
        .map(ignore::DirEntry::into_path)
        .filter(|path| path.extension().and_then(|e| e.to_str()).is_some_and(|e| EXTENSIONS.contains(&e)))
        .filter(|path| path.is_file())
        .filter(|path| {
            let text = path.to_string_lossy();
            let in_benchmark = text.contains("HeCBench") && text.contains("/src/");
            !(text.contains("+cccl/") && text.contains("/test")) && (!in_benchmark || text.contains("-cuda/"))
        })
        .collect();
    files.sort();
    files
}

fn file(path: &Path, verbose: bool, count: &mut Count) {
    let Ok(bytes) = std::fs::read(path) else { return };
    let source = SourceFile::from_bytes(path, bytes);
    let is_cuda = path.extension().is_some_and(|e| e == "cu" || e == "cuh");
    if !is_cuda && !source.text.contains("__global__") {
        return;
    }
    let start = Instant::now();
    let masked = mask::mask(FileId(0), &source.text, &Defines::default(), &MaskOptions::default());
    let masking = start.elapsed();
    let Some(tree) = parse(&mask_types::settled(&masked.text)) else { return };
    count.slowest = count.slowest.max(start.elapsed());
    count.mask += masking;
    count.parse += start.elapsed() - masking;
    count.files += 1;
    count.bytes += source.text.len();
    count.undecided += masked.undecided.len();
    kernels(&source, &masked, &tree, verbose, count);
}

fn kernels(source: &SourceFile, masked: &Masked, tree: &Tree, verbose: bool, count: &mut Count) {
    let errors = errors(tree);
    if !errors.is_empty() {
        count.broken += 1;
        if std::env::var_os("ERRORS").is_some() {
            for error in &errors {
                let line = source.text[..error.start].bytes().filter(|byte| *byte == b'\n').count();
                println!(
                    "ERROR {}:{}: {}",
                    source.path.display(),
                    line + 1,
                    source.text.lines().nth(line).unwrap_or("")
                );
            }
        }
    }
    for kernel in &masked.kernels {
        count.kernels += 1;
        let range = kernel.offset as usize..kernel.body.end as usize;
        if is_clean(tree, &errors, &range, &kernel.body) {
            count.clean += 1;
            continue;
        }
        let island = parse(&mask_types::settled(&mask::isolate(masked, &mask::island(masked, kernel))));
        let saved = island.is_some_and(|tree| is_clean(&tree, &self::errors(&tree), &range, &kernel.body));
        count.islands += u32::from(saved);
        if verbose {
            let place = errors.iter().find(|error| error.start < range.end && error.end >= range.start);
            let at = place.map_or(range.start, |error| error.start.max(range.start));
            println!(
                "{} {}:{}: {} (kernel at {}){}",
                if saved { "island" } else { "UNCLEAN" },
                source.path.display(),
                source.line(at as u32),
                kernel.name,
                source.line(kernel.offset),
                place.map_or(" NO BODY", |_| ""),
            );
        }
    }
}

fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).ok()?;
    parser.parse(text, None)
}

fn is_clean(tree: &Tree, errors: &[Range<usize>], range: &Range<usize>, body: &Range<u32>) -> bool {
    let (start, end) = (body.start as usize, body.end as usize);
    let mut node = tree.root_node().descendant_for_byte_range(start, end);
    while let Some(inner) = node
        && inner.start_byte() == start
        && inner.end_byte() == end
    {
        if inner.kind() == "compound_statement"
            && inner.parent().is_some_and(|p| p.kind() == "function_definition")
        {
            return !errors.iter().any(|error| error.start < range.end && error.end >= range.start);
        }
        node = inner.parent();
    }
    false
}

/// The byte ranges of all ERROR and MISSING nodes.
fn errors(tree: &Tree) -> Vec<Range<usize>> {
    fn visit(node: Node, found: &mut Vec<Range<usize>>) {
        if node.is_error() || node.is_missing() {
            found.push(node.byte_range());
        }
        if !node.has_error() {
            return;
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            visit(child, found);
        }
    }
    let mut found = Vec::new();
    visit(tree.root_node(), &mut found);
    found
}
