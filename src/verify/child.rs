//! The child process: compiles one job, runs it once plainly, times it, measures it, answers.
//!
//! A fault, a hang or a compiler crash costs this process alone. The answer goes to standard output behind
//! [`ANSWER`], because a kernel's `printf` goes there too; each step is announced behind [`STEP`], so that the
//! parent can say how far a killed child came.

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use super::compile::{self, Cubin};
use super::device::{Gpu, Inputs, Kernel, Side};
use super::job::{Arch, FixRun, Fixed, Job, Method, Run, TOO_SLOW, Timing};
use super::{counters, device, library, persisting, recorder};

/// Begins the line that holds the answer as JSON.
pub const ANSWER: &str = "\u{1e}cudalint-answer ";
/// Begins a line that names the step now begun.
pub const STEP: &str = "\u{1e}cudalint-step ";

/// Launches whose times give the median, after warm-up.
const TIMED: usize = 20;
/// The same where no fix is to be compared with.
const TIMED_ALONE: usize = 5;
/// Most time spent on timing one variant, in milliseconds.
const TIMING_BUDGET_MS: f64 = 500.0;
/// Most bytes that rotated input sets take together.
const ROTATION_BYTES: u64 = 2 << 30;
const MOST_SETS: u64 = 16;
/// Outputs above this are not compared.
const COMPARED_BYTES: u64 = 1 << 30;
/// The share of the time limit after which no further fix is begun.
const SHARE_FOR_FIXES: f64 = 0.5;
/// Launches' worth of time that counting takes (measured on an H200: 60 to 80).
const COUNTING: f64 = 80.0;
/// Seconds that counting may take while smaller sizes are left to try.
const HASTY_SECONDS: f64 = 1.0;
/// Most time spent on timing a kernel whose fixes are not timed, in milliseconds.
const ALONE_BUDGET_MS: f64 = 50.0;
/// The share of the time limit after which a launch counts as one that does not end.
const SHARE_FOR_ONE_LAUNCH: f64 = 0.2;

/// `cudalint verify-child`: a job as JSON on standard input, a run as JSON on standard output. The process's exit code.
pub fn main() -> u8 {
    let mut text = String::new();
    let run = match std::io::stdin().read_to_string(&mut text) {
        Ok(_) => match serde_json::from_str::<Job>(&text) {
            Ok(job) => guarded(&job),
            Err(error) => failed(format!("the job is not readable: {error}")),
        },
        Err(error) => failed(format!("the job is not readable: {error}")),
    };
    let json = serde_json::to_string(&run).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "\n{ANSWER}{json}").and_then(|()| out.flush());
    // After a fault the driver's own clean-up may fail; nothing of it is wanted.
    std::process::exit(if written.is_ok() { 0 } else { 1 })
}

/// cudarc panics where a library lacks a symbol; that becomes a failure with its message.
fn guarded(job: &Job) -> Run {
    let message = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let seen = message.clone();
    std::panic::set_hook(Box::new(move |info| {
        if let Ok(mut seen) = seen.lock() {
            *seen = info.to_string();
        }
    }));
    let run = std::panic::catch_unwind(|| run(job));
    run.unwrap_or_else(|_| {
        let message = message.lock().map(|message| message.clone()).unwrap_or_default();
        failed(format!("CUDA's libraries do not fit this program: {message}"))
    })
}

fn failed(reason: String) -> Run {
    Run { failure: Some(reason), ..Run::default() }
}

/// Runs a job in this process.
pub fn run(job: &Job) -> Run {
    let begun = Instant::now();
    let mut run = Run::default();
    if let Err(reason) = fill(job, &mut run, begun) {
        run.failure = Some(reason);
    }
    run.seconds = begun.elapsed().as_secs_f64();
    run
}

pub(super) fn step(name: &str) {
    let mut out = std::io::stdout().lock();
    // The step is only for the parent's message; the answer matters.
    let _ = writeln!(out, "\n{STEP}{name}").and_then(|()| out.flush());
}

