//! Reports over hand-made findings. The numbers are arithmetic: a warp of 32 lanes, 32-byte sectors, 32 banks of 4 bytes.

use std::path::Path;

use cudalint::ir::ast::Gap;
use cudalint::ir::facts::{Bytes, Confidence, MemorySpace, Operation, TrailStep};
use cudalint::lint::finding::{Applicability, Category, Finding, Fix, Level, Measured, Numbers, RuleInfo};
use cudalint::report::text::{Drawing, Style};
use cudalint::report::{Report, Summary};
use cudalint::source::{Edit, FileId, SourceFile, Sources, Span};

mod any;
mod machines;
mod people;
mod sarif;

pub static UNCOALESCED: RuleInfo = RuleInfo {
    name: "uncoalesced-access",
    summary: "global accesses that move more sectors than they need",
    category: Category::Coalescing,
    default_level: Level::Warning,
    since: "0.1.0",
    measured: None,
    doc: "# `uncoalesced-access`\n\nFinds global loads and stores whose warps\nmove more sectors than they need\n\n## What it finds\n",
};

pub static BANK_CONFLICT: RuleInfo = RuleInfo {
    name: "bank-conflict",
    summary: "shared accesses that take more wavefronts than they need",
    category: Category::Bank,
    default_level: Level::Warning,
    since: "0.1.0",
    measured: Some(Measured { right: 30, found: 31 }),
    doc: "# `bank-conflict`\n\nFinds shared accesses whose lanes meet in a bank.\n",
};

pub static GATHER: RuleInfo = RuleInfo {
    name: "irregular-access",
    summary: "accesses whose index is read from memory",
    category: Category::Coalescing,
    default_level: Level::Off,
    since: "0.1.0",
    measured: None,
    doc: "",
};

/// Line 4 has two characters outside the basic plane before the access; line 10 two findings of one rule.
const STRIDED: &str = "\
// Strided copy.
__global__ void copy(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    /* 😀é😀 */ out[i] = in[i * 32];
}

__global__ void transpose(float *out, const float *in) {
    __shared__ float tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    tile[x][y] = in[y * 32 + x]; out[x * 32 + y] += tile[x][y];
}
";

const HEADER: &str = "#pragma once\n#define AT(i) ((i) * 32)\n";

/// A project whose names need encoding, with a file outside the root.
pub struct Project {
    pub sources: Sources,
    pub findings: Vec<Finding>,
    pub suppressed: Vec<(Finding, String)>,
    pub gaps: Vec<Gap>,
}

pub const RULES: &[&RuleInfo] = &[&UNCOALESCED, &GATHER, &BANK_CONFLICT];

impl Project {
    pub fn empty() -> Project {
        Project { sources: Sources::default(), findings: vec![], suppressed: vec![], gaps: vec![] }
    }

    pub fn report(&self) -> Report<'_> {
        Report {
            sources: &self.sources,
            findings: &self.findings,
            suppressed: &self.suppressed,
            gaps: &self.gaps,
            rules: RULES,
            working_dir: Path::new("/home/u/repo/cuda"),
            root: Path::new("/home/u/repo"),
            summary: Summary {
                files: self.sources.len(),
                kernels: 2,
                accesses: 7,
                baselined: 0,
                elapsed: None,
            },
            category: None,
            sarif_max_level: Level::Error,
        }
    }
}

pub const UNICODE: Style = Style { drawing: Drawing::Unicode, ..Style::PLAIN };

fn at(file: FileId, text: &str, needle: &str) -> Span {
    let start = text.find(needle).unwrap();
    Span::new(file, start, start + needle.len())
}

pub fn project() -> Project {
    let mut sources = Sources::default();
    let strided = sources.add(SourceFile::new("src/a b/é#1.cu", STRIDED.to_owned()));
    let header = sources.add(SourceFile::new("/opt/inc/at.cuh", HEADER.to_owned()));
    let findings = vec![
        strided_load(strided, header),
        column_store(strided),
        shared_store(strided),
        shared_load(strided),
    ];
    let mut allowed = gather(strided);
    allowed.level = Level::Note;
    let gaps = vec![Gap {
        span: at(header, HEADER, "#pragma once"),
        reason: "macro `AT` is not an expression".to_owned(),
    }];
    Project { sources, findings, suppressed: vec![(allowed, "the table is tiny".to_owned())], gaps }
}

