//! Why the lanes of a warp are apart, what that costs, and what helps.

use cudalint::ir::facts::{AccessFact, Confidence, LaneWord, Operation};
use cudalint::lint::place::{Seen, mean, width_of};
use cudalint::memory::device::SECTOR_BYTES;
use cudalint::memory::{Lanes, global};

/// Distances are in elements of the access.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// `threadIdx.<row>` multiplies the pitch, `threadIdx.<column>` walks along the row.
    ColumnMajor {
        row: char,
        column: char,
    },
    /// Each thread walks over consecutive elements of its own; `stride` is `None` where a size is unknown.
    Chunk {
        stride: Option<i64>,
        text: String,
        /// How many, where they are few.
        length: Option<i64>,
    },
    /// Contiguous along `threadIdx.x`, but the block is narrower than a warp.
    NarrowRows {
        block_x: u32,
    },
    /// The distance between lanes contains an unknown.
    Apart {
        text: String,
    },
    /// `k*i + c`, with the other parts accessed by the same kernel.
    Interleaved {
        stride: i64,
        /// The kernel uses all the parts: what one access leaves of a sector, the others take.
        whole: bool,
    },
    Strided {
        stride: i64,
    },
    /// Only some of the lanes take part, with others between them.
    Sparse {
        active: f64,
    },
    /// An address that is no sum of multiples of `threadIdx`.
    Scattered,
}

impl Cause {
    pub fn of(seen: Seen<'_>) -> Cause {
        let Seen { kernel, access } = seen;
        let width = access.width.0.max(1);
        // A distance with an unknown in it is no number to print, whatever it was measured with.
        let known = access.lane_terms.iter().all(|word| word.coefficient.is_some());
        let step = access.lane_stride.map(|stride| stride.0.abs()).filter(|_| known);
        if step.is_none_or(|step| step > width)
            && access.iteration_stride.is_some_and(|stride| stride.0.abs() == width)
        {
            let stride = step.map(|step| step / width);
            return Cause::Chunk {
                stride,
                text: lane_text(access),
                length: access.iterations.filter(|count| (2..=32).contains(count)),
            };
        }
        if let Some(cause) = by_axes(access, kernel.shape_of(access).block) {
            return cause;
        }
        match step {
            Some(step) if step > width && step % width == 0 => {
                let stride = step / width;
                let parts = parts(seen, step);
                if parts > 1 {
                    Cause::Interleaved { stride, whole: parts * width >= step }
                } else {
                    Cause::Strided { stride }
                }
            }
            _ => Cause::odd(access),
        }
    }

    fn odd(access: &AccessFact) -> Cause {
        let active = access.request.as_ref().map_or(32.0, |request| request.active_lanes);
        let only = access.lane_terms.len() == 1 && active > 31.5;
        match lane_word(access).filter(|word| word.coefficient.is_none() && word.axis == 'x' && only) {
            Some(word) => Cause::Apart { text: word.text.clone() },
            None if active < 31.5 && has_holes(access) => Cause::Sparse { active },
            None => usual_stride(access).map_or(Cause::Scattered, |stride| Cause::Strided { stride }),
        }
    }

    /// Understandable alone, at the access.
    pub fn label(&self) -> String {
        match self {
            Cause::ColumnMajor { row, column } => {
                format!("`threadIdx.{row}` picks the row, `threadIdx.{column}` the column")
            }
            Cause::Chunk { stride: Some(stride), .. } => {
                format!("each thread walks its own chunk, {stride} elements from its neighbour's")
            }
            Cause::Chunk { stride: None, length: Some(length), .. } => {
                format!("each thread walks {length} elements of its own")
            }
            Cause::Chunk { stride: None, text, .. } if text.is_empty() => {
                "each thread walks its own row".to_owned()
            }
            Cause::Chunk { stride: None, text, .. } => {
                format!("each thread walks its own row, {text} bytes from its neighbour's")
            }
            Cause::NarrowRows { block_x } => {
                format!(
                    "rows of {block_x} threads: a warp spans {} of them",
                    32u32.div_ceil((*block_x).max(1))
                )
            }
            // 32 lanes span 32 times the distance, and a sector is 32 bytes.
            Cause::Apart { text } => {
                format!("neighbouring lanes are {text} bytes apart: min({text}, 32) sectors")
            }
            Cause::Interleaved { stride, .. } | Cause::Strided { stride } => {
                format!("neighbouring lanes are {stride} elements apart")
            }
            Cause::Sparse { active } => {
                format!("{} of 32 lanes take part, with holes between", mean(*active))
            }
            Cause::Scattered => "the lanes of a warp are spread over memory".to_owned(),
        }
    }

