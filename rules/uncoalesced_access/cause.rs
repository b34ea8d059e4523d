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
    /// An address that is no sum of multiples of `threadIdx`: how many runs of neighbouring bytes a warp touches, and how long
    /// they are where they are alike.
    Scattered {
        runs: u32,
        bytes: Option<i64>,
        /// Lanes in a row at one small distance, the same in all rows: how many, and the bytes between them.
        row: Option<(usize, i64)>,
    },
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
            None => {
                usual_stride(access).map_or_else(|| scattered(access), |stride| Cause::Strided { stride })
            }
        }
    }

    /// Understandable alone, at the access; `width`: bytes of an element.
    pub fn label(&self, width: i64) -> String {
        let apart = |stride: i64| format!("{stride} elements ({} bytes)", stride * width);
        match self {
            Cause::ColumnMajor { row, column } => {
                format!("`threadIdx.{row}` picks the row, `threadIdx.{column}` the column")
            }
            Cause::Chunk { stride: Some(stride), .. } => {
                format!("each thread walks its own chunk, {} from its neighbour's", apart(*stride))
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
                format!("neighbouring lanes are {} apart", apart(*stride))
            }
            Cause::Sparse { active } => {
                format!("{} of 32 lanes take part, with holes between", mean(*active))
            }
            Cause::Scattered { row: Some((lanes, apart)), .. } => {
                format!("rows of {lanes} lanes, {apart} bytes between neighbours")
            }
            Cause::Scattered { runs, bytes: Some(bytes), .. } if *bytes <= width => {
                format!("each of {runs} lanes is in a place of its own")
            }
            Cause::Scattered { runs, bytes: Some(bytes), .. } => {
                format!("a warp touches {runs} runs of {bytes} bytes")
            }
            Cause::Scattered { runs: 0 | 1, bytes: None, .. } => {
                "the lanes of a warp are spread over memory".to_owned()
            }
            Cause::Scattered { runs, bytes: None, .. } => format!("a warp touches {runs} runs of bytes"),
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
            | Cause::Scattered { .. } => by_ratio(operation, ratio),
        }
    }

    /// Is the rest of each sector used by other accesses of the kernel?
    pub fn uses_all(&self) -> bool {
        matches!(self, Cause::Interleaved { whole: true, .. })
    }

    /// With the rest of each sector used by other accesses: is no time lost by the measurements ([`used_by_others`])?
    pub fn is_free(&self, operation: Operation, access: &AccessFact) -> bool {
        let width = access.width.0;
        let Some(parts) = self.parts(access) else { return false };
        let bytes = parts * width;
        match operation {
            Operation::Load => bytes <= FREE_LOADED && (parts <= MANY_LOADS || (width >= 4 && parts <= 12)),
            Operation::Store => bytes <= 4 || (parts <= 3 && width <= 4 && bytes < FREE_STORED),
            Operation::Atomic => false,
        }
    }

    /// Consecutive parts of a thread, as far as they are known.
    pub fn parts(&self, access: &AccessFact) -> Option<i64> {
        let request = access.request.as_ref()?;
        match self {
            // The rest of each sector is used: a chunk fills whole sectors, however far it is from its neighbour's.
            Cause::Chunk { length: Some(length), .. } => Some(*length),
            Cause::Interleaved { stride, .. } | Cause::Chunk { stride: Some(stride), .. } => Some(*stride),
            // Lanes in sectors of their own: how far they are apart is not known.
            _ if request.units >= request.active_lanes - 1e-6 => None,
            _ => Some((request.units / request.ideal.max(1e-9)).ceil() as i64),
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

    /// What helps; `whole`: other accesses or rounds use the rest of each sector.
    pub fn remedy(&self, seen: Seen<'_>, whole: bool) -> String {
        let access = seen.access;
        let one_access = |elements: i64| vector_accesses(elements, access.width.0, self.alignment(access));
        if whole
            && let Some(vector) = own_run(seen)
                .and_then(|(elements, alignment)| vector_accesses(elements, access.width.0, alignment))
        {
            return vector;
        }
        let few = match self {
            Cause::Chunk { length: Some(length), .. } => Some(*length),
            Cause::Strided { stride } if whole => Some(*stride),
            _ => None,
        };
        if let Some(vector) = few.and_then(one_access) {
            return vector;
        }
        match self {
            Cause::ColumnMajor { row, column } => format!(
                "swap the roles of `threadIdx.{row}` and `threadIdx.{column}`: let `threadIdx.x` walk the contiguous \
                 dimension"
            ),
            Cause::Chunk { stride: Some(stride), .. } => one_access(*stride).unwrap_or_else(|| {
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
            Cause::Interleaved { stride, whole } => match one_access(*stride).filter(|_| *whole) {
                Some(vector) => format!("{vector}; or split the {stride} parts into arrays of their own"),
                None => format!(
                    "split the {stride} interleaved parts into arrays of their own, or move all {stride} through shared memory"
                ),
            },
            Cause::Strided { .. } => {
                "let neighbouring threads access neighbouring elements, or stage tiles through shared memory".to_owned()
            }
            Cause::Sparse { .. } => "let neighbouring lanes take part, so that active lanes fill whole sectors".to_owned(),
            Cause::Scattered { bytes: Some(_), .. } => {
                "let runs fill whole sectors of 32 bytes: more neighbouring lanes in a row, or tiles staged through shared \
                 memory"
                    .to_owned()
            }
            Cause::Scattered { bytes: None, .. } => {
                "arrange the data in the order of the lanes, or stage them through shared memory".to_owned()
            }
        }
    }

    /// What the addresses at which the threads' parts begin are a multiple of, as far as they were computed: 16 at most.
    fn alignment(&self, access: &AccessFact) -> i64 {
        let bits = match self {
            Cause::Chunk { .. } => {
                let first = access.request.as_ref().and_then(|request| request.samples.first());
                first.map_or(0, |lanes| lanes.iter().fold(0, |bits, (_, address)| bits | address))
            }
            _ => access.lane_stride.map_or(0, |stride| stride.0),
        };
        1 << bits.trailing_zeros().min(4)
    }
}

/// The neighbouring elements that accesses of the kernel which differ by a constant move for a thread, this one among them: how
/// many, and what the address of the first is a multiple of, 16 at most.
fn own_run(seen: Seen<'_>) -> Option<(i64, i64)> {
    let Seen { kernel, access } = seen;
    let width = access.width.0.max(1);
    let mut places: Vec<i64> = kernel
        .accesses
        .iter()
        .filter(|other| is_near(access, other) && other.width == access.width && is_parallel(access, other))
        .map(|other| other.flow.constant.wrapping_sub(access.flow.constant))
        .collect();
    places.sort_unstable();
    places.dedup();
    let run = places.chunk_by(|a, b| b - a == width).find(|run| run.contains(&0))?;
    let first = run.first()?;
    let lanes = rounds(access).first()?;
    let bits = lanes.iter().fold(0, |bits, (_, address)| bits | address.wrapping_add(*first));
    (run.len() > 1).then_some((run.len() as i64, 1 << bits.trailing_zeros().min(4)))
}

/// The runs of neighbouring bytes that the dearest request touches.
fn scattered(access: &AccessFact) -> Cause {
    let Some(request) = access.request.as_ref() else {
        return Cause::Scattered { runs: 0, bytes: None, row: None };
    };
    let mut starts: Vec<i64> = request.worst_lanes.iter().map(|(_, address)| address).collect();
    starts.sort_unstable();
    starts.dedup();
    let width = access.width.0.max(1);
    let runs: Vec<i64> = starts.chunk_by(|a, b| b - a <= width).map(|run| run.len() as i64 * width).collect();
    let alike = runs.iter().all(|bytes| Some(bytes) == runs.first()) && runs.len() > 1;
    let row = row(&request.worst_lanes).filter(|(_, apart)| *apart > width);
    Cause::Scattered { runs: runs.len() as u32, bytes: runs.first().copied().filter(|_| alike), row }
}

/// Rows of lanes, more than one and all as long: the lanes of each and the bytes between two of them. Larger distances may be
/// made up of sizes that are not known.
fn row(lanes: &Lanes) -> Option<(usize, i64)> {
    const LARGEST: i64 = 128;
    let places: Vec<i64> = lanes.iter().map(|(_, address)| address).collect();
    let apart = places.get(1)? - places.first()?;
    let rows: Vec<&[i64]> = places.chunk_by(|a, b| b - a == apart).collect();
    let length = rows.first()?.len();
    let alike = rows.iter().all(|row| row.len() == length);
    (alike && length > 1 && rows.len() > 1 && (1..=LARGEST).contains(&apart)).then_some((length, apart))
}

/// Are the active lanes of the dearest request apart?
fn has_holes(access: &AccessFact) -> bool {
    let lanes = access.request.as_ref().map_or(0, |request| request.worst_lanes.active);
    let run = lanes >> lanes.trailing_zeros().min(31);
    // Neighbours without a gap: all ones up to the highest.
    run & run.wrapping_add(1) != 0
}

/// The elements of one thread as vector accesses, where they fill some; `alignment`: of the first of them.
fn vector_accesses(elements: i64, width: i64, alignment: i64) -> Option<String> {
    let bytes = elements * width;
    // Wider accesses there are none.
    if width >= 16 || !matches!(bytes, 2 | 4 | 8 | 16 | 32 | 48 | 64) {
        return None;
    }
    let piece = bytes.min(16).min(alignment);
    let accesses = match bytes / piece {
        _ if piece <= width || bytes % piece != 0 => return None,
        1 => format!("one access of {bytes} bytes"),
        count => format!("{count} accesses of {piece} bytes"),
    };
    Some(format!("move the {elements} elements of a thread by {accesses}, where its address allows"))
}

/// What it costs where other accesses use what this one leaves of a sector: times of a thread that moves `parts` consecutive
/// parts of `width` bytes over threads whose parts are interleaved (H200, 30 November 2026, 2 GiB; the table is in the rule's
/// README), the parts as measured that are nearest.
pub fn used_by_others(operation: Operation, parts: i64, width: i64) -> String {
    let (times, fate) = match operation {
        Operation::Load => {
            (&LOADED[..], "used by the thread's other accesses, so that no traffic is lost while L1 keeps it")
        }
        Operation::Store | Operation::Atomic => (&STORED[..], "written by the thread's other accesses"),
    };
    let nearest = times.iter().min_by_key(|(count, of, _)| ((count - parts).abs(), (of - width).abs()));
    let measured = nearest.map_or_else(String::new, |(count, of, time)| {
        let unit = if *of == 1 { "byte" } else { "bytes" };
        let is_it = (*count, *of) == (parts, width);
        let (before, after) = if is_it { ("", "") } else { ("the nearest case measured, ", ",") };
        format!(
            "; {before}{count} parts of {of} {unit}{after} took {time:.1} times as long as those of interleaved threads, on an H200"
        )
    });
    format!("the rest of each sector is {fate}{measured}")
}

/// Parts of a thread, their bytes, and the time over that of interleaved threads.
const LOADED: [(i64, i64, f64); 20] = [
    (2, 1, 1.0),
    (4, 1, 0.9),
    (8, 1, 0.9),
    (16, 1, 1.3),
    (4, 2, 0.9),
    (8, 2, 1.1),
    (16, 2, 1.9),
    (2, 4, 0.9),
    (4, 4, 1.0),
    (8, 4, 1.2),
    (12, 4, 1.0),
    (16, 4, 2.3),
    (2, 8, 1.0),
    (4, 8, 1.0),
    (8, 8, 1.2),
    (16, 8, 2.3),
    (2, 16, 1.0),
    (4, 16, 1.0),
    (8, 16, 1.3),
    (16, 16, 1.4),
];

const STORED: [(i64, i64, f64); 20] = [
    (2, 1, 1.0),
    (4, 1, 1.0),
    (8, 1, 4.0),
    (16, 1, 15.0),
    (4, 2, 1.6),
    (8, 2, 9.2),
    (16, 2, 21.0),
    (2, 4, 1.0),
    (4, 4, 1.3),
    (8, 4, 9.4),
    (12, 4, 5.5),
    (16, 4, 11.0),
    (2, 8, 1.2),
    (4, 8, 5.0),
    (8, 8, 6.0),
    (16, 8, 12.0),
    (2, 16, 2.5),
    (4, 16, 3.0),
    (8, 16, 7.0),
    (16, 16, 10.0),
];

/// Bytes of a thread up to which parts that are all loaded lose no time (H200: 48 bytes 1.0, 64 bytes 2.3).
const FREE_LOADED: i64 = 48;

/// Parts of a thread up to which loads of fewer than 4 bytes lose no time (H200: 4 parts 0.9, 8 parts 0.9 to 1.1, 16 parts 1.3 to 1.9).
const MANY_LOADS: i64 = 8;

/// The same of parts that are all stored, exclusive (H200: 12 bytes 1.0, 16 bytes 1.3).
const FREE_STORED: i64 = 16;

/// The share of the bytes of its sectors, 0…1, that this access and others of the kernel, of the same kind and by the same
/// lanes, use together in all rounds of the loops around them.
pub fn share_of_all(seen: Seen<'_>) -> f64 {
    let Seen { kernel, access } = seen;
    let own = rounds(access);
    let Some(first) = own.first() else { return 0.0 };
    // Accesses elsewhere do not join in: what they touch is no part of these sectors.
    let near = kernel.accesses.iter().filter(|other| is_near(access, other));
    let mine = global::union(&[(first, moved(access))]);
    let mut fitting: Vec<(Lanes, u32)> = Vec::new();
    for other in near {
        // What differs by a constant is there whatever else is not known of it.
        let lanes: Vec<Lanes> = if is_parallel(access, other) {
            let distance = other.flow.constant.wrapping_sub(access.flow.constant);
            own.iter().map(|lanes| shifted(lanes, distance)).collect()
        } else {
            rounds(other).to_vec()
        };
        let within = lanes.into_iter().map(|lanes| (lanes, moved(other))).filter(|(lanes, width)| {
            lanes.active == first.active
                && global::union(&[(lanes, *width), (first, moved(access))]).sectors == mine.sectors
        });
        fitting.extend(within);
    }
    let requests: Vec<(&Lanes, u32)> = fitting.iter().map(|(lanes, width)| (lanes, *width)).collect();
    let all = global::union(&requests);
    f64::from(all.used_bytes) / f64::from((SECTOR_BYTES * mine.sectors).max(1))
}

/// The same kind of access to the same array in the same loops.
fn is_near(access: &AccessFact, other: &AccessFact) -> bool {
    other.base == access.base && other.operation == access.operation && other.flow.loops == access.flow.loops
}

/// By the same lanes, at addresses that differ by a constant.
fn is_parallel(access: &AccessFact, other: &AccessFact) -> bool {
    other.flow.terms == access.flow.terms && other.flow.guard == access.flow.guard
}

/// The requests of one warp in the rounds of its loops.
fn rounds(access: &AccessFact) -> &[Lanes] {
    access.request.as_ref().and_then(|request| request.samples.get(..request.rounds)).unwrap_or(&[])
}

fn shifted(lanes: &Lanes, distance: i64) -> Lanes {
    Lanes { active: lanes.active, address: lanes.address.map(|address| address.wrapping_add(distance)) }
}

/// The bytes that an access moves for a lane: all pieces of a struct.
fn moved(access: &AccessFact) -> u32 {
    u32::try_from(access.bytes.0).ok().filter(|bytes| *bytes <= MOST_MOVED).unwrap_or(0).max(width_of(access))
}

/// A larger struct is not moved by accesses one after another.
const MOST_MOVED: u32 = 64;

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
