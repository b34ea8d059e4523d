//! Which layout of a shared array takes its bank conflicts away?
//!
//! Two remedies leave every index of the source as it is. *Padding* widens the innermost extent, `tile[32][32 + 1]`, so
//! that consecutive rows start in different banks. An *XOR swizzle* permutes each row on its own,
//! `tile[r][c ^ (r & 31)]`, and costs no memory; in an array of more dimensions r may be any of the outer indices.
//! Which of them helps depends on the block shape and on every access to the array, so each candidate is simulated over
//! every request of every access; nothing is known in advance.
//!
//! Worked example, measured on an H200: a 16x16 `float` tile in a 16x16 block is written by rows and read by columns.
//! A warp covers two rows.
//!
//! ```text
//! layout              row write   column read   wavefronts per request
//! [16][16]                1            8        the column's 16 words lie in 2 banks
//! [16][17]                2            2        the second row ends in bank 0, where the first begins
//! [16][18]                2            1
//! [16][20]                2            2
//! [r][c ^ (r & ~1)]       1            1
//! ```
//!
//! All paddings make the row write worse, so a swizzle is proposed: `[r][c ^ (r & 15)]`, which does the same as the last
//! line and is simpler. For 32x32, padding by one is already perfect.

use std::fmt;

use super::device::{WARP_LANES, WAVEFRONT_BYTES, WIDEST_ACCESS_BYTES};
use super::shared::{SharedOp, least, wavefronts};
use super::{Lanes, Tally};

/// A shared array: its shape, without source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayUse {
    /// In elements, outermost first, innermost last.
    pub extents: Vec<u64>,
    pub element_bytes: u32,
}

/// One access of the source to the array, with the requests to judge it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessUse {
    /// Bytes per lane; more than an element for vector accesses. Of no meaning for [`SharedOp::Matrix`].
    pub width_bytes: u32,
    pub op: SharedOp,
    pub requests: Vec<IndexRequest>,
}

/// The indices of one request, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexRequest {
    /// Bit `l` is set where lane `l` takes part.
    pub active: u32,
    /// The index of each lane for each extent, outermost first. One dimension alone is a flat index, which the extents
    /// take apart: so a flat array that the source uses as rows may be given the extents of those rows.
    pub index: Vec<[i64; WARP_LANES as usize]>,
}

/// Where the element `[r][c]` of the two innermost extents lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// `[r][c]`
    Plain,
    /// `[r][c]` with the innermost extent widened by `elements`.
    Pad { elements: u64 },
    /// `[r][c ^ (((r >> shift) & mask) · unit)]`
    Swizzle(Swizzle),
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Plain => f.write_str("[r][c]"),
            Layout::Pad { elements } => write!(f, "[r][c], {elements} elements more in each row"),
            Layout::Swizzle(swizzle) => write!(f, "[r][{swizzle}]"),
        }
    }
}

/// An XOR swizzle of the innermost index c by an index r further out: `c ^ (((r >> shift) & mask) · unit)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swizzle {
    /// Which index r is: its place in [`ArrayUse::extents`], so 0 for an array of two dimensions.
    pub dimension: usize,
    pub shift: u32,
    /// Less than the innermost extent divided by `unit`.
    pub mask: u64,
    /// Elements that stay together: those of the widest vector access, else 1. A power of two.
    pub unit: u64,
}

impl fmt::Display for Swizzle {
    /// `c ^ (r & 14)`, `c ^ ((r >> 1) & 7) * 4`: valid C for the indices r and c.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Swizzle { dimension: _, shift, mask, unit } = self;
        match shift {
            0 => write!(f, "c ^ (r & {mask})")?,
            _ => write!(f, "c ^ ((r >> {shift}) & {mask})")?,
        }
        if *unit > 1 { write!(f, " * {unit}") } else { Ok(()) }
    }
}

/// What to do about the bank conflicts of an array. Totals are wavefronts over all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// Widen the innermost extent.
    Pad { elements: u64, total_before: u64, total_after: u64, extra_bytes: u64 },
    /// Permute the rows.
    Swizzle { swizzle: Swizzle, total_before: u64, total_after: u64 },
    /// No layout tried is better in total without making an access worse.
    None,
}

/// Most requests that are simulated. Beyond it every access is thinned evenly and the totals are those of the requests
/// that remain, so only their ratio means anything; a block of 1024 threads makes 32 requests of each access, so
/// this is 64 accesses, or fewer in loops.
pub const MOST_REQUESTS: usize = 2048;

/// Most swizzles that are tried: enough for an array of three dimensions. A simulated request takes about a microsecond.
const MOST_SWIZZLES: usize = 72;