fn strided_load(file: FileId, header: FileId) -> Finding {
    Finding {
        rule: &UNCOALESCED,
        level: Level::Warning,
        span: at(file, STRIDED, "in[i * 32]"),
        message: "load of `in[i * 32]` moves 32 sectors per request where 4 suffice".to_owned(),
        label: "lanes are 128 B apart".to_owned(),
        notes: vec!["12.5 % of the bytes fetched are used".to_owned()],
        help: Some("let neighbouring lanes read neighbouring elements: `in[i]`".to_owned()),
        trail: vec![
            TrailStep { span: at(file, STRIDED, "threadIdx.x"), text: "lane: 1 per lane".to_owned() },
            TrailStep { span: at(header, HEADER, "(i) * 32"), text: "times 32 elements of 4 B".to_owned() },
        ],
        kernel: "copy".to_owned(),
        access_text: "in[i * 32]".to_owned(),
        // 32 lanes · 4 B = 128 B = 4 sectors at best; at a lane stride of 128 B each lane has its own sector.
        numbers: Numbers {
            launch_shape: Some("256".to_owned()),
            launch_source: Some("launch site".to_owned()),
            space: Some(MemorySpace::Global),
            operation: Some(Operation::Load),
            access_bytes: Some(Bytes(4)),
            lane_stride: Some(Bytes(128)),
            sectors: Some(32.0),
            ideal_sectors: Some(4.0),
            confidence: Some(Confidence::Shaped),
            ..Numbers::default()
        },
        fix: None,
    }
}

fn shared_store(file: FileId) -> Finding {
    Finding {
        rule: &BANK_CONFLICT,
        level: Level::Error,
        span: at(file, STRIDED, "tile[x][y]"),
        message: "store to `tile[x][y]` is a 32-way bank conflict".to_owned(),
        label: "32 lanes in bank 0".to_owned(),
        notes: vec![],
        help: None,
        trail: vec![TrailStep {
            span: at(file, STRIDED, "tile[32][32]"),
            text: "rows of 32 words".to_owned(),
        }],
        kernel: "transpose".to_owned(),
        access_text: "tile[x][y]".to_owned(),
        // A lane stride of 32 words puts all 32 lanes in one bank: 32 wavefronts where one suffices.
        numbers: Numbers {
            launch_shape: Some("32x32".to_owned()),
            launch_source: Some("hypothesis".to_owned()),
            space: Some(MemorySpace::Shared),
            operation: Some(Operation::Store),
            access_bytes: Some(Bytes(4)),
            lane_stride: Some(Bytes(128)),
            wavefronts: Some(32.0),
            ideal_wavefronts: Some(1.0),
            confidence: Some(Confidence::Assumed),
            assumptions: vec!["the block is 32x32".to_owned(), "all lanes are active".to_owned()],
            ..Numbers::default()
        },
        fix: Some(Fix {
            title: "pad each row by one word (128 B more shared memory)".to_owned(),
            applicability: Applicability::Unsafe,
            edits: vec![Edit {
                span: at(file, STRIDED, "32];\n    int x"),
                replacement: "33];\n    int x".to_owned(),
            }],
        }),
    }
}

/// The second finding of its rule on its line.
fn shared_load(file: FileId) -> Finding {
    let start = STRIDED.rfind("tile[x][y]").unwrap();
    let numbers = Numbers { operation: Some(Operation::Load), ..shared_store(file).numbers };
    Finding {
        level: Level::Warning,
        span: Span::new(file, start, start + "tile[x][y]".len()),
        message: "load of `tile[x][y]` is a 32-way bank conflict".to_owned(),
        trail: vec![],
        fix: None,
        numbers,
        ..shared_store(file)
    }
}

fn column_store(file: FileId) -> Finding {
    Finding {
        level: Level::Note,
        span: at(file, STRIDED, "out[x * 32 + y]"),
        message: "atomic on `out[x * 32 + y]`\u{1b}[31m moves 32 sectors".to_owned(),
        trail: vec![],
        access_text: "out[x * 32 + y]".to_owned(),
        help: Some("stage through shared memory".to_owned()),
        fix: Some(Fix {
            title: "stage it".to_owned(),
            applicability: Applicability::DisplayOnly,
            edits: vec![],
        }),
        ..strided_load(file, file)
    }
}

fn gather(file: FileId) -> Finding {
    Finding {
        rule: &GATHER,
        span: at(file, STRIDED, "out[i]"),
        message: "the index of `out[i]` is read from memory".to_owned(),
        label: String::new(),
        notes: vec![],
        help: None,
        trail: vec![],
        access_text: "out[i]".to_owned(),
        numbers: Numbers::default(),
        ..strided_load(file, file)
    }
}
