//! The numbers behind a finding under the names that JSON, SARIF and rdjson promise.

use serde::Serialize;

use super::super::lint::finding::Finding;

/// Absent numbers are left out. Sectors and wavefronts are averages per executed request of a warp.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Numbers<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    kernel: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    launch_shape: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    launch_source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lane_stride_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sectors_per_request: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ideal_sectors_per_request: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wavefronts_per_request: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ideal_wavefronts_per_request: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<String>,
    assumptions: &'a [String],
}

impl<'a> Numbers<'a> {
    pub fn of(finding: &'a Finding) -> Numbers<'a> {
        let numbers = &finding.numbers;
        let finite = |number: Option<f64>| number.filter(|n| n.is_finite());
        Numbers {
            kernel: &finding.kernel,
            launch_shape: numbers.launch_shape.as_deref(),
            launch_source: numbers.launch_source.as_deref(),
            space: numbers.space.map(|space| space.to_string()),
            operation: numbers.operation.map(|operation| operation.to_string()),
            access_bytes: numbers.access_bytes.map(|bytes| bytes.0),
            lane_stride_bytes: numbers.lane_stride.map(|bytes| bytes.0),
            sectors_per_request: finite(numbers.sectors),
            ideal_sectors_per_request: finite(numbers.ideal_sectors),
            wavefronts_per_request: finite(numbers.wavefronts),
            ideal_wavefronts_per_request: finite(numbers.ideal_wavefronts),
            confidence: numbers.confidence.map(|confidence| confidence.to_string()),
            assumptions: &numbers.assumptions,
        }
    }
}
