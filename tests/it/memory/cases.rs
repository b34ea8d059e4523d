//! Tables measured on an H200 and the arithmetic behind them.

use cudalint::memory::{Cost, Lanes, SharedOp, Tally, constant, global, local, shared, warp_count};

fn cost(units: u32, ideal: u32) -> Cost {
    Cost { units, ideal }
}

fn warp(address_of: impl Fn(i64) -> i64) -> Lanes {
    Lanes::from_fn(|lane| Some(address_of(i64::from(lane))))
}

/// The first `count` lanes.
fn some(count: u32, address_of: impl Fn(i64) -> i64) -> Lanes {
    Lanes::from_fn(|lane| (lane < count).then(|| address_of(i64::from(lane))))
}

#[test]
fn global_strides() {
    // Width, then sectors at lane strides of 1, 2, 3, 4, 8, 32 elements: min(stride · width, 32) sectors of 32 lanes
    // for strides up to a sector; above that each lane has a sector of its own.
    let table: [(i64, [u32; 6]); 5] = [
        (1, [1, 2, 3, 4, 8, 32]),
        (2, [2, 4, 6, 8, 16, 32]),
        (4, [4, 8, 12, 16, 32, 32]),
        (8, [8, 16, 24, 32, 32, 32]),
        (16, [16, 32, 32, 32, 32, 32]),
    ];
    for (width, sectors) in table {
        for (stride, sectors) in [1, 2, 3, 4, 8, 32].into_iter().zip(sectors) {
            let request = warp(|lane| lane * stride * width);
            // The ideal: 32 · width / 32 = width sectors.
            assert_eq!(
                global::sectors(&request, width as u32),
                cost(sectors, width as u32),
                "{width} B, stride {stride}"
            );
        }
    }
    // Reversed, and neighbours swapped: the same 128 bytes.
    assert_eq!(global::sectors(&warp(|lane| (31 - lane) * 4), 4), cost(4, 4));
    assert_eq!(global::sectors(&warp(|lane| (lane ^ 1) * 4), 4), cost(4, 4));
    // A broadcast is one sector and never in excess.
    assert_eq!(global::sectors(&warp(|_| 400), 4), cost(1, 1));
    // Every other lane: bytes 0…251 are 8… of 32 lanes 16 are active, lane 30 ends at byte 124: 4 sectors, 64 bytes.
    assert_eq!(global::sectors(&Lanes::from_fn(|l| (l % 2 == 0).then_some(i64::from(l) * 4)), 4), cost(4, 2));
}

#[test]
fn global_offsets() {
    // Unit stride from element k: one sector more unless k · width is a multiple of 32.
    for (width, aligned) in [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16)] {
        for k in 0..64 {
            let request = warp(|lane| (lane + k) * width);
            let sectors = if k * width % 32 == 0 { aligned } else { aligned + 1 };
            assert_eq!(global::sectors(&request, width as u32), cost(sectors, aligned), "{width} B from {k}");
            // Bytes k · width … k · width + 32 · width - 1.
            let lines = ((k + 32) * width - 1) / 128 - k * width / 128 + 1;
            assert_eq!(i64::from(global::lines(&request, width as u32)), lines);
        }
    }
}

#[test]
fn fields_of_structs_in_global_memory() {
    // One float of a struct of B bytes: 32 · B bytes spread over min(B, 32) sectors.
    for (size, sectors) in [(8, 8), (12, 12), (16, 16), (20, 20), (24, 24), (32, 32), (48, 32)] {
        assert_eq!(global::sectors(&warp(|lane| lane * size), 4), cost(sectors, 4), "{size} B");
    }
    // All three fields of a 12-byte struct: 384 bytes in 12 sectors, used whole. Only one: a third of them.
    let fields = [0, 4, 8].map(|offset| warp(|lane| lane * 12 + offset));
    let [x, y, z] = &fields;
    assert_eq!(global::union(&[(x, 4), (y, 4), (z, 4)]), global::Union { sectors: 12, used_bytes: 384 });
    assert_eq!(global::union(&[(x, 4)]), global::Union { sectors: 12, used_bytes: 128 });
    // A struct copied at its whole width: 32 lanes · 12 bytes / 32 = 12 sectors.
    assert_eq!(global::sectors(x, 12), cost(12, 12));
    // An access wider than a sector counts every sector: 32 lanes · 64 bytes / 32.
    assert_eq!(global::sectors(&warp(|lane| lane * 64), 64), cost(64, 64));
}

