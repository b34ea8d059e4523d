//! Launch shapes that are not at a launch site: annotations, configuration, launch bounds, hypotheses.

use globset::GlobMatcher;

use crate::ir::ast::FunctionDef;
use crate::ir::facts::{LaunchShape, ShapeSource};
use crate::source::{Sources, Span};

/// Shapes declared in the configuration, first match wins.
#[derive(Default)]
pub struct Declared {
    pub shapes: Vec<(GlobMatcher, [u32; 3], Option<[u64; 3]>)>,
}

impl Declared {
    /// Shapes by glob over kernel names; a glob that does not parse matches nothing (the configuration checks them).
    pub fn new<'a>(shapes: impl Iterator<Item = (&'a str, [u32; 3], Option<[u64; 3]>)>) -> Declared {
        let compiled = shapes.filter_map(|(name, block, grid)| {
            Some((globset::Glob::new(name).ok()?.compile_matcher(), block, grid))
        });
        Declared { shapes: compiled.collect() }
    }

    pub fn find(&self, kernel: &str) -> Option<LaunchShape> {
        let (_, block, grid) = self.shapes.iter().find(|(glob, ..)| glob.is_match(kernel))?;
        Some(LaunchShape { block: *block, grid: *grid, source: ShapeSource::Config, span: None })
    }
}

/// `// cudalint: launch(block = 32x8, grid = 64)` in the comment lines before a kernel or at its first lines.
pub fn annotation(sources: &Sources, kernel: &FunctionDef) -> Option<LaunchShape> {
    let file = kernel.span.file;
    let source = sources.get(file);
    let first = source.line(kernel.span.start);
    let body = kernel.body_span.map_or(kernel.span.start, |span| span.start);
    let last = source.line(body) + 1;
    for line in first.saturating_sub(3)..=last {
        let range = source.line_range(line);
        let text = source.text.get(range.clone())?;
        let Some(at) = text.find("cudalint:") else { continue };
        if let Some(mut shape) = parse_annotation(&text[at..]) {
            shape.span = Some(Span::new(file, range.start + at, range.end));
            return Some(shape);
        }
    }
    None
}

fn parse_annotation(text: &str) -> Option<LaunchShape> {
    let inside = text.split_once("launch(")?.1.split_once(')')?.0;
    let mut block = None;
    let mut grid = None;
    for part in inside.split(',') {
        let (key, value) = part.split_once('=')?;
        let numbers: Option<Vec<u64>> =
            value.trim().split(['x', 'X', '×']).map(|number| number.trim().parse().ok()).collect();
        let numbers = numbers?;
        let mut extents = [1u64; 3];
        extents.iter_mut().zip(numbers).for_each(|(extent, number)| *extent = number.max(1));
        match key.trim() {
            "block" => block = Some(extents),
            "grid" => grid = Some(extents),
            _ => return None,
        }
    }
    let block = block?.map(|extent| u32::try_from(extent.min(1024)).unwrap_or(1024));
    Some(LaunchShape { block, grid, source: ShapeSource::Annotation, span: None })
}

/// Blocks that kernels of this kind are launched with: what is common in public code for one, two, three axes.
pub fn hypotheses(uses_y: bool, uses_z: bool, most: Option<u32>) -> Vec<[u32; 3]> {
    let all: &[[u32; 3]] = match (uses_y, uses_z) {
        (_, true) => &[[8, 8, 8], [32, 4, 2], [16, 4, 4]],
        (true, false) => &[[32, 8, 1], [16, 16, 1], [32, 32, 1], [8, 8, 1]],
        (false, false) => &[[256, 1, 1]],
    };
    let Some(most) = most else { return all.to_vec() };
    let fitting: Vec<_> = all.iter().copied().filter(|block| block.iter().product::<u32>() <= most).collect();
    match (uses_y || uses_z, fitting.is_empty()) {
        (false, _) => vec![[most.clamp(1, 1024), 1, 1]],
        // Full rows of lanes first, then half ones, with all the threads that the bounds allow.
        (true, false) if !uses_z && most >= 64 && most % 16 == 0 => {
            [32, 16].into_iter().filter(|x| most % x == 0).map(|x| [x, most / x, 1]).collect()
        }
        (true, false) => fitting,
        (true, true) => vec![all[0]],
    }
}

/// Blocks that have the extents a launch gives, and 256, 64 or 512 threads as far as those and the kernel's launch bounds,
/// `most`, allow. At least one extent is known.
pub fn completed(known: [Option<u32>; 3], most: Option<u32>) -> Vec<[u32; 3]> {
    let taken: u32 = known.iter().flatten().product::<u32>().clamp(1, 1024);
    let mut blocks: Vec<[u32; 3]> = Vec::new();
    for threads in [256, 64, 512] {
        // The first open axis takes the threads that are left.
        let mut left = (threads.min(most.unwrap_or(threads)) / taken).max(1);
        let block = known.map(|extent| extent.unwrap_or_else(|| std::mem::replace(&mut left, 1)));
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    match known {
        // One row of threads: its length hardly matters.
        [None, Some(1), Some(1)] => blocks.into_iter().take(1).collect(),
        _ => blocks,
    }
}
