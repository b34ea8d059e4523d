//! The memory system written as plainly as possible: sets of bytes, and banks that serve until nothing waits.

use std::collections::BTreeSet;

use cudalint::memory::{Lanes, SharedOp, constant, global, local, shared, thread_of, warp_count};
use proptest::prelude::*;

/// `(lane, byte address)` of the active lanes.
type Active = Vec<(usize, i64)>;

fn active(lanes: &Lanes) -> Active {
    (0..32).filter(|lane| lanes.active >> lane & 1 == 1).map(|lane| (lane, lanes.address[lane])).collect()
}

/// The distinct cells of `cell` bytes that hold a byte of any lane.
fn cells(active: &Active, width: i64, cell: i64) -> u32 {
    let bytes = active.iter().flat_map(|&(_, address)| address..address + width);
    bytes.map(|byte| byte.div_euclid(cell)).collect::<BTreeSet<_>>().len() as u32
}

/// Serves a group of lanes: in each wavefront every bank hands out one word to all lanes that wait for it.
fn serve_words(group: &Active, width: i64) -> u32 {
    let bytes = group.iter().flat_map(|&(_, address)| address..address + width);
    let mut waiting: BTreeSet<i64> = bytes.map(|byte| byte.div_euclid(4)).collect();
    let mut wavefronts = 0;
    while !waiting.is_empty() {
        for bank in 0..32 {
            let next = waiting.iter().copied().find(|word| word.rem_euclid(32) == bank);
            next.map(|word| waiting.remove(&word));
        }
        wavefronts += 1;
    }
    wavefronts
}

/// Serves lanes one by one: in each turn every bank takes one lane, whatever its word.
fn serve_lanes(group: &Active) -> u32 {
    let mut waiting = group.clone();
    let mut turns = 0;
    while !waiting.is_empty() {
        for bank in 0..32 {
            let next = waiting.iter().position(|(_, address)| address.div_euclid(4).rem_euclid(32) == bank);
            next.map(|place| waiting.remove(place));
        }
        turns += 1;
    }
    turns
}

fn all_find_a_partner(active: &Active, distance: usize) -> bool {
    active.iter().all(|&(lane, address)| {
        let partner = active.iter().find(|(other, _)| *other == lane ^ distance);
        partner.is_none_or(|&(_, other_address)| other_address == address)
    })
}

fn wavefronts(lanes: &Lanes, width: u32, op: SharedOp) -> u32 {
    let active = active(lanes);
    let merged = all_find_a_partner(&active, 1) || all_find_a_partner(&active, 2);
    let group_size = match (op, width) {
        (SharedOp::Matrix(_), _) => 8,
        (SharedOp::Load, 8) if merged => 32,
        (SharedOp::Load, 16) if merged => 16,
        (SharedOp::Load | SharedOp::Store, 8) => 16,
        (SharedOp::Load | SharedOp::Store, 16) => 8,
        _ => 32,
    };
    let in_group = |number: usize| -> Active {
        active.iter().copied().filter(|(lane, _)| lane / group_size == number).collect()
    };
    match op {
        SharedOp::Atomic => serve_lanes(&active),
        SharedOp::AtomicCas | SharedOp::AtomicLoop => 2 * serve_lanes(&active),
        SharedOp::Matrix(matrices) => {
            (0..usize::from(matrices)).map(|number| serve_words(&in_group(number), 16)).sum()
        }
        SharedOp::Load | SharedOp::Store | SharedOp::AtomicIncrement => {
            (0..32 / group_size).map(|number| serve_words(&in_group(number), i64::from(width))).sum()
        }
    }
}

/// Masks that occur: all, the first lanes, every other lane, anything.
fn masks() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(u32::MAX),
        (0u32..32).prop_map(|lanes| (1 << lanes) - 1),
        Just(0x5555_5555),
        Just(0xCCCC_CCCC),
        any::<u32>(),
    ]
}

