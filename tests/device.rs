//! Runs fixtures/verify on a GPU and compares every marked line with it. Without a GPU it says so and passes.
//!
//! The test is its own child process (`verify-child`), so the one binary can be carried to a machine with a GPU and run
//! there: `device [--date YYYY-MM-DD --record FILE] [FILTER]`, or `device --jobs FILE` for other jobs. `--record` writes jobs (without their sources) and runs as
//! JSON; the last such record is fixtures/verify/recorded.json, replayed without a GPU by tests/it/verify.rs.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use cudalint::verify::job::{
    Arg, Buffer, Direction, Fill, Fixed, Job, Launch, Measured, Prediction, Run, Space, Status, Verification,
    Window,
};
use cudalint::verify::{self, Launcher, compare};

const KERNELS: &str = include_str!("../fixtures/verify/kernels.cu");

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "verify-child") {
        return ExitCode::from(verify::child_main());
    }
    if args.iter().any(|arg| arg == "--list") {
        return ExitCode::SUCCESS;
    }
    let availability = verify::availability();
    println!("{availability}");
    if !availability.can_run() {
        println!("\nno kernel was run: this machine cannot run any");
        println!("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        return ExitCode::SUCCESS;
    }
    let option = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    let (record, date) = (option("--record"), option("--date"));
    let free = |arg: &&String| !arg.starts_with('-') && Some(*arg) != record && Some(*arg) != date;
    let filter = args.iter().rfind(free).map_or("", String::as_str);
    if let Some(path) = option("--jobs") {
        return run_jobs(path);
    }
    let (code, recorded) = run_all(filter);
    if let Some(path) = record {
        let text = serde_json::json!({ "date": date, "runs": recorded });
        std::fs::write(path, format!("{text}\n")).expect("the record is written");
    }
    code
}

/// Runs jobs that a file holds as JSON lines: a line per verdict that is not plainly confirmed, then the counts.
fn run_jobs(path: &str) -> ExitCode {
    let launcher = Launcher::this_executable().expect("the path of this executable");
    let text = std::fs::read_to_string(path).expect("the jobs are readable");
    let jobs: Vec<Job> = text.lines().map(|line| serde_json::from_str(line).expect("a job")).collect();
    let (mut ran, mut counts, mut seconds) = (0, [0; 3], 0.0);
    for job in &jobs {
        let (run, verdicts) = verify::verify(job, &launcher);
        seconds += run.seconds;
        match run.failure.as_ref().or(run.out_of_range.first()) {
            Some(failure) => {
                println!("NOT RUN {}: {}", job.kernel, failure.lines().next().unwrap_or_default())
            }
            None => ran += 1,
        }
        for (verdict, prediction) in verdicts.iter().zip(&job.predictions) {
            counts[verdict.status as usize] += 1;
            if run.failure.is_none() && (verdict.status != Status::Confirmed || verdict.reason.is_some()) {
                println!(
                    "{} {}:{} {}: {verdict}",
                    job.kernel, prediction.file, prediction.line, prediction.operation
                );
            }
        }
    }
    let [confirmed, refuted, not_run] = counts;
    println!("{ran} of {} jobs ran, {:.2} s each", jobs.len(), seconds / jobs.len().max(1) as f64);
    println!("{confirmed} confirmed, {refuted} refuted, {not_run} not run");
    ExitCode::SUCCESS
}

fn run_all(filter: &str) -> (ExitCode, Vec<(Job, Run)>) {
    let mut launcher = Launcher::this_executable().expect("the path of this executable");
    // Without the folder of this machine.
    let plain = |measured: &mut Measured| {
        if measured.file.ends_with("/kernels.cu") {
            measured.file = "kernels.cu".to_owned();
        }
    };
    let (mut passed, mut failed, mut recorded) = (0, 0, Vec::new());
    let begun = Instant::now();
    for case in cases().iter().filter(|case| case.name().contains(filter)) {
        launcher.timeout = Duration::from_secs(if case.job.kernel == "hangs" { 3 } else { 20 });
        let (run, verdicts) = verify::verify(&case.job, &launcher);
        let complaints = case.complaints(&run, &verdicts);
        show(case, &run, &verdicts, &complaints);
        if complaints.is_empty() {
            passed += 1
        } else {
            failed += 1
        }
        let fixes = case.job.fixes.iter();
        let fixes =
            fixes.map(|fix| Fixed { source: String::new(), whole_file: None, ..fix.clone() }).collect();
        let job = Job { source: String::new(), fixes, whole_file: None, ..case.job.clone() };
        let mut run = run;
        run.measured.iter_mut().for_each(plain);
        recorded.push((job, run));
    }
    println!("{:.2} s for {} kernels", begun.elapsed().as_secs_f64(), passed + failed);
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out"
    );
    (if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }, recorded)
}

