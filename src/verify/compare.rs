//! Does what the device did agree with what was predicted?
//!
//! A prediction speaks of a source access, a counter of an instruction. They are alike where the line has an instruction of
//! the same space, direction and width: the prediction is confirmed where one of them is within 2 % or 0.06 of it. The
//! compiler may have merged accesses of a line into wider instructions or split one into narrower; then sectors of the line
//! are compared, within the bounds that hold for any merge: the widest member alone and all members apart.

use super::job::{
    Direction, FixRun, Job, Measured, Method, Prediction, Run, Space, Status, Verification, Window,
};

/// One verdict per prediction, in their order.
pub fn compare(job: &Job, run: &Run) -> Vec<Verification> {
    job.predictions.iter().map(|prediction| verdict(job, run, prediction)).collect()
}

/// Verdicts for a job that was not run at all.
pub fn not_run(job: &Job, reason: &str) -> Vec<Verification> {
    compare(job, &Run { failure: Some(reason.to_owned()), ..Run::default() })
}

fn verdict(job: &Job, run: &Run, prediction: &Prediction) -> Verification {
    let outcome = judge(job, run, prediction);
    let timing = run.timing.as_ref();
    let shared = prediction.space == Space::Shared;
    let value = outcome.measured.map(Measured::value);
    let ideal = outcome.measured.map(Measured::ideal);
    let proposed = job.fixes.iter().position(|fix| fix.ids.contains(&prediction.id));
    let fix = proposed.and_then(|at| timing?.fixes.get(at)).cloned().unwrap_or_default();
    Verification {
        id: prediction.id,
        status: outcome.status,
        reason: outcome.reason,
        predicted: outcome.predicted.or_else(|| prediction.value()),
        measured_sectors: value.filter(|_| !shared),
        measured_ideal_sectors: ideal.filter(|_| !shared),
        measured_wavefronts: value.filter(|_| shared),
        measured_ideal_wavefronts: ideal.filter(|_| shared),
        opcode: outcome.measured.map(|measured| measured.opcode.clone()),
        method: outcome.measured.and(run.method),
        device: run.device.as_ref().map(|device| device.name.clone()),
        milliseconds_before: timing.map(|timing| timing.before_ms),
        milliseconds_after: fix.after_ms,
        outputs_equal: fix.outputs_equal,
        ..Verification::default()
    }
}

/// The verdict on loads that a qualifier is to save, by the fix at place `at`: confirmed where the kernel with it makes
/// fewer requests to global memory, or where its time
/// falls by more than 2 % and 2 µs.
pub fn saved_requests(run: &Run, at: usize) -> Verification {
    if let Some(failure) = &run.failure {
        return Verification::not_run(failure.clone());
    }
    if let Some(outside) = run.out_of_range.first() {
        return Verification::not_run(left_its_buffers(outside));
    }
    let timing = run.timing.as_ref();
    let (Some(timing), Some(fix)) = (timing, timing.and_then(|timing| timing.fixes.get(at))) else {
        return Verification::not_run("the fix was not timed");
    };
    let before = run.global_requests();
    let verdict = Verification {
        device: run.device.as_ref().map(|device| device.name.clone()),
        method: before.and(run.method),
        milliseconds_before: Some(timing.before_ms),
        milliseconds_after: fix.after_ms,
        outputs_equal: fix.outputs_equal,
        global_requests_before: before,
        global_requests_after: fix.global_requests,
        ..Verification::default()
    };
    if fix.outputs_equal == Some(false) {
        let reason = Some(
            "with the qualifier the outputs differ: what it promises is not true of these inputs".to_owned(),
        );
        return Verification { reason, status: Status::NotRun, ..verdict };
    }
    // Below two microseconds launches differ by themselves.
    let faster = |after: f64| timing.before_ms - after > f64::max(0.02 * timing.before_ms, 0.002);
    let (status, reason) = match (before, fix.global_requests, fix.after_ms) {
        (Some(before), Some(after), _) if after < before => {
            (Status::Confirmed, format!("{before} requests to global memory become {after}"))
        }
        (_, _, Some(after)) if faster(after) => {
            (Status::Confirmed, "as many requests, in less time".to_owned())
        }
        (Some(before), Some(_), Some(_)) => {
            (Status::Refuted, format!("the {before} requests to global memory stay, and so does the time"))
        }
        _ => (Status::NotRun, fix.note.clone().unwrap_or_else(|| "its requests were not counted".to_owned())),
    };
    Verification { status, reason: Some(reason), ..verdict }
}

/// The verdict on persisting lines left behind: confirmed where the following kernel is more than 2 % faster after the reset.
pub fn left_persisting(window: Window, run: &Run) -> Verification {
    if let Some(failure) = &run.failure {
        return Verification::not_run(failure.clone());
    }
    let timing = run.timing.as_ref();
    let after = timing.and_then(|timing| timing.fixes.first()).and_then(|fix: &FixRun| fix.after_ms);
    let (Some(timing), Some(after), Some(device)) = (timing, after, run.device.as_ref()) else {
        return Verification::not_run("the demonstration gave no time");
    };
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let set = mib(super::persisting::working_set(device.l2_bytes));
    let slower = super::persisting::is_slower(timing.before_ms, after);
    let status = if slower { Status::Confirmed } else { Status::Refuted };
    let reason = format!(
        "the first launch of a kernel that re-reads {set:.1} MiB took {:.3} ms after one that left a window of {:.1} MiB (hit ratio {}, {:.1} MiB \
         set aside) persisting, and {after:.3} ms after `cudaCtxResetPersistingL2Cache()`",
        timing.before_ms,
        mib(window.bytes),
        window.hit_ratio,
        mib(window.set_aside),
    );
    Verification {
        status,
        reason: Some(reason),
        device: Some(device.name.clone()),
        milliseconds_before: Some(timing.before_ms),
        milliseconds_after: Some(after),
        ..Verification::default()
    }
}

fn left_its_buffers(outside: &str) -> String {
    format!("with the inputs made for it the kernel leaves its buffers: {outside}")
}

struct Outcome<'a> {
    status: Status,
    reason: Option<String>,
    measured: Option<&'a Measured>,
    /// The number that was compared, where it is not the finding's.
    predicted: Option<f64>,
}

impl<'a> Outcome<'a> {
    fn not_run(reason: impl Into<String>) -> Self {
        Outcome { status: Status::NotRun, reason: Some(reason.into()), measured: None, predicted: None }
    }

    fn of(status: Status, measured: &'a Measured, reason: Option<String>) -> Self {
        Outcome { status, reason, measured: Some(measured), predicted: None }
    }
}

