//! The search for a layout: what was measured for tiles, and laws for anything.

use cudalint::memory::SharedOp;
use cudalint::memory::layout::{
    AccessUse, ArrayUse, IndexRequest, Layout, Remedy, Swizzle, search, simulate,
};
use cudalint::memory::{thread_of, warp_count};
use proptest::prelude::*;

/// One request for each warp of a block; `index` gives the indices, outermost first, of thread (x, y, z).
fn access(
    block: [u32; 3],
    width_bytes: u32,
    op: SharedOp,
    index: impl Fn(i64, i64, i64) -> Vec<i64>,
) -> AccessUse {
    let dimensions = index(0, 0, 0).len();
    let request = |warp| {
        let mut request = IndexRequest { active: 0, index: vec![[0; 32]; dimensions] };
        for lane in 0..32 {
            let Some(thread) = thread_of(block, warp, lane) else { continue };
            let [x, y, z] = thread.map(i64::from);
            request.active |= 1 << lane;
            for (slot, value) in request.index.iter_mut().zip(index(x, y, z)) {
                slot[lane as usize] = value;
            }
        }
        request
    };
    AccessUse { width_bytes, op, requests: (0..warp_count(block)).map(request).collect() }
}

fn array(extents: &[u64], element_bytes: u32) -> ArrayUse {
    ArrayUse { extents: extents.to_vec(), element_bytes }
}

/// Mean wavefronts of each access.
fn means(array: &ArrayUse, accesses: &[AccessUse], layout: Layout) -> Vec<f64> {
    let tallies = simulate(array, accesses, layout).unwrap();
    tallies.iter().map(|tally| tally.mean_units().unwrap()).collect()
}

/// A tile written by rows and read by columns, as in a transpose.
fn transpose(block: [u32; 3]) -> [AccessUse; 2] {
    [
        access(block, 4, SharedOp::Store, |x, y, _| vec![y, x]),
        access(block, 4, SharedOp::Load, |x, y, _| vec![x, y]),
    ]
}

#[test]
fn tile_of_16_is_swizzled() {
    let (tile, accesses) = (array(&[16, 16], 4), transpose([16, 16, 1]));
    let swizzle = |mask| Swizzle { dimension: 0, shift: 0, mask, unit: 1 };
    let measured = [
        (Layout::Plain, [1.0, 8.0]),
        (Layout::Pad { elements: 1 }, [2.0, 2.0]),
        (Layout::Pad { elements: 2 }, [2.0, 1.0]),
        (Layout::Pad { elements: 4 }, [2.0, 2.0]),
        // `[r][c ^ (r & ~1)]`
        (Layout::Swizzle(swizzle(14)), [1.0, 1.0]),
        // `[r][c ^ r]`, not measured. A row stays in its 16 banks. The column of c and c + 1, c even, takes from the
        // even rows the places {c, c + 1} ^ r, all 16 of the first banks, and from the odd rows all of the others.
        (Layout::Swizzle(swizzle(15)), [1.0, 1.0]),
    ];
    for (layout, wavefronts) in measured {
        assert_eq!(means(&tile, &accesses, layout), wavefronts, "{layout:?}");
    }
    // 8 warps: 8 · (1 + 8) wavefronts before, 8 · (1 + 1) after. Of equal swizzles the mask from bit 0 is simpler.
    let remedy = search(&tile, &accesses);
    assert_eq!(remedy, Remedy::Swizzle { swizzle: swizzle(15), total_before: 72, total_after: 16 });
}

#[test]
fn tile_of_32_is_padded() {
    let (tile, accesses) = (array(&[32, 32], 4), transpose([32, 32, 1]));
    assert_eq!(means(&tile, &accesses, Layout::Plain), [1.0, 32.0]);
    assert_eq!(means(&tile, &accesses, Layout::Pad { elements: 1 }), [1.0, 1.0]);
    // 32 warps: 32 · 33 before, 32 · 2 after; 32 rows of one float more.
    let padded = Remedy::Pad { elements: 1, total_before: 1056, total_after: 64, extra_bytes: 128 };
    assert_eq!(search(&tile, &accesses), padded);
    // Swizzles and too small masks, measured: 1 and 4 wavefronts for the column.
    let swizzled =
        |mask| means(&tile, &accesses, Layout::Swizzle(Swizzle { dimension: 0, shift: 0, mask, unit: 1 }));
    assert_eq!(swizzled(31), [1.0, 1.0]);
    assert_eq!(swizzled(7), [1.0, 4.0]);
}

