//! Does what the device did agree with what was predicted?
//!
//! A prediction speaks of a source access, a counter of an instruction. They are alike where the line has an instruction of
//! the same space, direction and width: the prediction is confirmed where one of them is within 2 % or 0.06 of it. The
//! compiler may have merged accesses of a line into wider instructions or split one into narrower; then sectors of the line
//! are compared, within the bounds that hold for any merge: the widest member alone and all members apart.

use super::job::{Job, Measured, Prediction, Run, Space, Status, Verification};

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
    Verification {
        id: prediction.id,
        status: outcome.status,
        reason: outcome.reason,
        predicted: prediction.value(),
        measured_sectors: value.filter(|_| !shared),
        measured_ideal_sectors: ideal.filter(|_| !shared),
        measured_wavefronts: value.filter(|_| shared),
        measured_ideal_wavefronts: ideal.filter(|_| shared),
        opcode: outcome.measured.map(|measured| measured.opcode.clone()),
        method: outcome.measured.and(run.method),
        device: run.device.as_ref().map(|device| device.name.clone()),
        milliseconds_before: timing.map(|timing| timing.before_ms),
        milliseconds_after: timing.and_then(|timing| timing.after_ms),
        outputs_equal: timing.and_then(|timing| timing.outputs_equal),
    }
}

struct Outcome<'a> {
    status: Status,
    reason: Option<String>,
    measured: Option<&'a Measured>,
}

impl<'a> Outcome<'a> {
    fn not_run(reason: impl Into<String>) -> Self {
        Outcome { status: Status::NotRun, reason: Some(reason.into()), measured: None }
    }

    fn of(status: Status, measured: &'a Measured, reason: Option<String>) -> Self {
        Outcome { status, reason, measured: Some(measured) }
    }
}

fn judge<'a>(job: &Job, run: &'a Run, prediction: &Prediction) -> Outcome<'a> {
    if let Some(failure) = &run.failure {
        return Outcome::not_run(failure.clone());
    }
    if let Some(outside) = run.out_of_range.first() {
        return Outcome::not_run(format!(
            "with the inputs made for it the kernel left its buffers: {outside}"
        ));
    }
    let Some(predicted) = prediction.value() else {
        return Outcome::not_run("nothing was predicted for this access");
    };
    let line: Vec<&Measured> = run.measured.iter().filter(|measured| is_at(measured, prediction)).collect();
    if !line.is_empty() && line.iter().all(|measured| measured.active == 0) {
        return Outcome::not_run(
            "no lane took part: with the inputs made for it its condition is never true",
        );
    }
    let line: Vec<&Measured> = line.into_iter().filter(|measured| measured.active > 0).collect();
    if line.is_empty() {
        return Outcome::not_run(format!(
            "no {} {} was executed on this line: the compiler moved or removed it, or its condition was never true",
            prediction.space, prediction.operation
        ));
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
        None => match merged_among(job, prediction, predicted, &line) {
            Some(outcome) => outcome,
            None => differs(prediction, nearest),
        },
    }
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
        if factor < 0.98 && factor > 0.0 && close(predicted, measured.value() / factor) {
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

/// A line where no instruction has the predicted width.
fn merged<'a>(job: &Job, prediction: &Prediction, predicted: f64, line: &[&'a Measured]) -> Outcome<'a> {
    if let Some(outcome) = merged_among(job, prediction, predicted, line) {
        return outcome;
    }
    match nearest(line, predicted) {
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
    let neighbours = job.predictions.iter().filter(|other| {
        same_file(&other.file, &prediction.file)
            && other.space == prediction.space
            && other.operation == prediction.operation
            && other.line <= prediction.end_line.max(prediction.line)
            && prediction.line <= other.end_line.max(other.line)
    });
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
    use super::super::job::Direction;
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
            assumed: None,
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
        let other = Measured { line: 9, ..measured(4, 1, 32, 4, 4) };
        assert_eq!(one(vec![prediction(4, 4.0, 4.0)], vec![other]).status, Status::NotRun);
    }

    #[test]
    fn files() {
        assert!(same_file("/home/me/src/a.cu", "src/a.cu"));
        assert!(same_file("a.cu", "./a.cu"));
        assert!(!same_file("src/b/a.cu", "src/c/a.cu"));
        assert!(!same_file("", "a.cu"));
    }
}