fn show(case: &Case, run: &Run, verdicts: &[Verification], complaints: &[String]) {
    println!("{} {:.2} s {}", if complaints.is_empty() { "ok  " } else { "FAIL" }, run.seconds, case.name());
    for note in run.notes.iter().chain(&run.failure) {
        println!("       {}", note.lines().next().unwrap_or_default());
    }
    if let Some(timing) = &run.timing {
        println!("       {timing:?}");
    }
    for verdict in verdicts {
        println!("       line {}: {verdict}", case.job.predictions[verdict.id as usize].line);
    }
    for complaint in complaints {
        println!("       !! {complaint}");
    }
    if !complaints.is_empty() {
        for m in &run.measured {
            println!("       {m:?}");
        }
    }
}

/// A job and what must come of it.
struct Case {
    job: Job,
    /// Part of the reason where it must not run.
    failure: Option<&'static str>,
    /// What else must be true of the run.
    check: fn(&Run) -> Result<(), String>,
}

impl Case {
    fn name(&self) -> String {
        let how = if self.job.record { ", recorded" } else { "" };
        let what = if self.job.window.is_some() { "persisting lines" } else { &self.job.kernel };
        let how = if self.job.trace { ", traced" } else { how };
        format!("{what}{how}")
    }

    fn complaints(&self, run: &Run, verdicts: &[Verification]) -> Vec<String> {
        let mut complaints = Vec::new();
        if let Some(wanted) = self.failure {
            let reasons: Vec<&String> = run.failure.iter().chain(&run.out_of_range).collect();
            if !reasons.iter().any(|reason| reason.contains(wanted)) {
                complaints.push(format!("expected `{wanted}`, got {reasons:?}"));
            }
            return complaints;
        }
        if self.job.window.is_some()
            && run.failure.as_ref().is_some_and(|why| why.contains("no line persists"))
        {
            return complaints;
        }
        complaints.extend(run.failure.iter().map(|failure| format!("not run: {failure}")));
        complaints.extend(run.out_of_range.iter().cloned());
        for verdict in verdicts.iter().filter(|verdict| verdict.status != Status::Confirmed) {
            complaints.push(format!("line {}: {verdict}", self.job.predictions[verdict.id as usize].line));
        }
        complaints.extend((self.check)(run).err());
        complaints
    }
}

fn floats(count: u64) -> Arg {
    Arg::buffer(count * 4, Fill::Float { element_bytes: 4 })
}

fn doubles(count: u64) -> Arg {
    Arg::buffer(count * 8, Fill::Float { element_bytes: 8 })
}

fn index(count: u64, limit: u64) -> Arg {
    Arg::buffer(count * 4, Fill::Index { element_bytes: 4, limit })
}

const LINEAR: Launch = Launch { grid: [8, 1, 1], block: [256, 1, 1], shared_bytes: 0 };

fn case(kernel: &str, launch: Launch, args: Vec<Arg>) -> Case {
    Case {
        job: Job {
            kernel: kernel.to_owned(),
            source: format!("#line 1 \"kernels.cu\"\n{KERNELS}"),
            launch,
            args,
            predictions: predictions(kernel),
            ..Job::default()
        },
        failure: None,
        check: |_| Ok(()),
    }
}

