//! Runs what was planned, some children at a time, with a bar of progress where standard error is watched.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::super::super::verify::job::{Arch, Arg, Job, Run, Status, Verification};
use super::super::super::verify::{self, Launcher, compare};
use super::super::progress::{PATIENCE, bar};
use super::super::shell::Shell;
use super::planning::{About, Plan, PlannedKernel};

/// What became of one kernel.
pub struct Ran {
    pub run: Run,
    /// One per prediction of its job, in their order.
    pub verdicts: Vec<Verification>,
}

/// What became of the plan's kernels, `None` where there is no job, and the runs of its windows.
pub fn run(
    plan: &Plan,
    launcher: &Launcher,
    arch: Option<Arch>,
    parallel: usize,
    shell: &mut Shell<'_>,
) -> (Vec<Option<Ran>>, Vec<Option<Run>>) {
    let windows: Vec<Job> = plan
        .findings
        .iter()
        .filter_map(|finding| match finding.about {
            About::Window(window) => Some(Job { window: Some(window), arch, ..Job::default() }),
            About::Fix { .. } | About::Nothing(_) => None,
        })
        .collect();
    let kernels = &plan.kernels;
    let mut runs = all(kernels.len() + windows.len(), parallel, shell, &|at| match kernels.get(at) {
        Some(kernel) => one(kernel, launcher, arch),
        None => {
            windows.get(at - kernels.len()).map(|job| Ran { run: launcher.run(job), verdicts: Vec::new() })
        }
    });
    let shown = runs.split_off(kernels.len());
    (runs, shown.into_iter().map(|ran| Some(ran?.run)).collect())
}

/// Compiles the plan's kernels for an architecture and runs none.
pub fn compile(
    plan: &Plan,
    launcher: &Launcher,
    arch: Arch,
    parallel: usize,
    shell: &mut Shell<'_>,
) -> Vec<Option<Run>> {
    let kernels = &plan.kernels;
    all(kernels.len(), parallel, shell, &|at| {
        let job = kernels.get(at)?.job.as_ref().ok()?;
        let job = Job { arch: Some(arch), compile_only: true, fixes: Vec::new(), ..job.clone() };
        Some(launcher.run(&job))
    })
}