#[test]
fn doubles_and_planes() {
    // double tile[32][32], column: 32 of ideally 2; with one more column 2.
    let block = [32, 32, 1];
    let column = [access(block, 8, SharedOp::Load, |x, y, _| vec![x, y])];
    let tile = array(&[32, 32], 8);
    assert_eq!(means(&tile, &column, Layout::Plain), [32.0]);
    let padded = Remedy::Pad { elements: 1, total_before: 1024, total_after: 64, extra_bytes: 256 };
    assert_eq!(search(&tile, &column), padded);
    // Two such buffers, the outer index the same for the warp: the same remedy, twice the bytes.
    let column = [access(block, 8, SharedOp::Load, |x, y, _| vec![y % 2, x, y])];
    let padded = Remedy::Pad { elements: 1, total_before: 1024, total_after: 64, extra_bytes: 512 };
    assert_eq!(search(&array(&[2, 32, 32], 8), &column), padded);
    // A flat array used as rows of 32 is judged by the extents of those rows.
    let flat = [access(block, 4, SharedOp::Load, |x, y, _| vec![x * 32 + y])];
    let padded = Remedy::Pad { elements: 1, total_before: 1024, total_after: 32, extra_bytes: 128 };
    assert_eq!(search(&array(&[32, 32], 4), &flat), padded);
}

#[test]
fn cube_is_swizzled_by_its_outermost_index() {
    // float tile[8][8][8] in an 8x8x8 block, written straight and read transposed: 1 and 8 wavefronts (measured). A pad
    // of one breaks the straight write: four rows of 8 no longer fill the banks. The transposed read has lanes
    // x = 0…7, y = 0…3 at word 64 · x + 8 · y + z, that is bank 8 · y + z; with z ^ x the x of one y take 8 banks.
    let block = [8, 8, 8];
    let accesses = [
        access(block, 4, SharedOp::Store, |x, y, z| vec![z, y, x]),
        access(block, 4, SharedOp::Load, |x, y, z| vec![x, y, z]),
    ];
    let cube = array(&[8, 8, 8], 4);
    assert_eq!(means(&cube, &accesses, Layout::Plain), [1.0, 8.0]);
    assert_eq!(means(&cube, &accesses, Layout::Pad { elements: 1 })[0], 2.0);
    let swizzle = Swizzle { dimension: 0, shift: 0, mask: 7, unit: 1 };
    assert_eq!(means(&cube, &accesses, Layout::Swizzle(swizzle)), [1.0, 1.0]);
    // 16 warps: 16 · (1 + 8) before, 16 · (1 + 1) after.
    assert_eq!(search(&cube, &accesses), Remedy::Swizzle { swizzle, total_before: 144, total_after: 32 });
}

#[test]
fn swizzles_read_as_source() {
    let shown = |shift, mask, unit| Swizzle { dimension: 0, shift, mask, unit }.to_string();
    assert_eq!(shown(0, 14, 1), "c ^ (r & 14)");
    assert_eq!(shown(1, 7, 4), "c ^ ((r >> 1) & 7) * 4");
}

#[test]
fn vectors_stay_aligned() {
    // float tile[8][32] read as float4 by rows: lane l takes column 4 · (l / 8) of row l % 8. Rows are 128 bytes apart,
    // so the 8 lanes of a quarter meet in 4 banks: 4 · 8 wavefronts. A pad of 4 floats keeps 16 bytes aligned.
    let block = [32, 1, 1];
    let vectors = [access(block, 16, SharedOp::Load, |x, _, _| vec![x % 8, x / 8 * 4])];
    let tile = array(&[8, 32], 4);
    let padded = Remedy::Pad { elements: 4, total_before: 32, total_after: 4, extra_bytes: 8 * 16 };
    assert_eq!(search(&tile, &vectors), padded);
    for elements in [1, 2, 3] {
        assert_eq!(simulate(&tile, &vectors, Layout::Pad { elements }), None);
    }
    // A swizzle has to move whole vectors.
    let swizzled = |mask, unit| {
        simulate(&tile, &vectors, Layout::Swizzle(Swizzle { dimension: 0, shift: 0, mask, unit }))
    };
    assert_eq!(swizzled(7, 1), None);
    assert_eq!(swizzled(7, 4).map(|tallies| tallies[0].units), Some(4));
    // ldmatrix on half tile[64][64]: rows of 128 bytes, 8 rows in the same banks. 8 halves more turn each row by 4 banks.
    let rows = [access(block, 16, SharedOp::Matrix(4), |x, _, _| vec![x, 0])];
    let padded = Remedy::Pad { elements: 8, total_before: 32, total_after: 4, extra_bytes: 64 * 16 };
    assert_eq!(search(&array(&[64, 64], 2), &rows), padded);
}