/// One fix saves time with equal outputs, the other is no fix.
fn both_fixes(run: &Run) -> Result<(), String> {
    let timing = run.timing.clone().unwrap_or_default();
    match timing.fixes.as_slice() {
        [pad, wrong]
            if pad.outputs_equal == Some(true)
                && pad.after_ms.is_some_and(|after| after < timing.before_ms)
                && wrong.outputs_equal == Some(false) =>
        {
            Ok(())
        }
        _ => Err(format!("one fix is to be equal and faster, the other different: {timing:?}")),
    }
}

fn saves_requests(run: &Run) -> Result<(), String> {
    let verdict = compare::saved_requests(run, 0);
    let fewer = verdict.global_requests_after < verdict.global_requests_before;
    if verdict.status == Status::Confirmed && fewer { Ok(()) } else { Err(format!("{verdict}: {verdict:?}")) }
}

/// As much as may persist on an H200.
const WINDOW: Window = Window { bytes: 37 << 20, hit_ratio: 1.0, set_aside: 37 << 20 };

/// Whether lines persist depends on how the device is set up; where they do, the reset has to pay.
fn reset_pays(run: &Run) -> Result<(), String> {
    let verdict = compare::left_persisting(WINDOW, run);
    println!("       {verdict}");
    if verdict.status == Status::Confirmed { Ok(()) } else { Err(verdict.to_string()) }
}

/// `failure` is part of the reason.
fn fails(kernel: &str, args: Vec<Arg>, failure: &'static str) -> Case {
    Case { failure: Some(failure), ..case(kernel, Launch { grid: [1; 3], ..LINEAR }, args) }
}

