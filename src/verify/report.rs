//! What `cudalint verify` prints: text for people, versioned JSON for machines.

use std::fmt::Write as _;

use serde::Serialize;

use super::job::{Device, Job, Launch, Run, Status, Timing, Verification};

/// One run of `cudalint verify`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub schema_version: u32,
    pub device: Option<Device>,
    pub summary: Summary,
    pub kernels: Vec<KernelReport>,
    /// Findings that are about no access of a kernel: qualifiers, host code.
    pub findings: Vec<FindingReport>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub kernels: usize,
    pub kernels_run: usize,
    pub confirmed: usize,
    pub refuted: usize,
    pub not_run: usize,
    /// Average per kernel, the child's start included.
    pub seconds_per_kernel: f64,
}

/// One kernel instance in one launch.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KernelReport {
    pub kernel: String,
    pub path: String,
    pub line: u32,
    pub launch: Option<Launch>,
    pub compiler: Option<String>,
    pub seconds: f64,
    /// Why it was not run.
    pub failure: Option<String>,
    pub notes: Vec<String>,
    pub timing: Option<Timing>,
    pub accesses: Vec<AccessReport>,
}

/// The verdict on a finding that is about no access.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingReport {
    pub rule: String,
    pub path: String,
    pub line: u32,
    pub column: u32,
    pub verification: Verification,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessReport {
    pub path: String,
    pub line: u32,
    pub column: u32,
    /// `global load`
    pub access: String,
    /// The rules that found it.
    pub rules: Vec<String>,
    pub verification: Verification,
}

impl KernelReport {
    /// The report on a job that was handed to a child; `rules` names the rules per prediction id.
    pub fn of(job: &Job, run: &Run, verdicts: Vec<Verification>, rules: &dyn Fn(u64) -> Vec<String>) -> Self {
        let accesses = job.predictions.iter().zip(verdicts).map(|(prediction, verification)| AccessReport {
            path: prediction.file.clone(),
            line: prediction.line,
            column: prediction.column.unwrap_or(1),
            access: format!("{} {}", prediction.space, prediction.operation),
            rules: rules(prediction.id),
            verification,
        });
        let outside = run.out_of_range.first().map(|outside| format!("it left its buffers: {outside}"));
        KernelReport {
            kernel: job.kernel.clone(),
            launch: Some(job.launch),
            compiler: run.compiler.clone(),
            seconds: run.seconds,
            failure: run.failure.clone().or(outside),
            notes: run.notes.clone(),
            timing: run.timing.clone(),
            accesses: accesses.collect(),
            ..KernelReport::default()
        }
    }

    pub fn count(&self, status: Status) -> usize {
        self.accesses.iter().filter(|access| access.verification.status == status).count()
    }
}

impl Report {
    pub fn new(device: Option<Device>, kernels: Vec<KernelReport>, findings: Vec<FindingReport>) -> Report {
        let count = |status| -> usize {
            let others = findings.iter().filter(|finding| finding.verification.status == status).count();
            kernels.iter().map(|kernel| kernel.count(status)).sum::<usize>() + others
        };
        let tried: Vec<f64> = kernels.iter().map(|kernel| kernel.seconds).filter(|&s| s > 0.0).collect();
        let summary = Summary {
            kernels: kernels.len(),
            kernels_run: kernels.iter().filter(|kernel| kernel.failure.is_none()).count(),
            confirmed: count(Status::Confirmed),
            refuted: count(Status::Refuted),
            not_run: count(Status::NotRun),
            seconds_per_kernel: tried.iter().sum::<f64>() / tried.len().max(1) as f64,
        };
        Report { schema_version: 1, device, summary, kernels, findings }
    }

    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// A SARIF log of findings with `properties.verification` at each result that was confronted with the device: matched
    /// by rule, file and line. A log that is not readable is returned as it is.
    pub fn sarif(&self, log: &str) -> String {
        let Ok(mut log) = serde_json::from_str::<serde_json::Value>(log) else { return log.to_owned() };
        let runs = log.get_mut("runs").and_then(|runs| runs.as_array_mut());
        let results = runs.into_iter().flatten().filter_map(|run| run.get_mut("results")?.as_array_mut());
        for result in results.flatten() {
            if let Some(verification) = self.verification(result)
                && let Ok(verification) = serde_json::to_value(verification)
                && let Some(result) = result.as_object_mut()
                && let Some(properties) =
                    result.entry("properties").or_insert_with(|| serde_json::json!({})).as_object_mut()
            {
                properties.insert("verification".to_owned(), verification);
            }
        }
        let mut text = serde_json::to_string_pretty(&log).unwrap_or_default();
        text.push('\n');
        text
    }