/// Against the finding's own number first, then against the one for the launch that was run.
fn judge<'a>(job: &Job, run: &'a Run, prediction: &Prediction) -> Outcome<'a> {
    let outcome = judge_number(job, run, prediction);
    let Some(here) = prediction.here.as_ref().filter(|_| outcome.status != Status::Confirmed) else {
        return outcome;
    };
    // Other accesses of a line are in this launch, too.
    let exactly = |of: &Prediction| of.here.as_ref().map_or_else(|| of.clone(), |here| of.exactly(here));
    let predictions = job.predictions.iter().map(exactly).collect();
    let job = Job { predictions, others: job.others.iter().map(exactly).collect(), ..Job::default() };
    let exact = judge_number(&job, run, &prediction.exactly(here));
    let found = prediction.value().unwrap_or(here.units);
    if close(found, here.units) {
        // The same number: all that the launch can add is that it rests on no assumption.
        return if exact.status == Status::Refuted { exact } else { outcome };
    }
    let said = match &prediction.assumed {
        Some(assumed) if !assumed.is_empty() => format!("the finding's {found:.2} assumes {assumed}"),
        Some(_) | None => format!("the finding's {found:.2} is for all launches that were seen"),
    };
    let said = format!("{:.2} is predicted for this launch; {said}", here.units);
    let reason = exact.reason.as_ref().map_or(said.clone(), |reason| format!("{reason}; {said}"));
    match exact.status {
        Status::Confirmed if close(here.units, here.ideal) => {
            let reason = format!("in this launch nothing is lost; {reason}");
            Outcome { status: Status::NotRun, reason: Some(reason), predicted: Some(here.units), ..exact }
        }
        Status::Confirmed | Status::Refuted => {
            Outcome { reason: Some(reason), predicted: Some(here.units), ..exact }
        }
        Status::NotRun => outcome,
    }
}

fn judge_number<'a>(job: &Job, run: &'a Run, prediction: &Prediction) -> Outcome<'a> {
    if let Some(failure) = &run.failure {
        return Outcome::not_run(failure.clone());
    }
    if let Some(outside) = run.out_of_range.first() {
        return Outcome::not_run(left_its_buffers(outside));
    }
    let Some(predicted) = prediction.value() else {
        return Outcome::not_run("nothing was predicted for this access");
    };
    let line: Vec<&Measured> = run.measured.iter().filter(|measured| is_at(measured, prediction)).collect();
    let is_passed_over = !line.is_empty() && line.iter().all(|measured| measured.active == 0);
    if is_passed_over && line.iter().any(|measured| measured.requests > 0) {
        return Outcome::not_run(
            "no lane took part: with the inputs made for it its condition is never true",
        );
    }
    let line: Vec<&Measured> = line.into_iter().filter(|measured| measured.active > 0).collect();
    let has_it = line.iter().any(|measured| agrees(prediction, predicted, measured).is_some());
    if let Some(outcome) = called(job, run, prediction, predicted).filter(|_| !has_it) {
        return outcome;
    }
    if line.is_empty()
        && let Some(outcome) = part_of_another(job, run, prediction)
    {
        return outcome;
    }
    if line.is_empty() && !prediction.twins.is_empty() {
        return with_twin(job, run, prediction);
    }
    if line.is_empty() {
        let displaced = displaced(job, run, prediction, predicted).filter(|_| !is_passed_over);
        return displaced.unwrap_or_else(|| Outcome::not_run(unseen(job, run, prediction, is_passed_over)));
    }
    let alike = |measured: &&&Measured| {
        measured.access_bytes == 0 || measured.access_bytes == prediction.access_bytes
    };
    let same: Vec<&Measured> = line.iter().filter(alike).copied().collect();
    let Some(&nearest) = nearest(&same, predicted) else {
        return merged(job, prediction, predicted, &line);
    };
    match agrees(prediction, predicted, nearest) {
        Some(note) => Outcome::of(Status::Confirmed, nearest, note),
        None => compared_and_swapped(prediction, &line)
            .or_else(|| profiled(run, prediction, predicted, &same))
            .or_else(|| unrolled(job, prediction, predicted, &same))
            .or_else(|| merged_among(job, prediction, predicted, &line))
            .or_else(|| elsewhere(job, prediction, &line))
            .unwrap_or_else(|| differs(prediction, nearest)),
    }
}

/// An access of an inlined function whose instruction carries another line, where the source itself has no access of the kind: that of a
/// call that leads to it, or of the use of what it loads. Which of several such it is does not show, so all have to agree.
fn called<'a>(job: &Job, run: &'a Run, prediction: &Prediction, predicted: f64) -> Option<Outcome<'a>> {
    let strays = strays(job, run, prediction);
    let agrees = |stray: &&Measured| agrees(prediction, predicted, stray).is_some();
    let is_call = |stray: &&Measured| {
        let mut calls = prediction.calls.iter();
        calls.any(|(file, line)| *line == stray.line && same_file(file, &stray.file))
    };
    if prediction.calls.is_empty() {
        return None;
    }
    if let Some(&here) = strays.iter().find(|stray| is_call(stray) && agrees(stray)) {
        let reason = format!("its instruction carries line {}, where its function is called", here.line);
        return Some(Outcome::of(Status::Confirmed, here, Some(reason)));
    }
    let first = *strays.first().filter(|_| strays.iter().all(agrees))?;
    let reason = format!("its function is inlined and its instruction carries line {}", first.line);
    Some(Outcome::of(Status::Confirmed, first, Some(reason)))
}

/// Instructions of a prediction's kind and width on lines where the source accesses nothing of the kind.
fn strays<'a>(job: &Job, run: &'a Run, prediction: &Prediction) -> Vec<&'a Measured> {
    let known: Vec<&Prediction> = job.predictions.iter().chain(&job.others).collect();
    let is_stray = |measured: &&Measured| {
        let (file, line) = (measured.file.clone(), measured.line);
        let at = Prediction { file, line, end_line: line, ..prediction.clone() };
        measured.active > 0
            && measured.access_bytes == prediction.access_bytes
            && is_at(measured, &at)
            && !known.iter().any(|other| is_at(measured, other))
    };
    run.measured.iter().filter(is_stray).collect()
}

/// An access whose instruction carries the line of what uses its value: a copy that is stored at once, a reference that an inlined
/// function reads. The source has no access of the kind there; every instruction there has the number of an access without one, and
/// there are enough of them.
fn displaced<'a>(job: &Job, run: &'a Run, prediction: &Prediction, predicted: f64) -> Option<Outcome<'a>> {
    let is_elsewhere = |other: &Prediction| {
        other.is_repeated
            || !other.twins.is_empty()
            || !other.merged_with.is_empty()
            || run.measured.iter().any(|measured| is_at(measured, other))
    };
    let is_like = |other: &&Prediction| {
        (other.space, other.operation, other.access_bytes)
            == (prediction.space, prediction.operation, prediction.access_bytes)
            && !is_elsewhere(other)
    };
    let like: Vec<&Prediction> = job.predictions.iter().chain(&job.others).filter(is_like).collect();
    like.iter().find(|other| other.id == prediction.id)?;
    let strays = strays(job, run, prediction);
    let fits = |other: &Prediction, stray: &Measured| {
        other.value().is_some_and(|value| agrees(other, value, stray).is_some())
    };
    let own: Vec<&Measured> = strays.iter().copied().filter(|stray| fits(prediction, stray)).collect();
    let as_many = like.iter().filter(|other| other.value().is_some_and(|value| close(value, predicted)));
    let is_known = strays.iter().all(|stray| like.iter().any(|other| fits(other, stray)));
    let first = *own.first().filter(|_| is_known && own.len() >= as_many.count())?;
    let reason =
        format!("its instruction carries line {}, where the source has no access of the kind", first.line);
    Some(Outcome::of(Status::Confirmed, first, Some(reason)))
}