    /// Why it costs: times measured on an H200, as a multiple of the coalesced access.
    pub fn cost(&self, operation: Operation, ratio: f64) -> String {
        match self {
            // What L1 keeps is of no use to stores.
            Cause::Chunk { .. } if operation != Operation::Load => by_ratio(operation, ratio),
            Cause::Chunk { .. } => {
                "the next iterations find the rest of each sector in L1 while it lasts: measured 2 to 4 times the time \
                 of interleaved threads, on an H200"
                    .to_owned()
            }
            Cause::NarrowRows { .. } => {
                "measured 1.7 times the time of 32-wide blocks at 4 threads a row and 3.5 at 2, on an H200".to_owned()
            }
            Cause::ColumnMajor { .. }
            | Cause::Apart { .. }
            | Cause::Interleaved { .. }
            | Cause::Strided { .. }
            | Cause::Sparse { .. }
            | Cause::Scattered => by_ratio(operation, ratio),
        }
    }

    /// Is the rest of each sector used by other accesses of the kernel?
    pub fn uses_all(&self) -> bool {
        matches!(self, Cause::Interleaved { whole: true, .. })
    }

    /// With the rest of each sector used by other accesses: is no time lost by the measurements ([`used_by_others`])?
    pub fn is_free(&self, operation: Operation, access: &AccessFact) -> bool {
        let width = access.width.0;
        let Some(request) = access.request.as_ref() else { return false };
        let parts = match self {
            // The rest of each sector is used: a chunk fills whole sectors, however far it is from its neighbour's.
            Cause::Chunk { length: Some(length), .. } => *length,
            Cause::Interleaved { stride, .. } | Cause::Chunk { stride: Some(stride), .. } => *stride,
            // Lanes in sectors of their own: how far they are apart is not known.
            _ if request.units >= request.active_lanes - 1e-6 => return false,
            _ => (request.units / request.ideal.max(1e-9)).ceil() as i64,
        };
        let bytes = parts * width;
        match operation {
            Operation::Load => bytes <= FREE_LOADED && (parts < MANY_LOADS || (width >= 4 && parts <= 12)),
            Operation::Store => parts <= 2 || bytes <= 4 || (parts == 3 && bytes < FREE_STORED),
            Operation::Atomic => false,
        }
    }

    /// Are the parts of a thread as few as those that were measured?
    pub fn is_measured(&self) -> bool {
        !matches!(self, Cause::Chunk { length: None, .. })
    }

    /// Do the next iterations of a thread use what one leaves of a sector?
    pub fn is_chunk(&self) -> bool {
        matches!(self, Cause::Chunk { .. })
    }

    /// What helps; `width`: bytes that the access moves; `whole`: other accesses or rounds use the rest of each sector.
    pub fn remedy(&self, width: i64, whole: bool) -> String {
        let few = match self {
            Cause::Chunk { length: Some(length), .. } => Some(*length),
            Cause::Strided { stride } if whole => Some(*stride),
            _ => None,
        };
        if let Some(vector) = few.and_then(|elements| one_access(elements, width)) {
            return vector;
        }
        match self {
            Cause::ColumnMajor { row, column } => format!(
                "swap the roles of `threadIdx.{row}` and `threadIdx.{column}`: let `threadIdx.x` walk the contiguous \
                 dimension"
            ),
            Cause::Chunk { stride: Some(stride), .. } => one_access(*stride, width).unwrap_or_else(|| {
                "interleave the threads: start at the thread's index and step by the number of threads (a grid-stride \
                 loop)"
                    .to_owned()
            }),
            Cause::Chunk { stride: None, .. } => {
                "let neighbouring lanes walk along one row together (a warp per row), or stage tiles through shared \
                 memory"
                    .to_owned()
            }
            Cause::NarrowRows { .. } => "make the block 32 threads wide in x".to_owned(),
            Cause::Apart { .. } => {
                "map `threadIdx.x` to the contiguous dimension, or stage tiles through shared memory".to_owned()
            }
            Cause::Interleaved { stride, whole } => match one_access(*stride, width).filter(|_| *whole) {
                Some(vector) => format!("{vector}; or split the {stride} parts into arrays of their own"),
                None => format!(
                    "split the {stride} interleaved parts into arrays of their own, or move all {stride} through shared memory"
                ),
            },
            Cause::Strided { .. } => {
                "let neighbouring threads access neighbouring elements, or stage tiles through shared memory".to_owned()
            }
            Cause::Sparse { .. } => "let neighbouring lanes take part, so that active lanes fill whole sectors".to_owned(),
            Cause::Scattered => "arrange the data in the order of the lanes, or stage them through shared memory".to_owned(),
        }
    }
}