/// Multiples of `step` bytes: random ones in a small or large range, strides, and addresses that lanes share.
fn addresses(step: i64) -> impl Strategy<Value = [i64; 32]> {
    let random = |most: i64| proptest::array::uniform32(-most..most);
    let shared = (random(40), 1usize..5, any::<bool>()).prop_map(|(of, distance, pairs)| {
        std::array::from_fn(|lane| of[if pairs { lane & !distance } else { lane >> distance }])
    });
    let stride = (-40i64..40, -5i64..5)
        .prop_map(|(stride, from)| std::array::from_fn(|lane| from + stride * lane as i64));
    prop_oneof![random(20), random(2000), shared, stride].prop_map(move |of| of.map(|address| address * step))
}

fn lanes(step: i64) -> impl Strategy<Value = Lanes> {
    (masks(), addresses(step)).prop_map(|(active, address)| Lanes { active, address })
}

/// A width and the lanes of an aligned access of that width.
fn aligned() -> impl Strategy<Value = (u32, Lanes)> {
    (0u32..5).prop_flat_map(|log| (Just(1 << log), lanes(1 << log)))
}

proptest! {
    #[test]
    fn sectors_and_lines_are_sets_of_bytes(lanes in lanes(1), width in 0u32..80) {
        let all = active(&lanes);
        let cost = global::sectors(&lanes, width);
        prop_assert_eq!(cost.units, cells(&all, i64::from(width), 32));
        prop_assert_eq!(cost.ideal, (all.len() as u32 * width).div_ceil(32).min(cost.units));
        prop_assert_eq!(global::lines(&lanes, width), cells(&all, i64::from(width), 128));
        prop_assert_eq!(constant::words(&lanes, width).units, cells(&all, i64::from(width), 4));
    }

    #[test]
    fn union_is_the_set_of_all_bytes(a in lanes(2), b in lanes(4), width in 0u32..20) {
        let mut bytes: BTreeSet<i64> = BTreeSet::new();
        for (lanes, width) in [(&a, width), (&b, 4)] {
            bytes.extend(active(lanes).iter().flat_map(|&(_, address)| address..address + i64::from(width)));
        }
        let union = global::union(&[(&a, width), (&b, 4)]);
        prop_assert_eq!(union.used_bytes as usize, bytes.len());
        let sectors: BTreeSet<i64> = bytes.iter().map(|byte| byte.div_euclid(32)).collect();
        prop_assert_eq!(union.sectors as usize, sectors.len());
    }

    #[test]
    fn atomics_visit_a_sector_for_each_lane_of_its_busiest_address(lanes in lanes(4)) {
        let all = active(&lanes);
        let sectors: BTreeSet<i64> = all.iter().map(|(_, address)| address.div_euclid(32)).collect();
        let on = |address: i64| all.iter().filter(|(_, other)| *other == address).count() as u32;
        let busiest = |sector: i64| (0..8).map(|word| on(sector * 32 + word * 4)).max().unwrap_or(0);
        prop_assert_eq!(global::atomic_operations(&lanes), sectors.into_iter().map(busiest).sum::<u32>());
    }

    #[test]
    fn local_memory_interleaves_words((width, lanes) in aligned()) {
        let place = |lane: usize, byte: i64| (byte.div_euclid(4) * 32 + lane as i64) * 4 + byte.rem_euclid(4);
        let mut sectors = BTreeSet::new();
        for (lane, address) in active(&lanes) {
            sectors.extend((address..address + i64::from(width)).map(|byte| place(lane, byte).div_euclid(32)));
        }
        prop_assert_eq!(local::sectors(&lanes, width).units as usize, sectors.len());
    }

    #[test]
    fn banks_serve_loads_and_stores((width, lanes) in aligned()) {
        for op in [SharedOp::Load, SharedOp::Store] {
            let cost = shared::wavefronts(&lanes, width, op);
            prop_assert_eq!(cost.units, wavefronts(&lanes, width, op), "{:?}", op);
            prop_assert_eq!(cost.ideal, (lanes.count() * width).div_ceil(128).min(cost.units));
        }
    }

    #[test]
    fn banks_serve_atomics_and_matrices(words in lanes(4), rows in lanes(16)) {
        for op in [SharedOp::Atomic, SharedOp::AtomicIncrement, SharedOp::AtomicCas, SharedOp::AtomicLoop] {
            prop_assert_eq!(shared::wavefronts(&words, 4, op).units, wavefronts(&words, 4, op), "{:?}", op);
        }
        for op in [1, 2, 4].map(SharedOp::Matrix) {
            prop_assert_eq!(shared::wavefronts(&rows, 16, op).units, wavefronts(&rows, 16, op), "{:?}", op);
        }
    }

    #[test]
    fn a_width_without_an_instruction_is_the_sum_of_its_pieces(of in lanes(1), pieces in 1u32..9, log in 0u32..5) {
        // An odd number of pieces: the width has no larger power of two in it. Pieces of 16 bytes are the largest.
        let (piece, pieces) = (1u32 << log, if log < 4 { pieces | 1 } else { pieces });
        let of = Lanes { active: of.active, address: of.address.map(|address| address * i64::from(piece)) };
        for op in [SharedOp::Load, SharedOp::Store] {
            let one = |k: u32| {
                let address = of.address.map(|address| address + i64::from(k * piece));
                shared::wavefronts(&Lanes { active: of.active, address }, piece, op).units
            };
            prop_assert_eq!(shared::wavefronts(&of, piece * pieces, op).units, (0..pieces).map(one).sum::<u32>());
        }
    }

    #[test]
    fn witness_shows_the_conflict_of_one_group((width, lanes) in aligned()) {
        let cost = shared::wavefronts(&lanes, width, SharedOp::Store);
        let groups = match width { 8 => 2, 16 => 4, _ => 1 };
        let Some(witness) = shared::witness(&lanes, width, SharedOp::Store) else {
            prop_assert!(cost.units <= groups);
            return Ok(());
        };
        prop_assert!(witness.words.len() >= 2);
        // The worst group alone costs what the witness shows; the others cost no more.
        prop_assert!(cost.units >= witness.words.len() as u32);
        prop_assert!(cost.units <= groups * witness.words.len() as u32);
        for word in &witness.words {
            prop_assert_eq!(word.rem_euclid(32), i64::from(witness.bank));
        }
        for lane in &witness.lanes {
            let address = lanes.address[*lane as usize];
            let mut own = (address..address + i64::from(width)).map(|byte| byte.div_euclid(4));
            prop_assert!(own.any(|word| witness.words.contains(&word)));
        }
    }

    #[test]
    fn every_thread_is_in_one_lane(block in [1u32..40, 1u32..12, 1u32..5]) {
        let [bx, by, bz] = block;
        let mut threads = (0..warp_count(block)).flat_map(|warp| (0..32).map(move |lane| thread_of(block, warp, lane)));
        for z in 0..bz {
            for y in 0..by {
                for x in 0..bx {
                    prop_assert_eq!(threads.next(), Some(Some([x, y, z])));
                }
            }
        }
        prop_assert!(threads.all(|thread| thread.is_none()));
    }

    #[test]
    fn no_input_panics(active in any::<u32>(), address in proptest::array::uniform32(any::<i64>()), width in any::<u32>()) {
        let lanes = Lanes { active, address };
        global::sectors(&lanes, width);
        global::lines(&lanes, width);
        global::union(&[(&lanes, width), (&lanes, width)]);
        global::atomic_operations(&lanes);
        local::sectors(&lanes, width);
        constant::words(&lanes, width);
        for op in [SharedOp::Load, SharedOp::Store, SharedOp::Atomic, SharedOp::AtomicCas, SharedOp::Matrix(7)] {
            shared::wavefronts(&lanes, width, op);
            shared::witness(&lanes, width, op);
        }
    }
}