fn fill(job: &Job, run: &mut Run, begun: Instant) -> Result<(), String> {
    if job.compile_only {
        step("compiling");
        let arch = job.arch.ok_or("no architecture to compile for was named")?;
        let cubin =
            or_by_nvcc(compiled_nvrtc(job, &job.source, arch), job, job.whole_file.as_deref(), arch, run)?;
        run.compiler = Some(cubin.compiler);
        return Ok(());
    }
    library::driver()?;
    step("opening the device");
    let arch = job.arch.map_or_else(|| device::arch().map(Arch::from), Ok)?;
    let beside = Beside::begin(job, arch);
    let gpu = Gpu::open()?;
    run.device = Some(gpu.info.clone());
    if let Some(window) = job.window {
        return persisting::demonstrate(window, &gpu, arch, run);
    }
    let trace =
        |inputs: &Inputs| recorder::trace(job, &gpu, inputs, |source| compiled_nvrtc(job, source, arch));
    if job.trace {
        step("tracing");
        run.out_of_range = trace(&gpu.inputs(&job.args, Side::End)?)?;
        return Ok(());
    }
    step("compiling");
    let cubin = beside.kernel(job, arch, run)?;
    run.compiler = Some(cubin.compiler.clone());

    step("making inputs");
    let kernel = gpu.load(&cubin.bytes, &cubin.name, job.launch, &job.args)?;
    let inputs = gpu.inputs(&job.args, Side::Start)?;
    if !gpu.guards_loads() {
        run.notes.push("this device maps no guard pages: loads outside buffers are not noticed".to_owned());
    }

    step("running the kernel");
    let launched = Instant::now();
    run.out_of_range = guarded_run(job, &gpu, &kernel, &inputs)?;
    is_fast_enough(job, launched.elapsed().as_secs_f64(), begun, || kernel.time(&gpu, &[&inputs], 1))?;
    if run.out_of_range.is_empty() && inputs.has_room_after() {
        // What lies behind a buffer that begins with its page is mapped: loads there show where it ends with one.
        let other = gpu.inputs(&job.args, Side::End)?;
        run.out_of_range.extend(guarded_run(job, &gpu, &kernel, &other)?);
        run.out_of_range.dedup();
        if other.unguarded() > 0 && run.out_of_range.is_empty() {
            step("tracing");
            match trace(&other) {
                Ok(outside) => run.out_of_range = outside,
                Err(_) => run.notes.push(format!(
                    "loads less than {} B past the end of a buffer are not noticed: the kernel that looks for them does not compile",
                    other.unguarded()
                )),
            }
        }
    }
    if run.out_of_range.is_empty() {
        step("timing the kernel");
        let bench = Bench { job, gpu: &gpu, arch, kernel: &kernel, beside: &beside, begun };
        match bench.time(run, &inputs) {
            Ok(timing) => run.timing = Some(timing),
            Err(reason) => run.notes.push(format!("not timed: {reason}")),
        }
    }

    step("measuring the kernel");
    inputs.refill()?;
    let counted = if job.record {
        Err("addresses were asked for".to_owned())
    } else {
        counters::measure(&gpu, &cubin, || kernel.launch(&inputs))
    };
    match counted {
        Ok(measured) => {
            run.measured = measured;
            run.method = Some(Method::SassMetrics);
            return Ok(());
        }
        Err(reason) => run.notes.push(format!("no counters: {reason}")),
    }
    step("recording the kernel's addresses");
    inputs.refill()?;
    run.measured = recorder::measure(job, &gpu, &inputs, |source| compiled_nvrtc(job, source, arch))?;
    run.method = Some(Method::Recorder);
    Ok(())
}

/// Whether the kernel can be measured in time, after a first launch of some seconds; the time of another, in milliseconds,
/// decides, since the first may have taken long for other reasons.
fn is_fast_enough(
    job: &Job,
    first: f64,
    begun: Instant,
    again: impl FnOnce() -> Result<Vec<f64>, String>,
) -> Result<(), String> {
    let left = job.seconds - begun.elapsed().as_secs_f64();
    let most = if job.hasty { left.min(HASTY_SECONDS) } else { left };
    if job.seconds == 0.0 || COUNTING * first <= most {
        return Ok(());
    }
    let launch = again()?.first().map_or(first, |ms| ms / 1e3);
    if COUNTING * launch > most {
        return Err(format!("{TOO_SLOW}: {:.0} ms a launch", 1e3 * launch));
    }
    Ok(())
}