#[test]
fn nothing_is_proposed() {
    let block = [32, 1, 1];
    let tile = array(&[32, 32], 4);
    let load = |index: fn(i64, i64, i64) -> Vec<i64>| [access(block, 4, SharedOp::Load, index)];
    let column = |x, _, _| vec![x, 0];
    assert!(matches!(search(&tile, &load(column)), Remedy::Pad { .. }));
    // No conflict; a row past its end; a missing dimension; a single row; no array; an odd vector.
    assert_eq!(search(&tile, &load(|x, _, _| vec![0, x])), Remedy::None);
    assert_eq!(search(&tile, &load(|x, _, _| vec![x, 32])), Remedy::None);
    assert_eq!(search(&array(&[2, 32, 32], 4), &load(column)), Remedy::None);
    assert_eq!(search(&array(&[1024], 4), &load(|x, _, _| vec![x * 32])), Remedy::None);
    assert_eq!(search(&array(&[], 4), &load(column)), Remedy::None);
    assert_eq!(search(&array(&[32, 0], 4), &load(column)), Remedy::None);
    assert_eq!(search(&array(&[32, 32], 0), &load(column)), Remedy::None);
    assert_eq!(search(&tile, &[access(block, 16, SharedOp::Load, |x, _, _| vec![x, 1])]), Remedy::None);
    assert_eq!(search(&tile, &[access(block, 16, SharedOp::Load, |x, _, _| vec![x, 30])]), Remedy::None);
    assert_eq!(search(&tile, &[]), Remedy::None);
    // 10x10 tile in a 10x10 block: one column more makes the column read worse (1.75 to 3.25).
    let remedy = search(&array(&[10, 10], 4), &transpose([10, 10, 1]));
    assert!(!matches!(remedy, Remedy::Pad { elements: 1, .. }), "{remedy:?}");
}

#[test]
fn many_requests_are_thinned() {
    // 300 rounds of 32 warps, 9600 requests: every (9600 / 2048 rounded up to odd) 5th is simulated, 1920 of them.
    let mut accesses = transpose([32, 32, 1]);
    for access in &mut accesses {
        let round = access.requests.clone();
        access.requests = std::iter::repeat_n(round, 150).flatten().collect();
    }
    let padded = Remedy::Pad { elements: 1, total_before: 960 * 33, total_after: 960 * 2, extra_bytes: 128 };
    assert_eq!(search(&array(&[32, 32], 4), &accesses), padded);
}

/// Random affine accesses to a random tile, within its extents.
fn uses() -> impl Strategy<Value = (ArrayUse, Vec<AccessUse>)> {
    let extents = (1u64..40, prop_oneof![Just(8u64), Just(16), Just(32), Just(64), 1u64..40]);
    let blocks = prop_oneof![Just([32, 2, 1]), Just([16, 8, 1]), Just([8, 8, 2]), Just([10, 10, 1])];
    let access = (0i64..5, 0i64..5, 0i64..5, 0i64..5, 0usize..3);
    (extents, blocks, prop::sample::select(vec![1u32, 2, 4, 8]), prop::collection::vec(access, 1..4))
        .prop_map(|((rows, columns), block, element_bytes, coefficients)| {
            let (r, c) = (rows as i64, columns as i64);
            let uses = coefficients.into_iter().map(|(xr, yr, xc, yc, op)| {
                let op = [SharedOp::Load, SharedOp::Store, SharedOp::Atomic][op];
                access_within(block, element_bytes, op, move |x, y| {
                    vec![(x * xr + y * yr) % r, (x * xc + y * yc) % c]
                })
            });
            (array(&[rows, columns], element_bytes), uses.collect())
        })
}

fn access_within(
    block: [u32; 3],
    width: u32,
    op: SharedOp,
    index: impl Fn(i64, i64) -> Vec<i64>,
) -> AccessUse {
    access(block, width, op, |x, y, _| index(x, y))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What is proposed is better in total, worse nowhere, and its numbers are those of a simulation of its own.
    #[test]
    fn a_remedy_keeps_its_promise((tile, accesses) in uses()) {
        let remedy = search(&tile, &accesses);
        let (layout, before, after) = match remedy {
            Remedy::None => return Ok(()),
            Remedy::Pad { elements, total_before, total_after, .. } => (Layout::Pad { elements }, total_before, total_after),
            Remedy::Swizzle { swizzle, total_before, total_after } => (Layout::Swizzle(swizzle), total_before, total_after),
        };
        let plain = simulate(&tile, &accesses, Layout::Plain).unwrap();
        let changed = simulate(&tile, &accesses, layout).unwrap();
        prop_assert!(plain.iter().zip(&changed).all(|(plain, changed)| changed.units <= plain.units));
        prop_assert_eq!(plain.iter().map(|tally| tally.units).sum::<u64>(), before);
        prop_assert_eq!(changed.iter().map(|tally| tally.units).sum::<u64>(), after);
        prop_assert!(after < before);
    }

    /// A swizzle that is proposed permutes every row.
    #[test]
    fn a_swizzle_is_a_permutation((tile, accesses) in uses(), r in 0u64..40) {
        if let Remedy::Swizzle { swizzle: Swizzle { shift, mask, unit, .. }, .. } = search(&tile, &accesses) {
            let columns = tile.extents[1];
            let mut places: Vec<u64> = (0..columns).map(|c| c ^ (((r >> shift) & mask) * unit)).collect();
            places.sort_unstable();
            prop_assert_eq!(places, (0..columns).collect::<Vec<_>>());
        }
    }
}
