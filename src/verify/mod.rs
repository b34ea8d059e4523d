//! Confronts predictions with a GPU: device slice, compile, run in a child process, measure, compare.
//!
//! ```text
//! Job -slice-> translation unit -compile-> CUBIN -child-> Run (counters, times) -compare-> Verification
//! ```
//!
//! The only folder that names cudarc. Nothing of CUDA is needed to build or start: [`availability`] says what is
//! missing. A child process runs the kernels it is given, never host code of the project; a fault, a hang or a
//! compiler crash costs one job.

pub mod job;

mod child;
mod closure;
pub mod compare;
pub mod compile;
mod counters;
mod device;
pub mod exact;
pub mod host;
pub mod inputs;
mod library;
mod parent;
mod persisting;
pub mod plan;
pub mod recorder;
pub mod report;
pub mod sass;
mod slice;
mod tensor;

use std::fmt::Write as _;

pub use child::main as child_main;
pub use library::{Availability, Found, availability, nvrtc_architectures};
pub use parent::Launcher;
pub use slice::{Slicer, has_dynamic_shared, kernels};

use job::{Job, Run, Verification};

/// Compiles, runs and judges one job: its run and a verdict per prediction.
pub fn verify(job: &Job, launcher: &Launcher) -> (Run, Vec<Verification>) {
    let run = run(job, launcher);
    let verdicts = compare::compare(job, &run);
    (run, verdicts)
}

/// Runs one job, and of the fixes that are to save requests each once more: CUPTI counts one kernel a process.
pub fn run(job: &Job, launcher: &Launcher) -> Run {
    let mut run = launcher.run(job);
    if run.method != Some(job::Method::SassMetrics) {
        return run;
    }
    let fixes = run.timing.as_mut().into_iter().flat_map(|timing| &mut timing.fixes);
    let mut seconds = 0.0;
    for (fix, outcome) in job.fixes.iter().zip(fixes).filter(|(fix, _)| fix.count_requests) {
        if outcome.after_ms.is_none() {
            continue;
        }
        let alone = Job {
            source: fix.source.clone(),
            whole_file: fix.whole_file.clone(),
            fixes: Vec::new(),
            predictions: Vec::new(),
            ..job.clone()
        };
        let counted = launcher.run(&alone);
        seconds += counted.seconds;
        outcome.global_requests = counted.global_requests();
    }
    run.seconds += seconds;
    run
}

/// What `--dry-run` shows: the generated translation unit and the inputs.
pub fn describe(job: &Job) -> String {
    let ([gx, gy, gz], [bx, by, bz]) = (job.launch.grid, job.launch.block);
    let mut text = format!("// kernel `{}`, grid {gx}x{gy}x{gz}, block {bx}x{by}x{bz}", job.kernel);
    if job.launch.shared_bytes > 0 {
        let _ = write!(text, ", {} B dynamic shared memory", job.launch.shared_bytes);
    }
    text.push('\n');
    for (index, arg) in job.args.iter().enumerate() {
        let _ = match arg {
            job::Arg::Scalar { bytes } => writeln!(text, "// argument {index}: {}", scalar(bytes)),
            job::Arg::Buffer(buffer) => {
                writeln!(text, "// argument {index}: {} B, {:?}", buffer.bytes, buffer.fill)
            }
            job::Arg::Struct { bytes, pointers } => {
                let sizes: Vec<String> = pointers
                    .iter()
                    .map(|(at, buffer)| format!("{} B at offset {at}", buffer.bytes))
                    .collect();
                writeln!(
                    text,
                    "// argument {index}: {} B by value, buffers: {}",
                    bytes.len(),
                    sizes.join(", ")
                )
            }
        };
    }
    text.push_str(&job.source);
    text
}

fn scalar(bytes: &[u8]) -> String {
    match *bytes {
        [a] => a.to_string(),
        [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).to_string(),
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]).to_string(),
        _ => format!("{} B", bytes.len()),
    }
}