/// Finds the layout with the fewest wavefronts in total among paddings of 1, 2, 4, 8 elements (and 16 bytes) and XOR
/// swizzles.
///
/// A candidate is out if any access takes more wavefronts than it does now, or if any vector access loses its
/// alignment. Equal totals are decided for padding before swizzling (it edits one place of the source), then fewer
/// extra bytes, then the simpler mask. Nothing is proposed where an index leaves its extent: such an access means
/// another element once the layout changes.
pub fn search(array: &ArrayUse, accesses: &[AccessUse]) -> Remedy {
    let Some(uses) = Uses::of(array, accesses) else { return Remedy::None };
    let Some(before) = uses.simulate(Layout::Plain, &Bound::NONE) else { return Remedy::None };
    let total_before: u64 = before.iter().map(|tally| tally.units).sum();
    let floor = uses.least();
    let mut best = (total_before, Layout::Plain);
    for layout in candidates(&uses) {
        let (total_best, _) = best;
        if total_best <= floor {
            break;
        }
        let bound = Bound { per_access: &before, total_below: total_best };
        if let Some(after) = uses.simulate(layout, &bound) {
            best = (after.iter().map(|tally| tally.units).sum(), layout);
        }
    }
    match best {
        (_, Layout::Plain) => Remedy::None,
        (total_after, Layout::Pad { elements }) => {
            Remedy::Pad { elements, total_before, total_after, extra_bytes: uses.extra_bytes(elements) }
        }
        (total_after, Layout::Swizzle(swizzle)) => Remedy::Swizzle { swizzle, total_before, total_after },
    }
}

/// What each access costs under a layout, in the order of `accesses`; `None` where the layout does not fit the array:
/// an index leaves its extent or a vector access is not aligned.
pub fn simulate(array: &ArrayUse, accesses: &[AccessUse], layout: Layout) -> Option<Vec<Tally>> {
    let uses = Uses::of(array, accesses)?;
    let fits = match layout {
        Layout::Plain => true,
        Layout::Pad { elements } => uses.keeps_rows_aligned(elements),
        Layout::Swizzle(swizzle) => uses.permutes(swizzle),
    };
    fits.then(|| uses.simulate(layout, &Bound::NONE)).flatten()
}

/// All layouts to try, best first among equals.
fn candidates(uses: &Uses) -> Vec<Layout> {
    let mut layouts = Vec::new();
    // Padding a single row moves nothing.
    if uses.rows > 1 {
        let small = |pad: u64| pad <= 8 || pad.saturating_mul(uses.element_bytes) <= 16;
        let useful = |&pad: &u64| small(pad) && uses.keeps_rows_aligned(pad);
        layouts.extend([1, 2, 4, 8, 16].into_iter().filter(useful).map(|elements| Layout::Pad { elements }));
        layouts.extend(swizzles(uses).into_iter().map(Layout::Swizzle));
    }
    layouts
}

/// Masks are runs of ones, `c ^ (r & 31)`, `c ^ (r & ~1)`; those from bit 0 up come first, longest first. Bits that move
/// an element by a multiple of 128 bytes do not change its bank and are not tried. The nearest index comes first.
fn swizzles(uses: &Uses) -> Vec<Swizzle> {
    let unit = uses.vector_elements;
    let units_of_row = uses.columns.checked_div(unit).unwrap_or(0);
    let units_of_banks =
        u64::from(WAVEFRONT_BYTES).checked_div(unit.saturating_mul(uses.element_bytes)).unwrap_or(0);
    if !uses.columns.is_power_of_two() || !unit.is_power_of_two() || units_of_row.min(units_of_banks) < 2 {
        return Vec::new();
    }
    let bits = units_of_row.min(units_of_banks).ilog2();
    let from_bit_0 = (1..=bits).rev().map(|high| (1 << high) - 1);
    let to_the_top = (1..bits).map(|low| (1 << bits) - (1 << low));
    let masks: Vec<u64> = from_bit_0.chain(to_the_top).collect();
    let mut found = Vec::new();
    for (dimension, _) in uses.outer.iter().enumerate().rev().filter(|(_, outer)| outer.extent > 1) {
        for shift in 0..=3 {
            found.extend(masks.iter().map(|&mask| Swizzle { dimension, shift, mask, unit }));
        }
    }
    found.truncate(MOST_SWIZZLES);
    found
}

/// What a candidate has to stay within.
struct Bound<'a> {
    /// No access may take more than this.
    per_access: &'a [Tally],
    /// The sum has to stay below this.
    total_below: u64,
}

impl Bound<'_> {
    const NONE: Bound<'static> = Bound { per_access: &[], total_below: u64::MAX };
}