/// Are the active lanes of the dearest request apart?
fn has_holes(access: &AccessFact) -> bool {
    let lanes = access.request.as_ref().map_or(0, |request| request.worst_lanes.active);
    let run = lanes >> lanes.trailing_zeros().min(31);
    // Neighbours without a gap: all ones up to the highest.
    run & run.wrapping_add(1) != 0
}

/// The elements of one thread as vector accesses, where they fill some.
fn one_access(elements: i64, width: i64) -> Option<String> {
    let bytes = elements * width;
    // Wider accesses there are none.
    if width >= 16 {
        return None;
    }
    let accesses = match bytes {
        2 | 4 | 8 | 16 => format!("one access of {bytes} bytes"),
        32 | 48 | 64 => format!("{} accesses of 16 bytes", bytes / 16),
        _ => return None,
    };
    Some(format!("move the {elements} elements of a thread by {accesses}, where its address allows"))
}

/// What it costs where other accesses use what this one leaves of a sector: times of a thread that moves consecutive parts
/// over threads whose parts are interleaved (H200, 30 November 2026, 2 GiB; the table is in the rule's README).
pub fn used_by_others(operation: Operation) -> &'static str {
    match operation {
        Operation::Load => {
            "the rest of each sector is used by the thread's other accesses, so that no traffic is lost while L1 keeps it; \
             measured on an H200: up to 7 parts 0.9 to 1.0 times the time of interleaved threads, 8 parts 0.9 to 1.2, 16 parts of \
             1, 2 and 4 bytes 1.3, 1.9 and 2.3"
        }
        Operation::Store | Operation::Atomic => {
            "the rest of each sector is written by the thread's other accesses; measured on an H200: 2 parts 1.0 to 1.2 times the \
             time of interleaved threads, 4 parts of 2 and 4 bytes 1.6 and 1.3, 8 parts 4 to 9, 16 parts 11 to 21"
        }
    }
}

/// Bytes of a thread up to which parts that are all loaded lose no time (H200: 48 bytes 1.0, 64 bytes 2.3).
const FREE_LOADED: i64 = 48;

/// Parts of a thread from which loads of fewer than 4 bytes lose time (H200: 4 parts 0.9, 8 parts 0.9 to 1.1, 16 parts 1.3 to 1.9).
const MANY_LOADS: i64 = 8;

/// The same of parts that are all stored, exclusive (H200: 12 bytes 1.0, 16 bytes 1.3).
const FREE_STORED: i64 = 16;

/// Requests of an access that are looked at for the rest of a sector: 32 bytes are as many of the narrowest.
const ROUNDS: usize = 32;

/// Do other accesses of the kernel, of the same kind and by the same lanes, use all that this one leaves of its sectors?
pub fn is_rest_used(seen: Seen<'_>) -> bool {
    let sample = |access: &'_ AccessFact| access.request.as_ref()?.samples.first().cloned();
    let Some(own) = sample(seen.access) else { return false };
    // So do the next rounds of a loop. Accesses elsewhere do not join in: what they touch is no part of these sectors.
    let near = |other: &&AccessFact| {
        other.base == seen.access.base
            && other.operation == seen.access.operation
            && other.flow.loops == seen.access.flow.loops
    };
    let others: Vec<(Lanes, u32)> = seen
        .kernel
        .accesses
        .iter()
        .filter(near)
        .flat_map(|other| {
            // What walks along memory in a loop has its next rounds among its requests; else they are those of other warps.
            let walks = other.iteration_stride.is_some_and(|stride| stride.0.abs() == other.width.0);
            let samples = other.request.as_ref().map_or(&[][..], |request| &request.samples);
            samples.iter().take(if walks { ROUNDS } else { 1 }).map(|lanes| (lanes.clone(), width_of(other)))
        })
        .filter(|(lanes, _)| lanes.active == own.active)
        .collect();
    let requests: Vec<(&Lanes, u32)> = others.iter().map(|(lanes, width)| (lanes, *width)).collect();
    let mine = global::union(&[(&own, width_of(seen.access))]);
    let fitting: Vec<(&Lanes, u32)> = requests
        .into_iter()
        .filter(|request| global::union(&[*request, (&own, width_of(seen.access))]).sectors == mine.sectors)
        .collect();
    let all = global::union(&fitting);
    all.sectors == mine.sectors && all.used_bytes == SECTOR_BYTES * all.sectors
}