/// One launch; what it wrote outside its buffers.
fn guarded_run(job: &Job, gpu: &Gpu, kernel: &Kernel, inputs: &Inputs) -> Result<Vec<String>, String> {
    kernel.launch(inputs)?;
    if job.seconds > 0.0 {
        gpu.wait_for(Duration::from_secs_f64(SHARE_FOR_ONE_LAUNCH * job.seconds))?;
    }
    gpu.wait()?;
    inputs.out_of_range()
}

/// What NVRTC made of a slice.
type Compiled = Result<Cubin, String>;

/// Compilations on threads of their own, beside the opening of the device and each other: the kernel's, then its fixes'.
struct Beside(Vec<OnceLock<Compiled>>, mpsc::Receiver<(usize, Compiled)>);

impl Beside {
    fn begin(job: &Job, arch: Arch) -> Beside {
        let sources = if job.window.is_some() || job.trace {
            Vec::new()
        } else {
            std::iter::once(&job.source).chain(job.fixes.iter().map(|fix| &fix.source)).collect()
        };
        let (sender, receiver) = mpsc::channel();
        let job = Arc::new(Job { source: String::new(), ..job.clone() });
        for (place, source) in sources.iter().enumerate() {
            let (sender, job, source) = (sender.clone(), job.clone(), (*source).clone());
            std::thread::spawn(move || {
                // Nobody may be waiting any more.
                let _ = sender.send((place, compiled_nvrtc(&job, &source, arch)));
            });
        }
        Beside(sources.iter().map(|_| OnceLock::new()).collect(), receiver)
    }

    /// Waits for one of them; a thread that ended without an answer is compiled again here.
    fn wait(&self, place: usize) -> Option<Compiled> {
        let slot = self.0.get(place)?;
        while slot.get().is_none() {
            let (place, compiled) = self.1.recv().ok()?;
            if let Some(slot) = self.0.get(place) {
                let _ = slot.set(compiled);
            }
        }
        slot.get().cloned()
    }

    fn kernel(&self, job: &Job, arch: Arch, run: &mut Run) -> Compiled {
        let first = self.wait(0).unwrap_or_else(|| compiled_nvrtc(job, &job.source, arch));
        or_by_nvcc(first, job, job.whole_file.as_deref(), arch, run)
    }

    fn fix(&self, place: usize, job: &Job, fix: &Fixed, arch: Arch, run: &mut Run) -> Compiled {
        let first = self.wait(place + 1).unwrap_or_else(|| compiled_nvrtc(job, &fix.source, arch));
        or_by_nvcc(first, job, fix.whole_file.as_deref(), arch, run)
    }
}