#[test]
fn blocks_of_two_dimensions_in_global_memory() {
    let sectors = |block: [u32; 3], address_of: fn(i64, i64) -> i64| {
        let request = Lanes::of_warp(block, 0, |[x, y, _]| Some(address_of(i64::from(x), i64::from(y))));
        global::sectors(&request, 4)
    };
    // Row-major rows of 1024 floats: bx = 16 is two runs of 64 bytes, 8 four of 32, 4 eight of 16 (half a sector each).
    assert_eq!(sectors([16, 16, 1], |x, y| (y * 1024 + x) * 4), cost(4, 4));
    assert_eq!(sectors([8, 32, 1], |x, y| (y * 1024 + x) * 4), cost(4, 4));
    assert_eq!(sectors([4, 64, 1], |x, y| (y * 1024 + x) * 4), cost(8, 4));
    // Column-major: a sector for each x of the warp.
    assert_eq!(sectors([16, 16, 1], |x, y| (x * 1024 + y) * 4), cost(16, 4));
    assert_eq!(sectors([32, 8, 1], |x, y| (x * 1024 + y) * 4), cost(32, 4));
    assert_eq!(sectors([8, 32, 1], |x, y| (x * 1024 + y) * 4), cost(8, 4));
    assert_eq!(sectors([4, 64, 1], |x, y| (x * 1024 + y) * 4), cost(4, 4));
}

#[test]
fn local_and_constant_memory() {
    // One index for the warp: 32 words side by side are 4 sectors, four words of each lane 16.
    assert_eq!(local::sectors(&warp(|_| 40), 4), cost(4, 4));
    assert_eq!(local::sectors(&warp(|_| 48), 16), cost(16, 16));
    // An index per lane: word l of lane l is place 33 · l, a sector of its own.
    assert_eq!(local::sectors(&warp(|lane| lane * 4), 4), cost(32, 4));
    // t, t & 3, t >> 4, 8 · t: measured 32 + 4 + 2 + 32 = 70 requests per warp.
    let words = |index: fn(i64) -> i64| constant::words(&warp(|lane| index(lane) * 4), 4);
    assert_eq!(words(|t| t), cost(32, 1));
    assert_eq!(words(|t| t & 3), cost(4, 1));
    assert_eq!(words(|t| t >> 4), cost(2, 1));
    assert_eq!(words(|t| t * 8), cost(32, 1));
    assert_eq!(words(|_| 7), cost(1, 1));
}

#[test]
fn shared_strides() {
    let load = |width: u32, stride: i64| {
        shared::wavefronts(&warp(|lane| lane * stride * i64::from(width)), width, SharedOp::Load)
    };
    // Floats at stride s meet gcd(s, 32) in a bank.
    for (stride, wavefronts) in [(1, 1), (2, 2), (4, 4), (6, 2), (8, 8), (16, 16), (32, 32), (64, 32)] {
        assert_eq!(load(4, stride), cost(wavefronts, 1), "stride {stride}");
    }
    for stride in [3, 5, 17, 33] {
        assert_eq!(load(4, stride), cost(1, 1), "stride {stride}");
    }
    // Doubles are served by halves: 16 lanes · 2 words fill the 32 banks once, so 2 wavefronts are the best.
    for (stride, wavefronts) in [(1, 2), (2, 4), (4, 8), (16, 32), (17, 2), (32, 32)] {
        assert_eq!(load(8, stride), cost(wavefronts, 2), "stride {stride}");
    }
    // float4 by quarters: 8 lanes · 4 words.
    for (stride, wavefronts) in [(1, 4), (2, 8), (8, 32), (9, 4)] {
        assert_eq!(load(16, stride), cost(wavefronts, 4), "stride {stride}");
    }
    // Bytes and halves of one word merge.
    assert_eq!(load(1, 1), cost(1, 1));
    assert_eq!(load(2, 1), cost(1, 1));
}