/// The requests, with every index taken apart into its place.
struct Uses {
    element_bytes: u64,
    /// The innermost extent.
    columns: u64,
    /// All other extents.
    outer: Vec<Outer>,
    /// All other extents multiplied.
    rows: u64,
    /// Elements of the widest access.
    vector_elements: u64,
    /// What the widest vector access needs every row to start at, in bytes.
    alignment: u64,
    accesses: Vec<PlacedAccess>,
}

struct PlacedAccess {
    width_bytes: u32,
    op: SharedOp,
    requests: Vec<Vec<(u32, Place)>>,
}

/// An element: row `row` of all rows, the outer extents counted in, and column `c`.
#[derive(Clone, Copy)]
struct Place {
    row: i64,
    c: i64,
}

/// An extent other than the innermost.
struct Outer {
    extent: i64,
    /// Rows from one index to the next.
    rows_apart: i64,
}

impl Outer {
    /// All extents but the innermost, outermost first; `None` if the array is larger than any memory.
    fn of(extents: &[u64]) -> Option<Vec<Outer>> {
        let mut rows_apart: i64 = 1;
        let mut outer = Vec::with_capacity(extents.len());
        for &extent in extents.iter().rev() {
            let extent = i64::try_from(extent).ok()?;
            outer.push(Outer { extent, rows_apart });
            rows_apart = rows_apart.checked_mul(extent)?;
        }
        outer.reverse();
        Some(outer)
    }
}

impl Uses {
    fn of(array: &ArrayUse, accesses: &[AccessUse]) -> Option<Uses> {
        let (&columns, outer) = array.extents.split_last()?;
        let element_bytes = u64::from(array.element_bytes);
        if array.extents.contains(&0) || element_bytes == 0 {
            return None;
        }
        let requests: usize = accesses.iter().map(|access| access.requests.len()).sum();
        // Odd, so that thinning meets all warps of a block in turn and not always the same.
        let step = requests.div_ceil(MOST_REQUESTS) | 1;
        let mut placed = Vec::with_capacity(accesses.len());
        for access in accesses {
            let width_bytes = match access.op {
                SharedOp::Matrix(_) => WIDEST_ACCESS_BYTES,
                SharedOp::Load
                | SharedOp::Store
                | SharedOp::Atomic
                | SharedOp::AtomicIncrement
                | SharedOp::AtomicCas
                | SharedOp::AtomicLoop => access.width_bytes,
            };
            let requests =
                access.requests.iter().step_by(step).map(|request| places(array, request, width_bytes));
            placed.push(PlacedAccess {
                width_bytes,
                op: access.op,
                requests: requests.collect::<Option<_>>()?,
            });
        }
        let widest = placed.iter().map(|access| u64::from(access.width_bytes)).max().unwrap_or(0);
        let vectors = placed.iter().filter_map(|access| alignment(access.width_bytes, element_bytes));
        Some(Uses {
            element_bytes,
            columns,
            rows: outer.iter().fold(1, |rows, &extent| rows.saturating_mul(extent)),
            outer: Outer::of(outer)?,
            vector_elements: widest.div_ceil(element_bytes).max(1),
            alignment: vectors.max().unwrap_or(1),
            accesses: placed,
        })
    }

    fn extra_bytes(&self, pad: u64) -> u64 {
        pad.saturating_mul(self.rows).saturating_mul(self.element_bytes)
    }

    /// Whether each row of a padded array starts where the widest vector access needs it to.
    fn keeps_rows_aligned(&self, pad: u64) -> bool {
        let pitch = self.columns.saturating_add(pad);
        pitch.saturating_mul(self.element_bytes).checked_rem(self.alignment) == Some(0)
    }

    /// Whether a swizzle maps each row onto itself and keeps vectors together.
    fn permutes(&self, swizzle: Swizzle) -> bool {
        let reach = swizzle.mask.checked_mul(swizzle.unit);
        self.columns.is_power_of_two()
            && swizzle.unit.is_power_of_two()
            && swizzle.unit >= self.vector_elements
            && reach.is_some_and(|reach| reach < self.columns)
            && swizzle.dimension < self.outer.len()
    }

    /// Wavefronts that no layout undercuts.
    fn least(&self) -> u64 {
        let of_access = |access: &PlacedAccess| {
            let of_request = |request: &Vec<(u32, Place)>| {
                let lanes = self.lanes(request, Layout::Plain, access.width_bytes);
                lanes.map_or(0, |lanes| u64::from(least(&lanes, access.width_bytes, access.op)))
            };
            access.requests.iter().map(of_request).sum::<u64>()
        };
        self.accesses.iter().map(of_access).sum()
    }