/// Where NVRTC refuses the slice, the whole file by nvcc.
fn or_by_nvcc(
    first: Compiled,
    job: &Job,
    whole_file: Option<&str>,
    arch: Arch,
    run: &mut Run,
) -> Result<Cubin, String> {
    let refused = match first {
        Ok(cubin) => return Ok(cubin),
        Err(refused) => refused,
    };
    let Some(whole) = whole_file else {
        return Err(format!("does not compile: {}", first_error(&refused)));
    };
    let folder = std::env::temp_dir().join(format!("cudalint-verify-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let cubin = compile::nvcc(&request(job, whole, arch), &folder);
    // Left-over temporary files are harmless.
    let _ = std::fs::remove_dir_all(&folder);
    match cubin {
        Ok(cubin) => {
            let why = first_error(&refused);
            run.notes
                .push(format!("the whole file was compiled by nvcc, since NVRTC refused the slice ({why})"));
            Ok(cubin)
        }
        Err(also) => {
            Err(format!("does not compile: {} (nvcc: {})", first_error(&refused), first_error(&also)))
        }
    }
}

fn compiled_nvrtc(job: &Job, source: &str, arch: Arch) -> Result<Cubin, String> {
    compile::nvrtc(&request(job, source, arch))
}

fn request<'a>(job: &'a Job, source: &'a str, arch: Arch) -> compile::Request<'a> {
    compile::Request {
        source,
        kernel: &job.kernel,
        arch,
        defines: &job.defines,
        include_dirs: &job.include_dirs,
    }
}

/// The line of a compiler's log that says what is wrong.
fn first_error(log: &str) -> &str {
    let wrong = |line: &&str| line.contains("error") || line.contains("fatal");
    log.lines().find(wrong).or(log.lines().next()).unwrap_or("no message").trim()
}

/// What is timed: one kernel of one job.
struct Bench<'a> {
    job: &'a Job,
    gpu: &'a Gpu,
    arch: Arch,
    kernel: &'a Kernel,
    beside: &'a Beside,
    begun: Instant,
}

impl Bench<'_> {
    /// Times the kernel and each of its fixes; inputs rotate over sets that together exceed the L2.
    fn time(&self, run: &mut Run, inputs: &Inputs) -> Result<Timing, String> {
        let (job, gpu) = (self.job, self.gpu);
        let wanted =
            if inputs.bytes() == 0 { 1 } else { (2 * gpu.info.l2_bytes).div_ceil(inputs.bytes()) + 1 };
        let possible = ROTATION_BYTES.checked_div(inputs.bytes()).unwrap_or(1);
        // Without a fix to compare with the time is a side note: one set of inputs will do.
        let sets = if job.fixes.is_empty() { 1 } else { wanted.min(possible).clamp(1, MOST_SETS) };
        let more: Vec<Inputs> =
            (1..sets).map(|_| gpu.inputs(&job.args, Side::Start)).collect::<Result<_, _>>()?;
        let sets: Vec<&Inputs> = std::iter::once(inputs).chain(&more).collect();

        let most = if job.fixes.is_empty() { TIMED_ALONE } else { TIMED };
        let (before_ms, launches) = median_time(gpu, self.kernel, &sets, most)?;
        let input_sets = sets.len() as u32;
        let mut timing = Timing { before_ms, launches, input_sets, fixes: Vec::new() };
        for (place, fix) in job.fixes.iter().enumerate() {
            let mut outcome =
                FixRun { title: fix.title.clone(), rule: fix.rule.clone(), ..FixRun::default() };
            if job.seconds > 0.0 && self.begun.elapsed().as_secs_f64() > SHARE_FOR_FIXES * job.seconds {
                outcome.note = Some("no time was left before the limit".to_owned());
            } else {
                if let Err(reason) = self.time_fix(place, fix, run, &sets, &mut outcome) {
                    outcome.note = Some(reason);
                }
            }
            timing.fixes.push(outcome);
        }
        Ok(timing)
    }

    fn time_fix(
        &self,
        place: usize,
        fix: &Fixed,
        run: &mut Run,
        sets: &[&Inputs],
        outcome: &mut FixRun,
    ) -> Result<(), String> {
        let (job, gpu) = (self.job, self.gpu);
        step("compiling the fix");
        let cubin = self.beside.fix(place, job, fix, self.arch, run)?;
        let fixed = gpu.load(&cubin.bytes, &cubin.name, job.launch, &job.args)?;
        step("running the fix");
        if let Some(inputs) = sets.first().filter(|inputs| inputs.bytes() <= COMPARED_BYTES) {
            let after = |kernel: &Kernel| {
                inputs.refill()?;
                kernel.launch(inputs)?;
                gpu.wait().map_err(|why| format!("with the fix: {why}"))?;
                inputs.contents()
            };
            let before = after(self.kernel)?;
            let equal = after(&fixed)? == before;
            if equal || after(self.kernel)? == before {
                outcome.outputs_equal = Some(equal);
            } else {
                outcome.note = Some("outputs differ between runs of the kernel itself".to_owned());
            }
        }
        step("timing the fix");
        let (after_ms, _) = median_time(gpu, &fixed, sets, TIMED)?;
        outcome.after_ms = Some(after_ms);
        Ok(())
    }
}

/// The median of up to `most` launches after warm-up, and how many there were.
pub(super) fn median_time(
    gpu: &Gpu,
    kernel: &Kernel,
    sets: &[&Inputs],
    most: usize,
) -> Result<(f64, u32), String> {
    let warm = kernel.time(gpu, sets, 2)?;
    let one = warm.last().copied().unwrap_or(0.0).max(1e-3);
    let budget = if most == TIMED_ALONE { ALONE_BUDGET_MS } else { TIMING_BUDGET_MS };
    let launches = ((budget / one) as usize).clamp(1, most);
    let mut times = kernel.time(gpu, sets, launches)?;
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or(one);
    Ok((median, launches as u32))
}