fn cases() -> Vec<Case> {
    let row = || Buffer { bytes: 2048 * 4, fill: Fill::Float { element_bytes: 4 }, pointers: vec![] };
    let data = Buffer { bytes: 2048 * 64 * 4, ..row() };
    let pitch = [64, 0, 0, 0, 0, 0, 0, 0];
    let view = Arg::Struct { bytes: [[0; 8], pitch].concat(), pointers: vec![(0, data)] };
    let rows = Arg::Buffer(Buffer { bytes: 16, fill: Fill::Zero, pointers: vec![(0, row()), (8, row())] });
    let tile = Launch { grid: [128, 128, 1], block: [32, 8, 1], shared_bytes: 0 };
    let square = Launch { block: [16, 16, 1], ..LINEAR };
    let n = 4096;
    let mut transpose = case("transpose", tile, vec![floats(n * n), floats(n * n), Arg::i32(n as i32)]);
    let changed = |case: &Case, from: &str, to: &str| Fixed {
        title: format!("`{to}`"),
        source: case.job.source.replace(from, to),
        ..Fixed::default()
    };
    let wrong =
        changed(&transpose, "tile[threadIdx.x][threadIdx.y + j];", "tile[threadIdx.y + j][threadIdx.x];");
    transpose.job.fixes = vec![changed(&transpose, "tile[32][32]", "tile[32][33]"), wrong];
    transpose.check = both_fixes;
    let mut accumulates = case("accumulates", LINEAR, vec![floats(16 * 2048), floats(2048)]);
    let restrict =
        changed(&accumulates, "accumulates(const float* in", "accumulates(const float* __restrict__ in");
    accumulates.job.fixes = vec![Fixed { count_requests: true, ..restrict }];
    accumulates.check = saves_requests;
    let mut traced =
        fails("reads_past_the_end", vec![floats(256), floats(256)], "`in[threadIdx.x + 16]` at kernels.cu:");
    traced.job.trace = true;
    traced.job.predictions = vec![place_of("in[threadIdx.x + 16]")];
    let one_too_far = |kernel, count, bytes, words| {
        let launch = Launch { grid: [1; 3], block: [count, 1, 1], shared_bytes: 0 };
        let made = |bytes| Arg::buffer(bytes, Fill::Float { element_bytes: 4 });
        let args = vec![made(u64::from(count) * bytes), made(u64::from(count) * bytes)];
        let mut case = Case { failure: Some(words), ..case(kernel, launch, args) };
        case.job.params = vec!["in".to_owned(), "out".to_owned()];
        case.job.predictions =
            vec![Prediction { access_bytes: bytes as u32, ..place_in(kernel, "in[threadIdx.x + 1]") }];
        case
    };
    let persisting =
        Case { job: Job { window: Some(WINDOW), ..Job::default() }, failure: None, check: reset_pays };
    let mut by_nvcc = case("structs", LINEAR, vec![floats(8192), floats(2048)]);
    let host = "#include <vector>\nint main() { std::vector<int> v; }\n";
    by_nvcc.job.source = format!("{host}#line 1 \"kernels.cu\"\n{KERNELS}");
    by_nvcc.job.whole_file = Some(by_nvcc.job.source.clone());
    let mut cases = vec![
        case("strides", LINEAR, vec![floats(65536), floats(8192)]),
        case("copy<float>", LINEAR, vec![floats(2048), floats(2048)]),
        case("copy<double>", LINEAR, vec![doubles(2048), doubles(2048)]),
        case("copy<unsigned char>", LINEAR, vec![floats(512), floats(512)]),
        case("copy<float4>", LINEAR, vec![floats(8192), floats(8192)]),
        case("structs", LINEAR, vec![floats(8192), floats(2048)]),
        case("whole_structs", LINEAR, vec![floats(6144), floats(6144)]),
        case("aligned_structs", LINEAR, vec![floats(8192), floats(2048)]),
        case("banks", LINEAR, vec![floats(8448), floats(2048)]),
        case("wide_banks", LINEAR, vec![doubles(512), doubles(2048)]),
        case("rows_16", square, vec![floats(16384), floats(16384), Arg::i32(128)]),
        case("odd_lanes", LINEAR, vec![floats(2048), floats(2048)]),
        case("half_the_warps", LINEAR, vec![floats(512), floats(256), Arg::i32(128)]),
        case("atomics", LINEAR, vec![index(2048, 100), index(2048, 100)]),
        case("gather", LINEAR, vec![floats(1000), index(2048, 1000), floats(2048)]),
        case("view::column<float, 16>", LINEAR, vec![view, floats(2048)]),
        case("rows", LINEAR, vec![rows, floats(2048)]),
        case("dynamic", Launch { shared_bytes: 65536, ..LINEAR }, vec![floats(256), floats(256)]),
        transpose,
        accumulates,
        persisting,
        by_nvcc,
        // 64 B past the end are past the mapping of what ends with its page; what begins with its page has canaries.
        fails("writes_past_the_end", vec![floats(256)], "argument 0: 64 B were written after its end"),
        fails("writes_into_the_last_256", vec![floats(250)], "argument 0: 24 B were written after its end"),
        fails("reads_past_the_end", vec![floats(256), floats(256)], "outside its buffers"),
        traced,
        // 252 floats end with their page, 250 end 8 B before it, and 251 bytes 5.
        one_too_far("reads_one_too_far", 252, 4, "outside its buffers"),
        one_too_far("reads_one_too_far", 250, 4, "reads 4 B past the end of `in`"),
        one_too_far("reads_a_byte_too_far", 251, 1, "reads 1 B past the end of `in`"),
        fails("reads_beyond_shared", vec![index(256, 1 << 30), index(256, 1)], "accessed shared memory"),
        fails("reads_before_the_start", vec![floats(256), floats(256)], "outside its buffers"),
        fails("far_away", vec![floats(256)], "outside its buffers"),
        fails("hangs", vec![floats(1), floats(1)], "the kernel takes 1"),
        fails("hangs", vec![Arg::buffer(4, Fill::Zero)], "the kernel does not end within"),
        fails("traps", vec![floats(256)], "trapped"),
        fails("misaligned", vec![floats(2048)], "misaligned"),
        fails(
            "copy<float>",
            vec![floats(256), Arg::i32(3)],
            "argument 1 was made with 4 B, the kernel takes 8 B",
        ),
        fails("copy<missing>", vec![floats(256), floats(256)], "does not compile"),
    ];
    let sites = ["strides", "banks", "structs", "odd_lanes", "atomics"];
    let plain = cases.iter().filter(|case| case.failure.is_none() && case.job.whole_file.is_none());
    let chosen = plain.filter(|case| sites.contains(&case.job.kernel.as_str()));
    let recorded: Vec<Case> =
        chosen.map(|case| Case { job: with_places(&case.job), failure: None, check: |_| Ok(()) }).collect();
    cases.extend(recorded);
    cases
}

