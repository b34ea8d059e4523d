//! Every access of every kernel with its numbers, or the reason for not knowing them: `cudalint inspect`.
//!
//! The JSON is a contract, `schemaVersion` 1: fields are only ever added within a version. The structures here are
//! that contract; the engine fills them.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::place::harmless;

pub const SCHEMA_VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspect {
    pub schema_version: u32,
    pub files: Vec<InspectFile>,
}

impl Inspect {
    pub fn new(files: Vec<InspectFile>) -> Inspect {
        Inspect { schema_version: SCHEMA_VERSION, files }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InspectFile {
    pub path: String,
    pub gaps: Vec<InspectGap>,
    pub kernels: Vec<InspectKernel>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InspectGap {
    /// From 1.
    pub line: u32,
    pub reason: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InspectKernel {
    /// With its template arguments: `k<float>`.
    pub name: String,
    pub line: u32,
    pub launch_shapes: Vec<InspectShape>,
    pub accesses: Vec<InspectAccess>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InspectShape {
    pub block: [u32; 3],
    /// `launch site`, `launch bounds`, `annotation`, `config`, `hypothesis`.
    pub from: String,
    /// Where it was read, if it was read from a file.
    pub line: Option<u32>,
    /// The file of that line, where it is another one than the kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Numbers are averages per executed request of a warp; `None` is "not known" or "does not apply to this space".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InspectAccess {
    /// From 1.
    pub line: u32,
    /// From 1, in UTF-16 code units.
    pub column: u32,
    pub end_line: u32,
    /// Only where the access lies in another file than its kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// `global`, `shared`, `local`, `constant`.
    pub space: String,
    /// `load`, `store`, `atomic`.
    pub operation: String,
    pub access_bytes: Option<i64>,
    /// The array or pointer: `in`.
    pub base: Option<String>,
    /// The byte offset from the base: `128·tid.x + …`.
    pub index: Option<String>,
    pub lane_stride_bytes: Option<i64>,
    pub sectors_per_request: Option<f64>,
    pub ideal_sectors_per_request: Option<f64>,
    pub wavefronts_per_request: Option<f64>,
    pub ideal_wavefronts_per_request: Option<f64>,
    /// `proven`, `shaped`, `assumed`.
    pub confidence: Option<String>,
    pub assumptions: Vec<String>,
    /// Why the numbers are not known.
    pub unknown: Option<String>,
}

/// The contract, on one line.
pub fn json(inspect: &Inspect) -> String {
    serde_json::to_string(inspect).unwrap_or_else(|error| format!("{{\"error\":{:?}}}", error.to_string()))
        + "\n"
}

/// A heading per kernel and an aligned line per access; nothing is wider than `width` columns (80 at least).
pub fn table(inspect: &Inspect, width: usize) -> String {
    let width = width.max(80);
    let mut out = String::new();
    for file in &inspect.files {
        for kernel in &file.kernels {
            heading(&mut out, file, kernel, width);
            rows(&mut out, kernel, width);
            out.push('\n');
        }
        for gap in &file.gaps {
            let _ = writeln!(
                out,
                "{}",
                cut(&format!("{}:{}: not understood: {}", file.path, gap.line, gap.reason), width)
            );
        }
        if !file.gaps.is_empty() {
            out.push('\n');
        }
    }
    out
}

fn heading(out: &mut String, file: &InspectFile, kernel: &InspectKernel, width: usize) {
    let shapes: Vec<String> = kernel.launch_shapes.iter().map(shape).collect();
    let shapes = if shapes.is_empty() {
        "no launch shape".to_owned()
    } else {
        format!("blocks of {}", shapes.join(", "))
    };
    let _ = writeln!(out, "{}", cut(&format!("{}:{}: {}", file.path, kernel.line, kernel.name), width));
    let _ = writeln!(out, "{}", cut(&format!("  {shapes}"), width));
    if kernel.accesses.is_empty() {
        out.push_str("  no accesses\n");
    }
}

/// `32x8 (launch site, line 40)` or `32x8 (launch site, main.cu:40)`: trailing ones are left out.
fn shape(shape: &InspectShape) -> String {
    let block = match shape.block {
        [x, 1, 1] => format!("{x}"),
        [x, y, 1] => format!("{x}x{y}"),
        [x, y, z] => format!("{x}x{y}x{z}"),
    };
    let line = match (shape.line, &shape.file) {
        (Some(line), Some(file)) => format!(", {file}:{line}"),
        (Some(line), None) => format!(", line {line}"),
        (None, _) => String::new(),
    };
    format!("{block} ({}{line})", shape.from)
}

/// Place, kind, bytes, lane stride, cost, confidence; last, as far as the width goes, what is accessed. Where the
/// numbers are not known the reason takes their columns.
fn rows(out: &mut String, kernel: &InspectKernel, width: usize) {
    const RIGHT: [bool; 6] = [true, false, true, true, false, false];
    let rows: Vec<Vec<String>> = kernel.accesses.iter().map(cells).collect();
    let mut widths = [0usize; 6];
    for row in &rows {
        for (wide, cell) in widths.iter_mut().zip(row) {
            *wide = (*wide).max(cell.chars().count());
        }
    }
    for (row, access) in rows.iter().zip(&kernel.accesses) {
        let mut line = String::from(" ");
        for ((cell, wide), right) in row.iter().zip(widths).zip(RIGHT) {
            let _ = if right { write!(line, " {cell:>wide$} ") } else { write!(line, " {cell:<wide$} ") };
        }
        let _ = write!(line, " {}", what(access));
        let _ = writeln!(out, "{}", cut(line.trim_end(), width));
    }
}

fn cells(access: &InspectAccess) -> Vec<String> {
    let bytes = |bytes: Option<i64>| bytes.map_or("?".to_owned(), |bytes| format!("{bytes} B"));
    let mut cells = vec![
        format!("{}:{}", access.line, access.column),
        format!("{} {}", access.space, access.operation),
        bytes(access.access_bytes),
    ];
    if access.unknown.is_none() {
        let confidence = access.confidence.clone().unwrap_or_else(|| "?".to_owned());
        cells.extend([bytes(access.lane_stride_bytes), cost(access), confidence]);
    }
    cells
}

/// `32/4 sectors`: what a request takes, and what would suffice.
fn cost(access: &InspectAccess) -> String {
    let pair = |taken: Option<f64>, ideal: Option<f64>, unit: &str| {
        let ideal = ideal.map_or("?".to_owned(), number);
        taken.map(|taken| format!("{}/{ideal} {unit}", number(taken)))
    };
    pair(access.sectors_per_request, access.ideal_sectors_per_request, "sectors")
        .or_else(|| pair(access.wavefronts_per_request, access.ideal_wavefronts_per_request, "wavefronts"))
        .unwrap_or_else(|| "?".to_owned())
}

/// At most two decimals.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `in + 128·tid.x`, or why it is not known; then what was assumed and where it lies if that is another file.
fn what(access: &InspectAccess) -> String {
    let base = access.base.as_deref().unwrap_or("?");
    let mut parts = vec![match (access.unknown.as_deref(), access.index.as_deref()) {
        (Some(reason), _) => format!("unknown: {base}: {reason}"),
        (None, Some(index)) => format!("{base} + {index}"),
        (None, None) => base.to_owned(),
    }];
    parts.extend((!access.assumptions.is_empty()).then(|| format!("if {}", access.assumptions.join("; "))));
    parts.extend(access.file.iter().map(|file| format!("in {file}")));
    parts.join("; ")
}

/// At most `width` characters, harmless to a terminal.
fn cut(text: &str, width: usize) -> String {
    let text = harmless(text);
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
