//! Runs what was planned, some children at a time, with a bar of progress where standard error is watched.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::super::super::verify::job::{Arch, Arg, Job, Run};
use super::super::super::verify::{self, Launcher};
use super::super::progress::{PATIENCE, bar};
use super::super::shell::Shell;
use super::planning::{About, Plan, PlannedKernel};

/// The runs of the plan's kernels, `None` where there is no job, and of its windows.
pub fn run(
    plan: &Plan,
    launcher: &Launcher,
    arch: Option<Arch>,
    parallel: usize,
    shell: &mut Shell<'_>,
) -> (Vec<Option<Run>>, Vec<Option<Run>>) {
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
        None => windows.get(at - kernels.len()).map(|job| launcher.run(job)),
    });
    let shown = runs.split_off(kernels.len());
    (runs, shown)
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
fn all(
    count: usize,
    parallel: usize,
    shell: &mut Shell<'_>,
    work: &(dyn Fn(usize) -> Option<Run> + Sync),
) -> Vec<Option<Run>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let runs: Mutex<Vec<Option<Run>>> = Mutex::new((0..count).map(|_| None).collect());
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

/// Runs a kernel's job: with smaller sizes while it leaves its buffers, without its fixes where one of them ended it.
fn one(kernel: &PlannedKernel, launcher: &Launcher, arch: Option<Arch>) -> Option<Run> {
    let job = Job { arch, ..kernel.job.as_ref().ok()?.clone() };
    let mut run = verify::run(&job, launcher);
    if run.did_not_end() {
        // Flags that another block is to set, links that form a circle: zero more often ends than a made-up number.
        let zeroed: Vec<Arg> = job.args.iter().map(Arg::zeroed).collect();
        if zeroed != job.args {
            let other = verify::run(&Job { args: zeroed, ..job.clone() }, launcher);
            let seconds = run.seconds + other.seconds;
            if other.failure.is_none() {
                run = other;
                run.notes.push("with zeros for integers, since it did not end with others".to_owned());
            }
            run.seconds = seconds;
        }
        return Some(run);
    }
    let mut last = &job.args;
    for args in &kernel.smaller {
        if !run.left_its_buffers() || args == last {
            break;
        }
        let seconds = run.seconds;
        last = args;
        run = verify::run(&Job { args: args.clone(), ..job.clone() }, launcher);
        run.seconds += seconds;
        run.notes.push("with smaller sizes, since it left its buffers with larger ones".to_owned());
    }
    if run.left_its_buffers() {
        name_what_left(&mut run, kernel, launcher, &Job { args: last.clone(), ..job });
        return Some(run);
    }
    if let Some(why) = run.failure.clone().filter(|why| !job.fixes.is_empty() && why.contains("the fix")) {
        let seconds = run.seconds;
        run = launcher.run(&Job { fixes: Vec::new(), ..job });
        run.seconds += seconds;
        run.notes.push(format!("fixes are not timed: {why}"));
    }
    Some(run)
}

/// Says of a run which left its buffers by which access.
fn name_what_left(run: &mut Run, kernel: &PlannedKernel, launcher: &Launcher, job: &Job) {
    let job = Job {
        trace: true,
        fixes: Vec::new(),
        whole_file: None,
        predictions: kernel.everything.clone(),
        ..job.clone()
    };
    let traced = launcher.run(&job);
    run.seconds += traced.seconds;
    let Some(place) = traced.out_of_range.first() else { return };
    match &mut run.failure {
        Some(failure) => *failure = format!("{failure}: {place}"),
        None => run.out_of_range.insert(0, place.clone()),
    }
}