#[test]
fn shared_lanes_that_share_words() {
    let pairs = warp(|lane| lane / 2 * 8);
    // Pairs of lanes merge over the whole warp: 16 doubles are 32 words, one wavefront. Stores do not merge so.
    assert_eq!(shared::wavefronts(&pairs, 8, SharedOp::Load), cost(1, 1));
    assert_eq!(shared::wavefronts(&pairs, 8, SharedOp::Store), cost(2, 2));
    // Partners at distance 16 do not merge either: `s[t & 15]` as float2.
    assert_eq!(shared::wavefronts(&warp(|lane| (lane & 15) * 8), 8, SharedOp::Load), cost(2, 2));
    // A broadcast of float4 is served by halves.
    assert_eq!(shared::wavefronts(&warp(|_| 64), 16, SharedOp::Load), cost(2, 2));
    assert_eq!(shared::wavefronts(&warp(|_| 64), 4, SharedOp::Load), cost(1, 1));
    // Lanes that take no part take no bank: 16 lanes at stride 2, 8 lanes at stride 4 fill 32 banks at most once.
    assert_eq!(shared::wavefronts(&some(16, |lane| lane * 8), 4, SharedOp::Load), cost(1, 1));
    assert_eq!(shared::wavefronts(&some(8, |lane| lane * 16), 4, SharedOp::Load), cost(1, 1));
    assert_eq!(shared::wavefronts(&Lanes::NONE, 16, SharedOp::Load), cost(0, 0));
}

#[test]
fn shared_atomics() {
    let atomic = |op, index: fn(i64) -> i64| shared::wavefronts(&warp(|lane| index(lane) * 4), 4, op);
    // `sh_atomic_int`: lanes per bank, whether or not they share an address.
    for (index, wavefronts) in [
        (((|t| t) as fn(i64) -> i64), 1),
        (|t| t * 2, 2),
        (|t| t * 8, 8),
        (|t| t * 32, 32),
        (|t| t / 4, 4),
        (|t| t & 3, 8),
    ] {
        assert_eq!(atomic(SharedOp::Atomic, index), cost(wavefronts, 1));
    }
    assert_eq!(atomic(SharedOp::AtomicIncrement, |t| t & 7), cost(1, 1));
    assert_eq!(atomic(SharedOp::AtomicCas, |t| t), cost(2, 2));
    // `sh_atomic_float`, `sh_atomic_u64`: rounds of the loop (measured 1, 2, 4 and 1, 2, 8) of 2 and 4 wavefronts.
    assert_eq!(atomic(SharedOp::AtomicLoop, |t| t), cost(2, 2));
    assert_eq!(atomic(SharedOp::AtomicLoop, |t| t * 2), cost(2 * 2, 2));
    assert_eq!(atomic(SharedOp::AtomicLoop, |t| t / 4), cost(4 * 2, 2));
    for (stride, rounds) in [(1, 1), (2, 2), (8, 8)] {
        let request = warp(|lane| lane * stride * 8);
        assert_eq!(
            shared::wavefronts(&request, 8, SharedOp::AtomicLoop),
            cost(rounds * 4, 4),
            "stride {stride}"
        );
    }
    // Global memory: 32 lanes on one address are 32 operations on one sector; in place they are one for each sector.
    assert_eq!(global::atomic_operations(&warp(|_| 8)), 32);
    assert_eq!(global::atomic_operations(&warp(|lane| lane * 4)), 4);
    assert_eq!(global::atomic_operations(&warp(|lane| lane / 2 * 4)), 2 * 2);
}

#[test]
fn matrices() {
    // 8 rows of 16 bytes side by side fill the banks once; rows of 128 bytes all start in bank 0; 144 turns by 4 banks.
    for (pitch, of_one) in [(16, 1), (32, 2), (64, 4), (128, 8), (144, 1)] {
        for matrices in [1, 2, 4] {
            let request = warp(|lane| lane * pitch);
            let ideal = u32::from(matrices);
            assert_eq!(
                shared::wavefronts(&request, 16, SharedOp::Matrix(matrices)),
                cost(of_one * ideal, ideal)
            );
        }
    }
}