    /// What each access costs under a layout; `None` if it passes the bound or breaks the alignment of a vector.
    fn simulate(&self, layout: Layout, bound: &Bound) -> Option<Vec<Tally>> {
        let mut total: u64 = 0;
        let mut tallies = Vec::with_capacity(self.accesses.len());
        for (index, access) in self.accesses.iter().enumerate() {
            let most = bound.per_access.get(index).map_or(u64::MAX, |before| before.units);
            let mut tally = Tally::default();
            for request in &access.requests {
                let lanes = self.lanes(request, layout, access.width_bytes)?;
                tally.add(wavefronts(&lanes, access.width_bytes, access.op));
                if tally.units > most || total.saturating_add(tally.units) >= bound.total_below {
                    return None;
                }
            }
            total = total.saturating_add(tally.units);
            tallies.push(tally);
        }
        Some(tallies)
    }

    /// The byte addresses of a request under a layout, from the start of the array; `None` if a vector is not aligned.
    fn lanes(&self, request: &[(u32, Place)], layout: Layout, width_bytes: u32) -> Option<Lanes> {
        let mut lanes = Lanes::NONE;
        let alignment = i64::try_from(alignment(width_bytes, self.element_bytes).unwrap_or(1)).ok()?;
        for &(lane, place) in request {
            let address = self.address(place, layout)?;
            if address.checked_rem_euclid(alignment)? != 0 {
                return None;
            }
            *lanes.address.get_mut(lane as usize)? = address;
            lanes.active |= 1 << lane;
        }
        Some(lanes)
    }

    fn address(&self, place: Place, layout: Layout) -> Option<i64> {
        let columns = i64::try_from(self.columns).ok()?;
        let (pitch, column) = match layout {
            Layout::Plain => (columns, place.c),
            Layout::Pad { elements } => (columns.checked_add(i64::try_from(elements).ok()?)?, place.c),
            Layout::Swizzle(Swizzle { dimension, shift, mask, unit }) => {
                let turned =
                    self.outer_index(place, dimension)?.checked_shr(shift)? & i64::try_from(mask).ok()?;
                (columns, place.c ^ turned.checked_mul(i64::try_from(unit).ok()?)?)
            }
        };
        place
            .row
            .checked_mul(pitch)?
            .checked_add(column)?
            .checked_mul(i64::try_from(self.element_bytes).ok()?)
    }

    /// The index of a place in an outer dimension; the outermost may leave its extent.
    fn outer_index(&self, place: Place, dimension: usize) -> Option<i64> {
        let Outer { extent, rows_apart } = self.outer.get(dimension)?;
        let index = place.row.checked_div_euclid(*rows_apart)?;
        if dimension == 0 { Some(index) } else { index.checked_rem_euclid(*extent) }
    }
}

/// The alignment in bytes that an access needs beyond that of its elements: that of a vector moved by one instruction.
fn alignment(width_bytes: u32, element_bytes: u64) -> Option<u64> {
    let vector = u64::from(width_bytes) > element_bytes && width_bytes.is_power_of_two();
    vector.then_some(u64::from(width_bytes.min(WIDEST_ACCESS_BYTES)))
}

/// The element of each active lane; `None` if an index leaves its extent (the outermost may), a vector leaves its row or
/// dimensions are missing.
fn places(array: &ArrayUse, request: &IndexRequest, width_bytes: u32) -> Option<Vec<(u32, Place)>> {
    let columns = i64::try_from(*array.extents.last()?).ok()?;
    let elements = i64::from(width_bytes.div_ceil(array.element_bytes.max(1)).max(1));
    let place = |lane: u32| {
        let flat = flat_index(array, request, lane)?;
        let (row, c) = (flat.div_euclid(columns), flat.rem_euclid(columns));
        (c <= columns - elements).then_some((lane, Place { row, c }))
    };
    (0..WARP_LANES).filter(|lane| request.active >> lane & 1 == 1).map(place).collect()
}

/// The index of a lane's element from the start of the array.
fn flat_index(array: &ArrayUse, request: &IndexRequest, lane: u32) -> Option<i64> {
    let at = |index: &[i64; WARP_LANES as usize]| index.get(lane as usize).copied();
    if let [flat] = request.index.as_slice() {
        return at(flat);
    }
    if request.index.len() != array.extents.len() {
        return None;
    }
    let mut flat: i64 = 0;
    for (dimension, (index, &extent)) in request.index.iter().zip(&array.extents).enumerate() {
        let (index, extent) = (at(index)?, i64::try_from(extent).ok()?);
        if dimension > 0 && !(0..extent).contains(&index) {
            return None;
        }
        flat = flat.checked_mul(extent)?.checked_add(index)?;
    }
    Some(flat)
}