/// Why no instruction on the line of an access was executed.
fn unseen(job: &Job, run: &Run, prediction: &Prediction, is_passed_over: bool) -> String {
    let what = format!("{} {}", prediction.space, prediction.operation);
    if is_passed_over {
        format!(
            "the {what} on this line was not executed: with the inputs made for it its condition is never true"
        )
    } else if prediction.is_repeated {
        format!("no {what} has this line: the compiler keeps what an earlier load got")
    } else if run.method != Some(Method::SassMetrics) {
        format!(
            "no {what} was executed on this line: the compiler moved or removed it, or its condition was never true"
        )
    } else if let Some(stray) = strays(job, run, prediction).first() {
        let (line, value) = (stray.line, stray.value());
        format!(
            "no {what} has this line: the compiler removed it or moved it to line {line}, where one has {value:.2}"
        )
    } else {
        format!("no {what} has this line: the compiler moved or removed it")
    }
}

/// The line of an access that the compiler made one with another to the same address.
fn with_twin<'a>(job: &Job, run: &'a Run, prediction: &Prediction) -> Outcome<'a> {
    let at = |line: u32| Prediction { line, end_line: line, twins: Vec::new(), ..prediction.clone() };
    let outcomes = prediction.twins.iter().map(|&line| (line, judge_number(job, run, &at(line))));
    let executed = outcomes.filter(|(_, outcome)| outcome.measured.is_some());
    match executed.min_by_key(|(_, outcome)| outcome.status != Status::Confirmed) {
        Some((line, outcome)) if outcome.status == Status::Confirmed => {
            let said =
                format!("the compiler made one instruction of it and of the same access on line {line}");
            let reason = outcome.reason.map_or(said.clone(), |reason| format!("{said}; {reason}"));
            Outcome { reason: Some(reason), ..outcome }
        }
        // Other lanes take part in what both became.
        Some((line, _)) => Outcome::not_run(format!(
            "the compiler made one instruction of it and of the same access on line {line}, where other lanes take part"
        )),
        None => moved(job, run, prediction).unwrap_or_else(|| {
            judge_number(job, run, &Prediction { twins: Vec::new(), ..prediction.clone() })
        }),
    }
}

/// A part of a wide instruction that carries the line of another part.
fn part_of_another<'a>(job: &Job, run: &'a Run, prediction: &Prediction) -> Option<Outcome<'a>> {
    if prediction.space == Space::Global {
        return part_of_a_struct(run, prediction);
    }
    prediction.merged_with.iter().find_map(|&line| {
        let at = Prediction {
            line,
            end_line: line,
            twins: Vec::new(),
            merged_with: Vec::new(),
            ..prediction.clone()
        };
        let outcome = judge_number(job, run, &at);
        let said = format!(
            "the compiler made one instruction of {} B of it and of the access on line {line}",
            prediction.access_bytes
        );
        let reason = outcome.reason.as_ref().map_or(said.clone(), |reason| format!("{said}; {reason}"));
        (outcome.status == Status::Confirmed).then_some(Outcome { reason: Some(reason), ..outcome })
    })
}

/// A field that one instruction moves with its neighbours in the same aligned 16 bytes, on the line of one of these: in the same sector,
/// so that the whole costs what the part does.
fn part_of_a_struct<'a>(run: &'a Run, prediction: &Prediction) -> Option<Outcome<'a>> {
    let predicted = prediction.value()?;
    prediction.merged_with.iter().find_map(|&line| {
        let at = Prediction { line, end_line: line, ..prediction.clone() };
        let is_whole = |measured: &&Measured| {
            measured.active > 0
                && measured.access_bytes > prediction.access_bytes
                && is_at(measured, &at)
                && agrees(prediction, predicted, measured).is_some()
        };
        let whole = run.measured.iter().find(is_whole)?;
        let reason = format!(
            "the compiler made one instruction of {} B of it and of the access on line {line}",
            whole.access_bytes
        );
        Some(Outcome::of(Status::Confirmed, whole, Some(reason)))
    })
}

/// Both sides of a branch made one instruction, on a line where the source accesses nothing of the kind. Which of several such it is
/// does not show, so all have to agree.
fn moved<'a>(job: &Job, run: &'a Run, prediction: &Prediction) -> Option<Outcome<'a>> {
    let predicted = prediction.value()?;
    let strays = strays(job, run, prediction);
    let strays: Vec<&Measured> =
        strays.into_iter().filter(|stray| same_file(&stray.file, &prediction.file)).collect();
    let first = *strays.first()?;
    let reason = format!(
        "the compiler made one instruction of it and of the same access on line {}, and put it to line {}",
        prediction.twins.first()?,
        first.line
    );
    let agree = strays.iter().all(|stray| agrees(prediction, predicted, stray).is_some());
    agree.then(|| Outcome::of(Status::Confirmed, first, Some(reason)))
}

/// An unrolled loop: more instructions of one kind than the line has such accesses, whose average is that of the predictions.
fn unrolled<'a>(
    job: &Job,
    prediction: &Prediction,
    predicted: f64,
    same: &[&'a Measured],
) -> Option<Outcome<'a>> {
    let alike =
        |other: &&Prediction| other.access_bytes == prediction.access_bytes && shares_line(prediction, other);
    let accesses: Option<Vec<f64>> =
        job.predictions.iter().chain(&job.others).filter(alike).map(Prediction::value).collect();
    let accesses = accesses?;
    if same.len() <= accesses.len().max(1) {
        return None;
    }
    let total: u64 = same.iter().map(|measured| measured.total()).sum();
    let requests: u64 = same.iter().map(|measured| measured.requests).sum();
    let average = total as f64 / requests.max(1) as f64;
    let wanted =
        if accesses.len() > 1 { accesses.iter().sum::<f64>() / accesses.len() as f64 } else { predicted };
    let &nearest = nearest(same, predicted)?;
    let count = same.len();
    let reason = match accesses.len() {
        0 | 1 => format!("the compiler unrolled the loop into {count} instructions, {average:.2} on average"),
        several => format!(
            "the compiler unrolled the loop into {count} instructions, {average:.2} on average, where {wanted:.2} are predicted for \
             the {several} accesses of the line"
        ),
    };
    // Of requests whose lanes are all off, as in `agrees`.
    let total_ideal: u64 = same.iter().map(|measured| measured.total_ideal()).sum();
    let ideal = prediction.ideal().filter(|&ideal| ideal > 0.0);
    let factor = ideal.map_or(1.0, |ideal| total_ideal as f64 / requests.max(1) as f64 / ideal);
    let diluted = factor > 0.0 && factor < 1.0 && close(wanted, average / factor);
    (close(wanted, average) || diluted).then(|| Outcome::of(Status::Confirmed, nearest, Some(reason)))
}

