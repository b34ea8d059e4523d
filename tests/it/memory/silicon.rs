//! Requests measured one by one on a GPU: the sample in fixtures/memory/requests.csv and, where it is at hand, the whole
//! set (`micro/fuzz_truth.csv` under `CUDALINT_TRUTH` or `../shared/truth`).

use std::path::{Path, PathBuf};

use cudalint::memory::{Cost, Lanes, SharedOp, global, shared};

struct Measured {
    name: String,
    lanes: Lanes,
    width_bytes: u32,
    /// `None` for global memory.
    op: Option<SharedOp>,
    /// The profiler's value and ideal for the instruction.
    profiler: Cost,
    /// What the hardware counter and the cycles say.
    counted: u32,
    cycles: Option<f64>,
}

impl Measured {
    fn parse(line: &str) -> Measured {
        let fields: Vec<&str> = line.split(',').collect();
        let [space, op, width, pattern, addresses, value, ideal, model, cycles] = fields[..] else {
            panic!("nine columns: {line}")
        };
        let addresses: Vec<Option<i64>> = addresses.split(';').map(|address| address.parse().ok()).collect();
        assert_eq!(addresses.len(), 32, "{line}");
        let op = match (space, op) {
            ("global", _) => None,
            (_, "LDS") => Some(SharedOp::Load),
            (_, "STS") => Some(SharedOp::Store),
            (_, "ATOMS.ADD" | "ATOMS.MAX" | "ATOMS.EXCH") => Some(SharedOp::Atomic),
            (_, "ATOMS.POPC.INC") => Some(SharedOp::AtomicIncrement),
            (_, "ATOMS.CAS") => Some(SharedOp::AtomicCas),
            (_, "LDSM.1") => Some(SharedOp::Matrix(1)),
            (_, "LDSM.2") => Some(SharedOp::Matrix(2)),
            (_, "LDSM.4" | "LDSM.T.4" | "STSM.4") => Some(SharedOp::Matrix(4)),
            (_, unknown) => panic!("opcode {unknown}"),
        };
        Measured {
            name: format!("{op:?} {width} {pattern}"),
            lanes: Lanes::from_fn(|lane| addresses[lane as usize]),
            width_bytes: width.parse().unwrap(),
            op,
            profiler: Cost { units: value.parse().unwrap(), ideal: ideal.parse().unwrap() },
            counted: model.parse().unwrap(),
            cycles: cycles.parse().ok(),
        }
    }

    fn predicted(&self) -> Cost {
        match self.op {
            None => global::sectors(&self.lanes, self.width_bytes),
            Some(op) => shared::wavefronts(&self.lanes, self.width_bytes, op),
        }
    }

    fn is_wide_load(&self) -> bool {
        self.op == Some(SharedOp::Load) && self.width_bytes > 4
    }
}

fn read(path: &Path) -> Vec<Measured> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).skip(1).map(Measured::parse).collect()
}

/// Returns how many profiler values depart from the hardware counter.
fn check(rows: &[Measured]) -> usize {
    let mut departures = 0;
    for row in rows {
        let predicted = row.predicted();
        assert_eq!(predicted.units, row.counted, "{}: units", row.name);
        // The profiler caps its ideal by its own value, which for wide loads may be too high.
        assert_eq!(predicted.ideal, row.profiler.ideal.min(row.counted), "{}: ideal", row.name);
        if row.profiler.units != row.counted {
            assert!(row.is_wide_load() && row.profiler.units > row.counted, "{}: profiler departs", row.name);
            departures += 1;
        }
        if let Some(op) = row.op.filter(|_| row.is_wide_load()) {
            let said = shared::profiled(&row.lanes, row.width_bytes, op);
            assert!(said.contains(&row.profiler.units), "{}: {said:?}", row.name);
        }
        check_cycles(row);
    }
    departures
}

/// A load or store of up to 4 bytes takes at least 1 cycle, of 8 bytes 2, of 16 bytes 4, half of it where lanes merge;
/// above that the wavefronts. So the cycles bound the wavefronts from above, and decide where the profiler departs.
fn check_cycles(row: &Measured) {
    let (Some(cycles), Some(SharedOp::Load | SharedOp::Store)) = (row.cycles, row.op) else { return };
    let wavefronts = f64::from(row.predicted().units);
    let passes = f64::from(row.width_bytes.div_ceil(4));
    assert!(cycles > 0.95 * wavefronts, "{}: {cycles} cycles for {wavefronts} wavefronts", row.name);
    assert!(cycles < 1.1 * wavefronts.max(passes), "{}: {cycles} cycles", row.name);
}

#[test]
fn sample_of_measured_requests() {
    let rows = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/memory/requests.csv"));
    assert_eq!(rows.len(), 480);
    assert_eq!(check(&rows), 36);
}

/// The profiler's value per instruction and the hardware's counter of wide loads, most of them by some lanes of the warp.
#[test]
fn wide_loads_by_both_counters() {
    const DIGITS: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/memory/wide_loads.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let (mut rows, mut departures) = (0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [width, places, hardware, profiler] = fields[..] else { panic!("four columns: {line}") };
        let width: u32 = width.parse().unwrap();
        let places: Vec<Option<usize>> = places.chars().map(|place| DIGITS.find(place)).collect();
        let lanes = Lanes::from_fn(|lane| Some(places[lane as usize]? as i64 * i64::from(width)));
        let [hardware, profiler]: [u32; 2] = [hardware, profiler].map(|count| count.parse().unwrap());
        assert_eq!(shared::wavefronts(&lanes, width, SharedOp::Load).units, hardware, "{line}");
        let said = shared::profiled(&lanes, width, SharedOp::Load);
        assert!(said.contains(&profiler), "{line}: {said:?}");
        // Loads of 8 bytes, and of 16 by all lanes, leave no doubt.
        assert!(said.start() == said.end() || width == 16 && lanes.count() < 32, "{line}: {said:?}");
        rows += 1;
        departures += u32::from(hardware != profiler);
    }
    assert_eq!((rows, departures), (193, 100));
}

#[test]
fn all_measured_requests() {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/truth");
    let truth = std::env::var_os("CUDALINT_TRUTH").map_or_else(beside, PathBuf::from);
    let path = truth.join("micro/fuzz_truth.csv");
    if path.exists() {
        let rows = read(&path);
        assert_eq!(rows.len(), 3956);
        assert_eq!(check(&rows), 36);
    }
}