/// `work` for each of `count` places, on `parallel` threads.
fn all<T: Send>(
    count: usize,
    parallel: usize,
    shell: &mut Shell<'_>,
    work: &(dyn Fn(usize) -> Option<T> + Sync),
) -> Vec<Option<T>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let runs: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let begun = Instant::now();
    let mut is_drawn = false;
    std::thread::scope(|scope| {
        for _ in 0..parallel.min(count) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        break;
                    }
                    let run = work(at);
                    if let Ok(mut runs) = runs.lock()
                        && let Some(place) = runs.get_mut(at)
                    {
                        *place = run;
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while shell.progress && done.load(Ordering::Relaxed) < count {
            if begun.elapsed() > PATIENCE {
                is_drawn = true;
                // Progress is a courtesy: that it cannot be written is no failure.
                let _ = write!(shell.stderr, "\r{} kernels", bar(done.load(Ordering::Relaxed), count));
                let _ = shell.stderr.flush();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    if is_drawn {
        let _ = write!(shell.stderr, "\r\u{1b}[K");
    }
    runs.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// How much longer buffers are made for a kernel that left them.
const GROWTH: u64 = 16;

/// The share of a child's time limit after which no further sizes are tried.
const SHARE_FOR_OTHERS: f64 = 0.3;

/// Runs a kernel's job and judges it: with other sizes once more where none of its accesses was executed.
fn one(kernel: &PlannedKernel, launcher: &Launcher, arch: Option<Arch>) -> Option<Ran> {
    let job = kernel.job.as_ref().ok()?;
    let has_smaller = kernel.smaller.iter().any(|smaller| smaller.args != job.args);
    let job = Job { arch, hasty: has_smaller, ..job.clone() };
    let (job, mut run) = ended(kernel, launcher, job);
    let mut verdicts = compare::compare(&job, &run);
    let is_open = |verdict: &Verification| {
        verdict.status == Status::NotRun && verdict.measured_sectors.or(verdict.measured_wavefronts).is_none()
    };
    if run.failure.is_some() || !run.out_of_range.is_empty() {
        return Some(Ran { run, verdicts });
    }
    let mut tried = vec![&job.args];
    for other in &kernel.others {
        let is_late = run.seconds > SHARE_FOR_OTHERS * launcher.timeout.as_secs_f64();
        if !verdicts.iter().all(is_open) || verdicts.is_empty() || is_late || tried.contains(&&other.args) {
            continue;
        }
        tried.push(&other.args);
        let other = Job { fixes: Vec::new(), ..other.of(&job) };
        let again = launcher.run(&other);
        run.seconds += again.seconds;
        for (verdict, new) in verdicts.iter_mut().zip(compare::compare(&other, &again)) {
            if !is_open(&new) {
                *verdict = new;
            }
        }
        if !verdicts.iter().all(is_open) {
            run.notes.push("with other sizes, since equal ones execute none of its accesses".to_owned());
        }
    }
    Some(Ran { run, verdicts })
}

/// Runs a job: in larger buffers or with smaller sizes while it leaves them, with smaller sizes where it does not end, without its
/// fixes where one of them ended it. The job that was run in the end.
fn ended(kernel: &PlannedKernel, launcher: &Launcher, job: Job) -> (Job, Run) {
    let mut run = verify::run(&job, launcher);
    let mut ran = job;
    let again = |ran: &mut Job, run: &mut Run, job: Job, why: &str| {
        let seconds = run.seconds;
        *run = verify::run(&job, launcher);
        run.seconds += seconds;
        run.notes.push(why.to_owned());
        *ran = job;
    };
    let zeroed = |job: &Job| Job { args: job.args.iter().map(Arg::zeroed).collect(), ..job.clone() };
    if run.did_not_end() && zeroed(&ran).args != ran.args {
        // Flags that another block is to set, links that form a circle: zero more often ends than a made-up number.
        let job = zeroed(&ran);
        again(&mut ran, &mut run, job, "with zeros for integers, since it did not end with others");
    }
    if run.left_its_buffers() {
        let times = Arg::room(&ran.args, GROWTH);
        let args: Vec<Arg> = ran.args.iter().map(|arg| arg.grown(times)).collect();
        let larger = Job { args, ..ran.clone() };
        if times > 1 && larger.args != ran.args {
            let mut other = verify::run(&larger, launcher);
            other.seconds += run.seconds;
            if !other.left_its_buffers() {
                other.notes.push("with larger buffers, since it left the first".to_owned());
                (ran, run) = (larger, other);
            } else {
                run.seconds = other.seconds;
            }
        }
    }
    for smaller in &kernel.smaller {
        if !(run.left_its_buffers() || run.took_too_long()) || smaller.args == ran.args {
            continue;
        }
        let why = match run.left_its_buffers() {
            true => "with smaller sizes, since it left its buffers with larger ones",
            false => "with smaller sizes, since it took too long with larger ones",
        };
        let job = smaller.of(&ran);
        again(&mut ran, &mut run, job, why);
    }
    if ran.hasty && run.took_too_long() && !run.did_not_end() {
        let job = Job { hasty: false, ..ran.clone() };
        again(&mut ran, &mut run, job, "at length, since smaller sizes are no faster");
    }
    if run.left_its_buffers() && zeroed(&ran).args != ran.args {
        // Offsets and lengths that it loads: zeros stay inside.
        let job = zeroed(&ran);
        again(&mut ran, &mut run, job, "with zeros for integers, since it left its buffers with others");
    }
    if run.left_its_buffers() {
        name_what_left(&mut run, launcher, &ran);
    } else if let Some(why) =
        run.failure.clone().filter(|why| !ran.fixes.is_empty() && why.contains("the fix"))
    {
        let job = Job { fixes: Vec::new(), ..ran.clone() };
        again(&mut ran, &mut run, job, &format!("fixes are not timed: {why}"));
    }
    (ran, run)
}

/// Says of a run which left its buffers by which access, and what was made up that may be why.
fn name_what_left(run: &mut Run, launcher: &Launcher, job: &Job) {
    let traced = Job { trace: true, fixes: Vec::new(), whole_file: None, ..job.clone() };
    let traced = launcher.run(&traced);
    run.seconds += traced.seconds;
    let said = run.failure.iter().chain(&run.out_of_range).next().cloned().unwrap_or_default();
    let mut said = match traced.out_of_range.first() {
        Some(place) if !said.contains(place) => format!("{said}: {place}"),
        _ => said,
    };
    if !job.made_up.is_empty() {
        let made = job.made_up.join(", ");
        said = format!("{said}; its template arguments, which no launch gives, are made up: {made}");
    }
    match &mut run.failure {
        Some(failure) => *failure = said,
        None => run.out_of_range.insert(0, said),
    }
}