fn shares_line(prediction: &Prediction, other: &Prediction) -> bool {
    same_file(&other.file, &prediction.file)
        && other.space == prediction.space
        && other.operation == prediction.operation
        && other.line <= prediction.end_line.max(prediction.line)
        && prediction.line <= other.end_line.max(other.line)
}

fn is_at(measured: &Measured, prediction: &Prediction) -> bool {
    let lines = prediction.line..=prediction.end_line.max(prediction.line);
    lines.contains(&measured.line)
        && measured.space == Some(prediction.space)
        && measured.operation == Some(prediction.operation)
        && same_file(&measured.file, &prediction.file)
}

/// Equal, or one ends with the other's whole path: the line table may hold an absolute path.
pub(super) fn same_file(a: &str, b: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        let parts = path.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".");
        parts.rev().map(str::to_owned).collect()
    };
    let (a, b) = (parts(a), parts(b));
    !a.is_empty() && !b.is_empty() && a.iter().zip(&b).all(|(a, b)| a == b)
}

fn nearest<'b, 'a>(measured: &'b [&'a Measured], predicted: f64) -> Option<&'b &'a Measured> {
    let distance = |measured: &Measured| (measured.value() - predicted).abs();
    measured.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// Within 2 % of the measurement or 0.06 of it.
fn close(predicted: f64, measured: f64) -> bool {
    (predicted - measured).abs() <= f64::max(0.06, 0.02 * measured)
}

/// `Some(note)` where the numbers agree; the note says how, where that is not plainly.
fn agrees(prediction: &Prediction, predicted: f64, measured: &Measured) -> Option<Option<String>> {
    if close(predicted, measured.value()) {
        return Some(None);
    }
    // Warps whose lanes are all off count as requests and dilute value and ideal by one factor, at most 1.
    if let Some(ideal) = prediction.ideal().filter(|&ideal| ideal > 0.0) {
        let factor = measured.ideal() / ideal;
        if factor < 1.0 && factor > 0.0 && close(predicted, measured.value() / factor) {
            let share = 100.0 * factor;
            return Some(Some(format!("{share:.0} % of the requests had an active lane")));
        }
    }
    None
}

/// The numbers differ. Where the prediction is for sizes that are not known, one run with made-up sizes refutes nothing.
fn differs<'a>(prediction: &Prediction, measured: &'a Measured) -> Outcome<'a> {
    match &prediction.assumed {
        None => Outcome::of(Status::Refuted, measured, None),
        Some(assumed) => {
            let what = if assumed.is_empty() { "sizes that are not known" } else { assumed.as_str() };
            let reason = format!("the numbers are for different inputs: the prediction assumes {what}");
            Outcome::of(Status::NotRun, measured, Some(reason))
        }
    }
}

/// A wide shared load of which the profiler does not say what the hardware takes.
fn profiled<'a>(
    run: &Run,
    prediction: &Prediction,
    predicted: f64,
    same: &[&'a Measured],
) -> Option<Outcome<'a>> {
    // Recorded addresses are counted as the hardware counts.
    let [fewest, most] = prediction.profiled.filter(|_| run.method != Some(Method::Recorder))?;
    let is_between =
        |value: f64| (fewest..=most).contains(&value) || close(fewest, value) || close(most, value);
    let &measured = same.iter().find(|measured| is_between(measured.value()))?;
    let width = prediction.access_bytes;
    Some(if fewest == most {
        let reason = format!(
            "the profiler counts {most:.2} of these loads of {width} B, of which the hardware takes {predicted:.2}"
        );
        Outcome::of(Status::Confirmed, measured, Some(reason))
    } else {
        let reason = format!(
            "the profiler's count of loads of {width} B by some lanes of a warp is not the hardware's: it may say {fewest:.2} to {most:.2} \
             where {predicted:.2} are taken"
        );
        Outcome::of(Status::NotRun, measured, Some(reason))
    })
}

/// A line whose instructions are all those of its other accesses, where this one may be done elsewhere: another line has the same
/// address, or a loop has it in every iteration.
fn elsewhere<'a>(job: &Job, prediction: &Prediction, line: &[&'a Measured]) -> Option<Outcome<'a>> {
    let predicted = prediction.value()?;
    let why = match prediction.twins.first() {
        Some(line) => format!("line {line} accesses the same address"),
        None if prediction.is_invariant => "its loop does not change the address".to_owned(),
        None if prediction.by_data => {
            return is_explained(job, prediction, predicted, line).then(|| {
                Outcome::not_run(
                    "the instructions of this line are those of its other accesses, and data decide whether this one is made",
                )
            });
        }
        None => return None,
    };
    is_explained(job, prediction, predicted, line).then(|| {
        Outcome::not_run(format!(
            "the instructions of this line are those of its other accesses, and {why}: the compiler makes this access there once"
        ))
    })
}

/// Whether every instruction of a line is one of its other accesses.
fn is_explained(job: &Job, prediction: &Prediction, predicted: f64, line: &[&Measured]) -> bool {
    let others = job.predictions.iter().chain(&job.others);
    let others = others.filter(|other| other.id != prediction.id && shares_line(prediction, other));
    let others: Vec<(f64, f64)> = others.filter_map(|other| Some((other.value()?, other.ideal()?))).collect();
    let is_other = |measured: &&Measured| {
        let is_ideal = measured.total() == measured.total_ideal();
        let fits = |of: f64, ideal: f64| close(of, measured.value()) || is_ideal && close(of, ideal);
        others.iter().any(|&(of, ideal)| !close(predicted, of) && fits(of, ideal))
    };
    line.iter().all(is_other)
}

/// An atomic that the device does not have in its width: rounds of compare-and-swap, with fewer lanes each.
fn compared_and_swapped<'a>(prediction: &Prediction, line: &[&'a Measured]) -> Option<Outcome<'a>> {
    let is_narrow = prediction.operation == Direction::Atomic && prediction.access_bytes < 4;
    let swaps = is_narrow && line.iter().any(|measured| measured.opcode.contains("CAS"));
    swaps.then(|| {
        Outcome::not_run(format!(
            "the compiler makes rounds of compare-and-swap of an atomic of {} B, and each round has the lanes that are left",
            prediction.access_bytes
        ))
    })
}