    fn verification(&self, result: &serde_json::Value) -> Option<&Verification> {
        let rule = result.get("ruleId")?.as_str()?;
        let place = result.pointer("/locations/0/physicalLocation")?;
        let uri = place.pointer("/artifactLocation/uri")?.as_str()?;
        let path = percent_encoding::percent_decode_str(uri).decode_utf8_lossy();
        let line = place.pointer("/region/startLine")?.as_u64()?;
        let accesses = self.kernels.iter().flat_map(|kernel| &kernel.accesses);
        let mut here = accesses.filter(|access| {
            u64::from(access.line) == line
                && access.rules.iter().any(|name| name == rule)
                && super::compare::same_file(&access.path, &path)
        });
        let Some(first) = here.next() else {
            let mut others = self.findings.iter().filter(|finding| {
                finding.rule == rule
                    && u64::from(finding.line) == line
                    && super::compare::same_file(&finding.path, &path)
            });
            return others.next().map(|finding| &finding.verification);
        };
        // A finding that several launches share is refuted where one refutes it.
        let refuted = here.find(|access| access.verification.status == Status::Refuted);
        Some(&refuted.unwrap_or(first).verification)
    }

    /// A paragraph per kernel, the counts last.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for kernel in &self.kernels {
            // Writing to a String does not fail.
            let _ = kernel.write(&mut out);
        }
        for FindingReport { rule, path, line, column, verification } in &self.findings {
            let _ = writeln!(out, "{path}:{line}:{column} ({rule}): {verification}");
        }
        if !self.findings.is_empty() {
            out.push('\n');
        }
        let s = &self.summary;
        let device = self.device.as_ref().map_or(String::new(), |device| format!(" on {}", device.name));
        let _ = writeln!(
            out,
            "{} confirmed, {} refuted, {} not run; {} of {} kernels ran{device}, {:.2} s each",
            s.confirmed, s.refuted, s.not_run, s.kernels_run, s.kernels, s.seconds_per_kernel
        );
        out
    }
}

impl KernelReport {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        write!(out, "{}:{}: `{}`", self.path, self.line, self.kernel)?;
        if let Some(Launch { grid: [gx, gy, gz], block: [bx, by, bz], .. }) = self.launch {
            write!(out, ", grid {gx}x{gy}x{gz}, block {bx}x{by}x{bz}")?;
        }
        writeln!(out)?;
        if let Some(failure) = &self.failure {
            writeln!(out, "  not run: {failure}")?;
        }
        for note in &self.notes {
            writeln!(out, "  note: {note}")?;
        }
        for access in self.accesses.iter().filter(|_| self.failure.is_none()) {
            let AccessReport { line, column, access: what, rules, verification, .. } = access;
            let found = if rules.is_empty() { String::new() } else { format!(" ({})", rules.join(", ")) };
            writeln!(out, "  {}:{line}:{column} {what}{found}: {verification}", access.path)?;
        }
        if let Some(Timing { before_ms, fixes, .. }) = &self.timing {
            for fix in fixes {
                let before =
                    if fix.after_ms.is_some() { format!("{before_ms:.3} -> ") } else { String::new() };
                writeln!(out, "  fix ({}): {}: {before}{fix}", fix.rule, fix.title)?;
            }
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::compare;
    use super::super::job::{Direction, Prediction, Space};
    use super::*;

    #[test]
    fn sarif_results_get_what_was_measured() {
        let prediction = Prediction {
            id: 0,
            file: "src/a.cu".to_owned(),
            line: 7,
            end_line: 7,
            column: None,
            expression: None,
            space: Space::Global,
            operation: Direction::Load,
            access_bytes: 4,
            sectors: Some(32.0),
            ideal_sectors: Some(4.0),
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
        };
        let job = Job { predictions: vec![prediction], ..Job::default() };
        let run = Run { failure: Some("no device".to_owned()), ..Run::default() };
        let rules = |_| vec!["uncoalesced-access".to_owned()];
        let kernel = KernelReport::of(&job, &run, compare::compare(&job, &run), &rules);
        let report = Report::new(None, vec![kernel], Vec::new());
        let place =
            r#"{"physicalLocation":{"artifactLocation":{"uri":"src/a.cu"},"region":{"startLine":7}}}"#;
        let log = format!(
            r#"{{"runs":[{{"results":[{{"ruleId":"uncoalesced-access","locations":[{place}]}}]}}]}}"#
        );
        let log: serde_json::Value = serde_json::from_str(&report.sarif(&log)).expect("JSON");
        let found = log.pointer("/runs/0/results/0/properties/verification/status");
        assert_eq!(found.and_then(|status| status.as_str()), Some("not-run"));
        assert_eq!(report.sarif("no log"), "no log");
    }

    #[test]
    fn findings_about_no_access_are_found_by_their_decoded_path() {
        let finding = FindingReport {
            rule: "missing-restrict".to_owned(),
            path: "b+tree/a.cu".to_owned(),
            line: 7,
            column: 1,
            verification: Verification::not_run("no fix"),
        };
        let report = Report::new(None, Vec::new(), vec![finding]);
        assert_eq!(report.summary.not_run, 1);
        assert!(report.text().starts_with("b+tree/a.cu:7:1 (missing-restrict): not run: no fix\n"));
        let place =
            r#"{"physicalLocation":{"artifactLocation":{"uri":"b%2Btree/a.cu"},"region":{"startLine":7}}}"#;
        let log =
            format!(r#"{{"runs":[{{"results":[{{"ruleId":"missing-restrict","locations":[{place}]}}]}}]}}"#);
        let log: serde_json::Value = serde_json::from_str(&report.sarif(&log)).expect("JSON");
        let found = log.pointer("/runs/0/results/0/properties/verification/reason");
        assert_eq!(found.and_then(|reason| reason.as_str()), Some("no fix"));
    }
}