/// The marks `// = space operation bytes: value/ideal` in the body of a kernel and in `view::Matrix`.
fn predictions(kernel: &str) -> Vec<Prediction> {
    let plain = kernel.split('<').next().unwrap_or_default();
    let (space, plain) = plain.rsplit_once("::").unwrap_or(("", plain));
    let mut inside = false;
    let mut found = Vec::new();
    for (at, line) in KERNELS.lines().enumerate() {
        let at_kernel = line.contains("__global__") || line.contains("struct Matrix");
        let ours =
            line.contains(&format!(" {plain}(")) || (!space.is_empty() && line.contains("struct Matrix"));
        inside = if at_kernel { ours } else { inside };
        let Some((_, mark)) = line.split_once("// = ").filter(|_| inside) else { continue };
        found.push(prediction(found.len() as u64, at as u32 + 1, mark));
    }
    found
}

fn prediction(id: u64, line: u32, mark: &str) -> Prediction {
    let words: Vec<&str> = mark.split([' ', ':', '/']).filter(|word| !word.is_empty()).collect();
    let [space, operation, bytes, value, ideal] = words.as_slice() else { panic!("odd mark `{mark}`") };
    let (value, ideal): (f64, f64) = (value.parse().expect("a number"), ideal.parse().expect("a number"));
    let shared = *space == "shared";
    Prediction {
        id,
        file: "kernels.cu".to_owned(),
        line,
        end_line: line,
        column: None,
        expression: None,
        space: if shared { Space::Shared } else { Space::Global },
        operation: match *operation {
            "load" => Direction::Load,
            "store" => Direction::Store,
            _ => Direction::Atomic,
        },
        access_bytes: bytes.parse().expect("a number"),
        sectors: (!shared).then_some(value),
        ideal_sectors: (!shared).then_some(ideal),
        wavefronts: shared.then_some(value),
        ideal_wavefronts: shared.then_some(ideal),
        profiled: None,
        assumed: None,
        here: None,
        twins: Vec::new(),
        merged_with: Vec::new(),
        is_invariant: false,
        is_repeated: false,
        by_data: false,
        calls: Vec::new(),
    }
}

/// A load of four bytes whose text stands once in the kernels.
fn place_of(expression: &str) -> Prediction {
    place_in("", expression)
}

/// A load of four bytes on a kernel's first line.
fn place_in(kernel: &str, expression: &str) -> Prediction {
    let is_it = |line: &str| line.contains(kernel) && line.contains(expression);
    let (at, line) = KERNELS.lines().enumerate().find(|(_, line)| is_it(line)).expect("the expression");
    let column = line.find(expression).expect("the expression") as u32 + 1;
    let expression = Some(expression.to_owned());
    Prediction { column: Some(column), expression, ..prediction(0, at as u32 + 1, "global load 4: 4/4") }
}

/// The same job with the place of each access, so that its addresses can be recorded.
fn with_places(job: &Job) -> Job {
    let mut job = Job { record: true, ..job.clone() };
    for prediction in &mut job.predictions {
        let line = KERNELS.lines().nth(prediction.line as usize - 1).unwrap_or_default();
        let code = line.split("//").next().unwrap_or_default();
        let after_equals = code.find(" = ").map_or(0, |at| at + 3);
        let start = match prediction.operation {
            Direction::Atomic => code.find('&').map_or(0, |at| at + 1),
            Direction::Store => code.len() - code.trim_start().len(),
            Direction::Load => after_equals,
        };
        let rest = code.get(start..).unwrap_or_default();
        let end = rest.find(']').map_or(rest.len(), |at| at + 1);
        let field = rest.get(end..).filter(|rest| rest.starts_with('.')).map_or(0, |_| 2);
        prediction.column = Some(start as u32 + 1);
        prediction.expression = rest.get(..end + field).map(str::to_owned);
    }
    job
}