/// A line where no instruction has the predicted width.
fn merged<'a>(job: &Job, prediction: &Prediction, predicted: f64, line: &[&'a Measured]) -> Outcome<'a> {
    let outcome = compared_and_swapped(prediction, line);
    let outcome = outcome.or_else(|| merged_among(job, prediction, predicted, line));
    if let Some(outcome) = outcome.or_else(|| elsewhere(job, prediction, line)) {
        return outcome;
    }
    match nearest(line, predicted) {
        Some(&nearest) if close(predicted, nearest.value()) => {
            let reason = format!(
                "as many with {} B an access as predicted for {} B",
                nearest.access_bytes, prediction.access_bytes
            );
            Outcome::of(Status::Confirmed, nearest, Some(reason))
        }
        Some(&nearest) => {
            let reason = format!(
                "the compiler used {} B an access where the source has {} B",
                nearest.access_bytes, prediction.access_bytes
            );
            Outcome::of(Status::Refuted, nearest, Some(reason))
        }
        None => Outcome::not_run("no instruction to compare with"),
    }
}

/// Wider or narrower instructions that move the bytes of the line's accesses within the bounds of any merge.
fn merged_among<'a>(
    job: &Job,
    prediction: &Prediction,
    predicted: f64,
    line: &[&'a Measured],
) -> Option<Outcome<'a>> {
    let width = prediction.access_bytes;
    // Several source accesses in one wider instruction: between the largest alone and all apart.
    let all = job.predictions.iter().chain(&job.others);
    let neighbours = all.filter(|other| shares_line(prediction, other));
    let sum: f64 = neighbours.filter_map(Prediction::value).sum::<f64>().max(predicted);
    let wide: Vec<&Measured> = line.iter().filter(|m| m.access_bytes > width).copied().collect();
    if let Some(&wide) = nearest(&wide, predicted) {
        let value = wide.value();
        if value >= predicted * 0.98 - 0.06 && value <= sum.max(predicted) * 1.02 + 0.06 {
            let reason = format!(
                "the compiler merged accesses of this line into {} B; compared with the line's sum of {sum:.2}",
                wide.access_bytes
            );
            return Some(Outcome::of(Status::Confirmed, wide, Some(reason)));
        }
    }
    // One source access in several narrower instructions: between each alone and all apart.
    let narrow: Vec<&Measured> =
        line.iter().filter(|m| m.access_bytes > 0 && m.access_bytes < width).copied().collect();
    let bytes: u32 = narrow.iter().map(|measured| measured.access_bytes).sum();
    let most = narrow.iter().map(|measured| measured.value()).fold(0.0, f64::max);
    let total: f64 = narrow.iter().map(|measured| measured.value()).sum();
    if bytes >= width && predicted >= most * 0.98 - 0.06 && predicted <= total * 1.02 + 0.06 {
        let &nearest = nearest(&narrow, predicted)?;
        let reason = format!(
            "the compiler split {width} B into {} instructions, {total:.2} together, {most:.2} the most",
            narrow.len()
        );
        return Some(Outcome::of(Status::Confirmed, nearest, Some(reason)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prediction(bytes: u32, sectors: f64, ideal: f64) -> Prediction {
        Prediction {
            id: 7,
            file: "src/a.cu".to_owned(),
            line: 3,
            end_line: 3,
            column: None,
            expression: None,
            space: Space::Global,
            operation: Direction::Load,
            access_bytes: bytes,
            sectors: Some(sectors),
            ideal_sectors: Some(ideal),
            wavefronts: None,
            ideal_wavefronts: None,
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

    fn measured(bytes: u32, requests: u64, active: u64, sectors: u64, ideal_sectors: u64) -> Measured {
        Measured {
            file: "/home/me/src/a.cu".to_owned(),
            line: 3,
            space: Some(Space::Global),
            operation: Some(Direction::Load),
            access_bytes: bytes,
            opcode: format!("LDG.{}", bytes * 8),
            requests,
            active,
            sectors,
            ideal_sectors,
            ..Measured::default()
        }
    }

    fn one(predictions: Vec<Prediction>, measured: Vec<Measured>) -> Verification {
        let job = Job { predictions, ..Job::default() };
        compare(&job, &Run { measured, ..Run::default() }).remove(0)
    }

    #[test]
    fn within_two_percent_of_one_of_the_instructions() {
        // 64 requests of 32 and of 1 sectors on one line; 32 was predicted.
        let both = vec![measured(4, 64, 2048, 64, 64), measured(4, 64, 2048, 2048, 256)];
        let answer = one(vec![prediction(4, 32.0, 4.0)], both);
        assert_eq!((answer.status, answer.measured_sectors), (Status::Confirmed, Some(32.0)));
    }

    #[test]
    fn refuted_shows_both() {
        let answer = one(vec![prediction(4, 4.0, 4.0)], vec![measured(4, 10, 320, 320, 40)]);
        assert_eq!(answer.status, Status::Refuted);
        assert_eq!((answer.predicted, answer.measured_sectors), (Some(4.0), Some(32.0)));
    }

    #[test]
    fn idle_warps_dilute_both_averages() {
        // Half of 100 warps are off: 50 x 32 sectors over 100 requests are 16 a request, but 32 per 32 lanes.
        let answer = one(vec![prediction(4, 32.0, 4.0)], vec![measured(4, 100, 1600, 1600, 200)]);
        assert_eq!(answer.status, Status::Confirmed);
        assert!(answer.reason.is_some_and(|reason| reason.contains("50 %")));
        // A last step of a reduction: one lane of one warp in eight. 1 sector of 1, over 8 requests.
        let answer = one(vec![prediction(4, 1.0, 1.0)], vec![measured(4, 8, 1, 1, 1)]);
        assert_eq!(answer.status, Status::Confirmed);
        // The same share of the ideal but twice the value is refuted.
        let answer = one(vec![prediction(4, 1.0, 1.0)], vec![measured(4, 8, 2, 2, 1)]);
        assert_eq!(answer.status, Status::Refuted);
        // Nobody took part.
        let answer = one(vec![prediction(4, 1.0, 1.0)], vec![measured(4, 8, 0, 0, 0)]);
        assert_eq!(answer.status, Status::NotRun);
    }

    #[test]
    fn an_unrolled_loop_is_compared_by_its_average() {
        // `in[t + i]` for nine i: 4 sectors aligned (i = 0 and 8), 5 otherwise: 43 / 9.
        let at = |sectors: u64| measured(4, 10, 320, 10 * sectors, 40);
        let mut all = vec![at(5); 7];
        all.extend([at(4), at(4)]);
        let answer = one(vec![prediction(4, 43.0 / 9.0, 4.0)], all.clone());
        assert_eq!(answer.status, Status::Confirmed);
        assert!(answer.reason.is_some_and(|reason| reason.contains("9 instructions, 4.78")));
        // Every other request without a lane.
        let off = |sectors: u64| measured(4, 20, 320, 10 * sectors, 40);
        let mut half = vec![off(5); 7];
        half.extend([off(4), off(4)]);
        assert_eq!(one(vec![prediction(4, 43.0 / 9.0, 4.0)], half).status, Status::Confirmed);
        // As many accesses as instructions: no loop.
        let nine = vec![prediction(4, 43.0 / 9.0, 4.0); 9];
        assert_eq!(one(nine, all).status, Status::Refuted);
    }

    #[test]
    fn an_unrolled_loop_with_two_accesses_on_its_line() {
        // A diagonal of 1 to 8 wavefronts beside rows of one: 16 of 4.5 and 16 of 1 are 2.75 on average.
        let shared = |id, wavefronts| {
            let prediction = Prediction { id, space: Space::Shared, ..prediction(4, 0.0, 0.0) };
            Prediction { wavefronts: Some(wavefronts), ideal_wavefronts: Some(1.0), ..prediction }
        };
        let at = |wavefronts: u64| Measured {
            space: Some(Space::Shared),
            wavefronts: 10 * wavefronts,
            ideal_wavefronts: 10,
            ..measured(4, 10, 320, 0, 0)
        };
        let mut all: Vec<Measured> = (0..16).map(|step| at(step / 2 + 1)).collect();
        all.extend(vec![at(1); 16]);
        let job = Job { predictions: vec![shared(7, 4.5)], others: vec![shared(8, 1.0)], ..Job::default() };
        let answer = compare(&job, &Run { measured: all, ..Run::default() }).remove(0);
        assert_eq!(answer.status, Status::Confirmed);
        assert!(answer.reason.is_some_and(|reason| reason.contains("2.75 are predicted for the 2 accesses")));
    }

    #[test]
    fn parts_of_a_wide_instruction_have_the_line_of_one_of_them() {
        // `s[2 * t]` on line 3 and `s[2 * t + 1]` on line 4: one load of 8 bytes, on line 4.
        let at = |merged_with: &[u32]| Prediction {
            merged_with: merged_with.to_vec(),
            space: Space::Shared,
            wavefronts: Some(8.0),
            ideal_wavefronts: Some(8.0),
            ..prediction(8, 0.0, 0.0)
        };
        let load = |wavefronts| Measured {
            line: 4,
            space: Some(Space::Shared),
            wavefronts,
            ideal_wavefronts: 80,
            ..measured(8, 10, 320, 0, 0)
        };
        let run = || vec![load(80)];
        let answer = one(vec![at(&[4])], run());
        assert_eq!(answer.status, Status::Confirmed);
        assert!(answer.reason.is_some_and(|reason| reason.contains("8 B of it and of the access on line 4")));
        // Not where the other line has another number, or another width.
        assert_eq!(one(vec![at(&[4])], vec![load(160)]).status, Status::NotRun);
        assert_eq!(one(vec![at(&[5])], run()).status, Status::NotRun);
    }

    #[test]
    fn fields_of_a_struct_in_one_instruction() {
        // Three floats of aligned structs of 16 B: 32 * 16 / 32 = 16 sectors, in one load of 16 B on the line of the last.
        let field = |id, line| Prediction {
            id,
            line,
            end_line: line,
            merged_with: [3, 4, 5].into_iter().filter(|&other| other != line).collect(),
            ..prediction(4, 16.0, 4.0)
        };
        let fields = || vec![field(0, 3), field(1, 4), field(2, 5)];
        let judged = |measured: Measured| {
            let job = Job { predictions: fields(), ..Job::default() };
            compare(&job, &Run { measured: vec![measured], ..Run::default() })
        };
        let answers = judged(Measured { line: 5, ..measured(16, 10, 320, 160, 160) });
        assert!(answers.iter().all(|answer| answer.status == Status::Confirmed), "{answers:?}");
        assert!(answers[0].to_string().contains("one instruction of 16 B of it and of the access on line 5"));
        // One of its own width is another's; one with other numbers is no such instruction.
        let alone = judged(Measured { line: 5, ..measured(4, 10, 320, 160, 40) });
        assert_eq!(alone[0].status, Status::NotRun);
        let other = judged(Measured { line: 5, ..measured(16, 10, 320, 320, 160) });
        assert_eq!(other[0].status, Status::NotRun);
    }

    #[test]
    fn an_instruction_may_have_the_line_of_what_uses_its_value() {
        // A load of line 3, 10 requests of 32 sectors on line 9.
        let stray = |sectors| Measured { line: 9, ..measured(4, 10, 320, sectors, 40) };
        let answer = one(vec![prediction(4, 32.0, 4.0)], vec![stray(320)]);
        assert_eq!(answer.status, Status::Confirmed);
        assert!(answer.to_string().contains("carries line 9"), "{answer}");
        // Two accesses and two instructions, which differ.
        let other = Prediction { id: 8, line: 5, end_line: 5, ..prediction(4, 16.0, 4.0) };
        let both = one(vec![prediction(4, 32.0, 4.0), other], vec![stray(160), stray(320)]);
        assert_eq!((both.status, both.measured_sectors), (Status::Confirmed, Some(32.0)));
        // 33 sectors; two accesses and one instruction; an access on that line.
        assert_eq!(one(vec![prediction(4, 32.0, 4.0)], vec![stray(330)]).status, Status::NotRun);
        let on = |line| Prediction { id: 8, line, end_line: line, ..prediction(4, 32.0, 4.0) };
        assert_eq!(one(vec![prediction(4, 32.0, 4.0), on(5)], vec![stray(320)]).status, Status::NotRun);
        assert_eq!(one(vec![prediction(4, 32.0, 4.0), on(9)], vec![stray(320)]).status, Status::NotRun);
    }

    #[test]
    fn why_a_line_has_no_instruction() {
        let reason = |prediction: Prediction, measured: Vec<Measured>| {
            let job = Job { predictions: vec![prediction], ..Job::default() };
            let run = Run { measured, method: Some(Method::SassMetrics), ..Run::default() };
            compare(&job, &run).remove(0).reason.unwrap_or_default()
        };
        let plain = || prediction(4, 32.0, 4.0);
        assert!(reason(plain(), vec![measured(4, 0, 0, 0, 0)]).contains("its condition is never true"));
        assert!(reason(plain(), Vec::new()).ends_with("the compiler moved or removed it"));
        let repeated = Prediction { is_repeated: true, ..plain() };
        assert!(reason(repeated, Vec::new()).ends_with("what an earlier load got"));
    }

    #[test]
    fn what_the_profiler_says_of_wide_loads_refutes_nothing_by_itself() {
        // Lanes 2, 6, … 30 load 16 bytes at one address: 2 wavefronts by the hardware's counter and 2 cycles on an H200, 1 by
        // the profiler's value per instruction; each quarter of the warp has one word of each bank, at most 4 * 1.
        let shared = |profiled| Prediction {
            space: Space::Shared,
            wavefronts: Some(2.0),
            ideal_wavefronts: Some(1.0),
            profiled,
            ..prediction(16, 0.0, 0.0)
        };
        let run = |wavefronts: u64, method| {
            let space = Some(Space::Shared);
            let ideal_wavefronts = 10;
            let measured = Measured { space, wavefronts, ideal_wavefronts, ..measured(16, 10, 80, 0, 0) };
            Run { measured: vec![measured], method: Some(method), ..Run::default() }
        };
        let status = |profiled, run: &Run| {
            let job = Job { predictions: vec![shared(profiled)], ..Job::default() };
            let answer = compare(&job, run).remove(0);
            (answer.status, answer.reason.unwrap_or_default())
        };
        let one = run(10, Method::SassMetrics);
        let (bounded, reason) = status(Some([1.0, 4.0]), &one);
        assert_eq!(bounded, Status::NotRun);
        assert!(reason.contains("16 B") && reason.contains("1.00 to 4.00 where 2.00"), "{reason}");
        let (exact, reason) = status(Some([1.0, 1.0]), &one);
        assert_eq!(exact, Status::Confirmed);
        assert!(reason.contains("counts 1.00") && reason.contains("takes 2.00"), "{reason}");
        // Nothing departs; outside the bounds; recorded addresses, of which the hardware's rules give 1.
        assert_eq!(status(None, &one).0, Status::Refuted);
        assert_eq!(status(Some([1.0, 4.0]), &run(50, Method::SassMetrics)).0, Status::Refuted);
        assert_eq!(status(Some([1.0, 1.0]), &run(30, Method::SassMetrics)).0, Status::Refuted);
        assert_eq!(status(Some([1.0, 4.0]), &run(10, Method::Recorder)).0, Status::Refuted);
    }

    fn here(units: f64, ideal: f64, assumed: Option<&str>) -> Option<super::super::job::Here> {
        Some(super::super::job::Here { units, ideal, profiled: None, assumed: assumed.map(str::to_owned) })
    }

    #[test]
    fn the_launch_that_is_run_may_have_another_number() {
        // 28.5 sectors on average over strides of 1 to 32; this launch has a stride of 32.
        let found = |here| Prediction { here, ..prediction(4, 28.5, 4.0) };
        let run = || vec![measured(4, 10, 320, 320, 40)];
        let answer = one(vec![found(here(32.0, 4.0, None))], run());
        assert_eq!((answer.status, answer.predicted), (Status::Confirmed, Some(32.0)));
        let reason = answer.reason.unwrap_or_default();
        assert!(reason.contains("32.00 is predicted for this launch; the finding's 28.50"), "{reason}");
        // Wrong for this launch is wrong, whatever the finding assumes.
        let assumed = Some("`s` is large".to_owned());
        let wrong = Prediction { assumed: assumed.clone(), ..found(here(8.0, 4.0, None)) };
        assert_eq!(one(vec![wrong], run()).status, Status::Refuted);
        // But not where something is assumed of this launch, too.
        let open = Prediction { assumed, ..found(here(8.0, 4.0, Some("data"))) };
        assert_eq!(one(vec![open], run()).status, Status::NotRun);
        // Stride 1: as predicted, and nothing to find.
        let nothing = one(vec![found(here(4.0, 4.0, None))], vec![measured(4, 10, 320, 40, 40)]);
        assert_eq!(nothing.status, Status::NotRun);
        assert!(nothing.reason.is_some_and(|reason| reason.starts_with("in this launch nothing is lost")));
    }

    #[test]
    fn a_line_with_the_instructions_of_other_accesses_only() {
        // `a[i] * b[t * 32]` in a loop over i: the load of b is done before it, one address a warp is left.
        let job = |is_invariant| Job {
            predictions: vec![Prediction { is_invariant, ..prediction(4, 32.0, 4.0) }],
            others: vec![Prediction { id: 8, ..prediction(4, 1.0, 1.0) }],
            ..Job::default()
        };
        let run = |sectors, ideal| {
            let measured = vec![measured(4, 10, 320, sectors, ideal)];
            Run { measured, ..Run::default() }
        };
        let answer = compare(&job(true), &run(10, 10)).remove(0);
        assert_eq!(answer.status, Status::NotRun);
        assert!(answer.reason.is_some_and(|reason| reason.contains("its loop does not change the address")));
        // An instruction that none of them explains refutes, and so does one where nothing can move.
        assert_eq!(compare(&job(true), &run(80, 40)).remove(0).status, Status::Refuted);
        let unlike = Prediction { ideal_sectors: Some(1.0), ..prediction(4, 32.0, 1.0) };
        let fixed = Job { predictions: vec![unlike], ..job(false) };
        assert_eq!(compare(&fixed, &run(10, 10)).remove(0).status, Status::Refuted);
    }

    #[test]
    fn an_inlined_access_may_carry_the_line_of_its_call() {
        // Called on lines 20 and 30; line 3 has the instruction of one of the calls, line 30 that of the other.
        let at = |calls: &[u32]| Prediction {
            calls: calls.iter().map(|line| ("src/a.cu".to_owned(), *line)).collect(),
            ..prediction(4, 8.0, 4.0)
        };
        let measured_at = |line, sectors| Measured { line, ..measured(4, 10, 320, sectors, 40) };
        let run = || vec![measured_at(3, 40), measured_at(30, 80)];
        let answer = one(vec![at(&[30])], run());
        assert_eq!(answer.status, Status::Confirmed);
        assert!(answer.reason.is_some_and(|reason| reason.contains("carries line 30, where its")));
        // Line 31 uses what is loaded for the call on line 20: the only other instruction there is.
        assert_eq!(
            one(vec![at(&[20])], vec![measured_at(3, 40), measured_at(31, 80)]).status,
            Status::Confirmed
        );
        let two = vec![measured_at(3, 40), measured_at(31, 80), measured_at(32, 160)];
        assert_eq!(one(vec![at(&[20])], two).status, Status::Refuted);
        assert_eq!(one(vec![at(&[])], run()).status, Status::Refuted);
        // Not where the source accesses memory on the line itself.
        let other = Prediction { id: 8, line: 30, end_line: 30, ..prediction(4, 8.0, 4.0) };
        let job = Job { predictions: vec![at(&[30])], others: vec![other], ..Job::default() };
        assert_eq!(
            compare(&job, &Run { measured: run(), ..Run::default() }).remove(0).status,
            Status::Refuted
        );
    }

    #[test]
    fn what_data_decide_is_not_refuted_by_its_neighbours() {
        let by_data = |by_data| Job {
            predictions: vec![Prediction { by_data, ..prediction(4, 8.0, 4.0) }],
            others: vec![Prediction { id: 8, ..prediction(4, 4.0, 4.0) }],
            ..Job::default()
        };
        let run = || Run { measured: vec![measured(4, 10, 320, 40, 40)], ..Run::default() };
        assert_eq!(compare(&by_data(true), &run()).remove(0).status, Status::NotRun);
        assert_eq!(compare(&by_data(false), &run()).remove(0).status, Status::Refuted);
    }

    #[test]
    fn narrow_atomics_are_rounds() {
        let atomic = Prediction { operation: Direction::Atomic, ..prediction(2, 4.0, 1.0) };
        let swap = Measured {
            operation: Some(Direction::Atomic),
            opcode: "ATOM.CAS.32".to_owned(),
            ..measured(4, 10, 200, 35, 10)
        };
        let answer = one(vec![atomic], vec![swap]);
        assert_eq!(answer.status, Status::NotRun);
        assert!(answer.reason.is_some_and(|reason| reason.contains("compare-and-swap of an atomic of 2 B")));
    }

    #[test]
    fn two_sides_of_a_branch_become_one_instruction() {
        let store =
            |line, operation| Measured { line, operation: Some(operation), ..measured(4, 10, 320, 80, 40) };
        let twin =
            |line| Prediction { twins: vec![line], operation: Direction::Store, ..prediction(4, 8.0, 4.0) };
        let on_its_line = one(vec![twin(5)], vec![store(5, Direction::Store)]);
        assert_eq!(on_its_line.status, Status::Confirmed);
        assert!(on_its_line.reason.is_some_and(|reason| reason.contains("on line 5")));
        let elsewhere = one(vec![twin(5)], vec![store(1, Direction::Store)]);
        assert!(elsewhere.reason.is_some_and(|reason| reason.contains("put it to line 1")));
        // Not where the source stores on that line, nor where several strays disagree.
        let other =
            Prediction { line: 1, end_line: 1, operation: Direction::Store, ..prediction(4, 4.0, 4.0) };
        let job = Job { predictions: vec![twin(5)], others: vec![other], ..Job::default() };
        let run = Run { measured: vec![store(1, Direction::Store)], ..Run::default() };
        assert_eq!(compare(&job, &run).remove(0).status, Status::NotRun);
        let strays = vec![store(1, Direction::Store), Measured { sectors: 40, ..store(2, Direction::Store) }];
        assert_eq!(one(vec![twin(5)], strays).status, Status::NotRun);
    }

    #[test]
    fn four_floats_in_one_float4() {
        // Four loads at 16-byte stride, 16 sectors each, become one LDG.128 of the same 16 sectors.
        let loads = vec![prediction(4, 16.0, 4.0); 4];
        let answer = one(loads, vec![measured(16, 10, 320, 160, 160)]);
        assert_eq!(answer.status, Status::Confirmed);
    }

    #[test]
    fn a_struct_in_three_words() {
        // 12 B a lane, 384 B a warp: 12 sectors; each of three 4-byte loads at stride 12 touches all 12.
        let answer = one(vec![prediction(12, 12.0, 12.0)], vec![measured(4, 10, 320, 120, 40); 3]);
        assert_eq!(answer.status, Status::Confirmed);
    }

    #[test]
    fn a_line_without_instructions_is_not_run() {
        let other = Measured { line: 9, ..measured(8, 1, 32, 8, 8) };
        assert_eq!(one(vec![prediction(4, 4.0, 4.0)], vec![other]).status, Status::NotRun);
    }

    #[test]
    fn each_finding_gets_the_time_of_its_own_fix() {
        use super::super::job::{Fixed, Timing};
        let fix = |ids: &[u64]| Fixed { ids: ids.to_vec(), ..Fixed::default() };
        let after = |ms| FixRun { after_ms: Some(ms), outputs_equal: Some(true), ..FixRun::default() };
        let other = Prediction { id: 8, ..prediction(4, 4.0, 4.0) };
        let job = Job {
            predictions: vec![prediction(4, 4.0, 4.0), other],
            fixes: vec![fix(&[8]), fix(&[7])],
            ..Job::default()
        };
        let timing = Timing { before_ms: 1.0, fixes: vec![after(0.8), after(0.5)], ..Timing::default() };
        let run = Run { timing: Some(timing), ..Run::default() };
        let times: Vec<_> = compare(&job, &run).iter().map(|verdict| verdict.milliseconds_after).collect();
        assert_eq!(times, [Some(0.5), Some(0.8)]);
    }

    #[test]
    fn saved_loads_are_counted() {
        use super::super::job::{Method, Timing};
        let verdict = |after_ms, requests, equal| {
            let fix = FixRun {
                after_ms: Some(after_ms),
                global_requests: Some(requests),
                outputs_equal: Some(equal),
                ..FixRun::default()
            };
            let timing = Some(Timing { before_ms: 1.0, fixes: vec![fix], ..Timing::default() });
            let measured = vec![measured(4, 60, 0, 0, 0), measured(4, 40, 0, 0, 0)];
            let run = Run { timing, measured, method: Some(Method::SassMetrics), ..Run::default() };
            saved_requests(&run, 0)
        };
        let fewer = verdict(1.0, 70, true);
        assert_eq!((fewer.status, fewer.global_requests_before), (Status::Confirmed, Some(100)));
        assert_eq!(verdict(0.5, 100, true).status, Status::Confirmed);
        assert_eq!(verdict(0.99, 100, true).status, Status::Refuted);
        assert_eq!(verdict(0.5, 70, false).status, Status::NotRun);
    }

    #[test]
    fn persisting_lines_are_judged_by_the_time_after_the_reset() {
        use super::super::job::{Device, Timing};
        let window = Window { bytes: 32 << 20, hit_ratio: 1.0, set_aside: 32 << 20 };
        let verdict = |after| {
            let fix = FixRun { after_ms: Some(after), ..FixRun::default() };
            let timing = Some(Timing { before_ms: 1.0, fixes: vec![fix], ..Timing::default() });
            let device = Some(Device { l2_bytes: 60 << 20, ..Device::default() });
            left_persisting(window, &Run { timing, device, ..Run::default() })
        };
        let slower = verdict(0.6);
        assert_eq!((slower.status, slower.milliseconds_after), (Status::Confirmed, Some(0.6)));
        // Three quarters of 60 MiB.
        assert!(slower.reason.is_some_and(|reason| reason.contains("re-reads 45.0 MiB took 1.000 ms")));
        assert_eq!(verdict(0.99).status, Status::Refuted);
    }

    #[test]
    fn files() {
        assert!(same_file("/home/me/src/a.cu", "src/a.cu"));
        assert!(same_file("a.cu", "./a.cu"));
        assert!(!same_file("src/b/a.cu", "src/c/a.cu"));
        assert!(!same_file("", "a.cu"));
    }
}