/// The distance, in elements, that most neighbouring lanes of the dearest request have, where no made-up size is in it.
fn usual_stride(access: &AccessFact) -> Option<i64> {
    if access.confidence == Confidence::Assumed {
        return None;
    }
    let lanes: Vec<(u32, i64)> = access.request.as_ref()?.worst_lanes.iter().collect();
    let mut steps: Vec<i64> = lanes
        .windows(2)
        .filter_map(|pair| if let [(_, a), (_, b)] = pair { Some(b - a) } else { None })
        .collect();
    let all = steps.len();
    steps.sort_unstable();
    let runs = steps.chunk_by(|a, b| a == b);
    let most = runs.max_by_key(|run| run.len()).filter(|run| 4 * run.len() >= 3 * all)?;
    let (step, width) = (most.first()?.abs(), access.width.0.max(1));
    (step > width && step % width == 0).then_some(step / width)
}

/// The distance between lanes along the axis that varies fastest, as the sum of its terms.
fn lane_text(access: &AccessFact) -> String {
    let Some(first) = lane_word(access) else { return String::new() };
    let words = access.lane_terms.iter().filter(|word| word.axis == first.axis);
    words.map(|word| word.text.as_str()).collect::<Vec<_>>().join(" + ")
}

/// The term of the axis that varies fastest over lanes.
fn lane_word(access: &AccessFact) -> Option<&LaneWord> {
    access.lane_terms.iter().min_by_key(|word| word.axis)
}

/// Causes that the axes of `threadIdx` tell: column-major, narrow rows.
fn by_axes(access: &AccessFact, block: [u32; 3]) -> Option<Cause> {
    let width = access.width.0;
    let contiguous = access
        .lane_terms
        .iter()
        .find(|word| word.coefficient.is_some_and(|coefficient| coefficient.0.abs() == width))?;
    let [block_x, ..] = block;
    if contiguous.axis == 'x' {
        return (block_x < 32 && access.lane_terms.len() > 1).then_some(Cause::NarrowRows { block_x });
    }
    let row = access.lane_terms.iter().find(|word| word.axis < contiguous.axis)?;
    Some(Cause::ColumnMajor { row: row.axis, column: contiguous.axis })
}

/// How many of the elements from one lane to the next the kernel's accesses of this kind use, this one included.
fn parts(seen: Seen<'_>, step: i64) -> i64 {
    let first = |access: &AccessFact| {
        let lanes = access.request.as_ref()?.samples.first()?;
        lanes.iter().next().map(|(_, address)| address)
    };
    let Some(here) = first(seen.access) else { return 0 };
    let alike = seen.kernel.accesses.iter().filter(|other| {
        other.base == seen.access.base
            && other.operation == seen.access.operation
            && other.lane_stride.is_some_and(|stride| stride.0.abs() == step)
    });
    let mut places: Vec<i64> = alike
        .filter_map(first)
        .filter(|there| (there - here).abs() < step)
        .map(|there| there.rem_euclid(step))
        .collect();
    places.sort_unstable();
    places.dedup();
    places.len() as i64
}

/// The classes of strided accesses as measured: one element per thread to eight independent ones per thread.
fn by_ratio(operation: Operation, ratio: f64) -> String {
    let times = match (operation, ratio) {
        (Operation::Load, ratio) if ratio < 2.9 => "1.1 to 1.8",
        (Operation::Load, ratio) if ratio < 3.9 => "1.4 to 2.7",
        (Operation::Load, ratio) if ratio < 7.9 => "1.6 to 3.5",
        (Operation::Load, _) => "2.7 to 15",
        (Operation::Store, ratio) if ratio < 3.9 => "1.6 to 3.9",
        (Operation::Store, ratio) if ratio < 7.9 => "2.9 to 7.8",
        (Operation::Store, _) => "5.4 to 22",
        (Operation::Atomic, _) => {
            return "each sector that an atomic touches is an operation of its own at the L2".to_owned();
        }
    };
    let partly = if operation == Operation::Store { ": partly written sectors cost most" } else { "" };
    format!("measured {times} times the time of the coalesced {operation}, on an H200{partly}")
}