#[test]
fn blocks_of_two_dimensions_in_shared_memory() {
    // bx, by, then mean wavefronts of the row access [y][x] (pitch bx), the column access [x][y] (pitch by), and the
    // column access with pitch by + 1: measured means over all warps of two blocks.
    let table = [
        (16, 16, 1.0, 8.0, 2.0),
        (32, 8, 1.0, 8.0, 1.0),
        (8, 32, 1.0, 8.0, 4.0),
        (32, 32, 1.0, 32.0, 1.0),
        (64, 4, 1.0, 4.0, 1.0),
        (4, 64, 1.0, 4.0, 4.0),
        (20, 12, 1.0, 2.75, 2.25),
        (33, 4, 1.0, 3.4, 1.6),
        (48, 4, 1.0, 3.3333, 1.3333),
        (10, 10, 1.0, 1.75, 3.25),
        (1, 256, 1.0, 1.0, 1.0),
    ];
    for (bx, by, row, column, padded) in table {
        let block = [bx, by, 1];
        let mean = |index: &dyn Fn(i64, i64) -> i64| {
            let mut tally = Tally::default();
            for warp in 0..warp_count(block) {
                let request =
                    Lanes::of_warp(block, warp, |[x, y, _]| Some(index(i64::from(x), i64::from(y)) * 4));
                tally.add(shared::wavefronts(&request, 4, SharedOp::Load));
            }
            tally.mean_units().unwrap()
        };
        let (bx, by) = (i64::from(bx), i64::from(by));
        let close = |mean: f64, measured: f64| (mean - measured).abs() < 1e-4;
        assert!(close(mean(&|x, y| y * bx + x), row), "{bx}x{by} row");
        assert!(close(mean(&|x, y| x * by + y), column), "{bx}x{by} column");
        assert!(close(mean(&|x, y| x * (by + 1) + y), padded), "{bx}x{by} padded column");
    }
}

#[test]
fn witness_of_a_column() {
    // Column of a 32x32 float tile: all lanes in bank 5, word 32 · lane + 5.
    let column = warp(|lane| (lane * 32 + 5) * 4);
    let witness = shared::witness(&column, 4, SharedOp::Load).unwrap();
    assert_eq!(witness.bank, 5);
    assert_eq!(witness.lanes, (0..32).collect::<Vec<u32>>());
    assert_eq!(witness.words, (0..32).map(|lane| lane * 32 + 5).collect::<Vec<i64>>());
    // Stride 2: lanes l and l + 16 meet; the first such bank is bank 0, lanes 0 and 16, words 0 and 32.
    let witness = shared::witness(&warp(|lane| lane * 8), 4, SharedOp::Store).unwrap();
    assert_eq!((witness.bank, witness.lanes, witness.words), (0, vec![0, 16], vec![0, 32]));
    // No conflict, no witness: doubles and float4 in a row take 2 and 4 wavefronts, the best there is.
    for width in [1, 2, 4, 8, 16] {
        assert_eq!(shared::witness(&warp(|lane| lane * width), width as u32, SharedOp::Load), None);
    }
    // Atomics on one address meet with one word.
    let witness = shared::witness(&some(3, |_| 4), 4, SharedOp::Atomic).unwrap();
    assert_eq!((witness.bank, witness.lanes, witness.words), (1, vec![0, 1, 2], vec![1]));
}

#[test]
fn tallies() {
    let mut tally = Tally::default();
    assert_eq!(tally.mean_units(), None);
    assert_eq!(tally.degree(), None);
    tally.add(cost(8, 1));
    tally.add_times(cost(2, 1), 3);
    assert_eq!(tally, Tally { requests: 4, units: 14, ideal: 4 });
    assert_eq!((tally.mean_units(), tally.mean_ideal(), tally.degree()), (Some(3.5), Some(1.0), Some(3.5)));
    assert_eq!((tally.excess(), cost(8, 1).excess()), (10, 7));
}
