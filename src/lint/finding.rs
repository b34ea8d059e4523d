//! What a rule says at a place, before any report renders it.

use std::fmt;

use super::super::ir::facts::{Bytes, Confidence, MemorySpace, Operation, TrailStep};
use super::super::source::{Edit, Span};

/// Everything about a rule that is not code: the table, `explain`, SARIF and the configuration derive from it.
#[derive(Debug)]
pub struct RuleInfo {
    /// kebab-case, the pattern found: `bank-conflict`.
    pub name: &'static str,
    /// One line without a full stop.
    pub summary: &'static str,
    pub category: Category,
    pub default_level: Level,
    /// The version that added it.
    pub since: &'static str,
    /// How often it was right where that was measured.
    pub measured: Option<Measured>,
    /// The room's README.md: documentation, `explain` text, SARIF help.
    pub doc: &'static str,
}

/// Findings of a rule on lines of real programs that a device measured: how many were right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    pub right: u32,
    pub found: u32,
}

impl Measured {
    /// The share of right findings that holds with 95 % confidence: the lower end of Wilson's interval,
    ///
    /// ```text
    /// (p + z²/2n − z·√(p(1 − p)/n + z²/4n²)) / (1 + z²/n),  p = right/found, n = found, z = 1.96
    /// ```
    ///
    /// so that a few findings promise less than many: 30 of 31 are 96.8 %, and at least 83.8 %.
    pub fn at_least(self) -> f64 {
        let (n, z) = (f64::from(self.found), 1.96);
        if self.found == 0 {
            return 0.0;
        }
        let p = f64::from(self.right) / n;
        let middle = p + z * z / (2.0 * n);
        let spread = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
        (middle - spread) / (1.0 + z * z / n)
    }

    /// In SARIF's words, which code scanning sorts and filters by. They have no official numbers: ours are nine of ten,
    /// eight of ten, and more right than wrong.
    pub fn precision(self) -> &'static str {
        match self.at_least() {
            share if share >= 0.9 => "very-high",
            share if share >= 0.8 => "high",
            share if share >= 0.5 => "medium",
            _ => "low",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    Coalescing,
    Layout,
    Bank,
    Cache,
    Alias,
    /// The comments that silence findings; not about memory.
    Suppression,
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Category::Coalescing => "coalescing",
            Category::Layout => "layout",
            Category::Bank => "bank",
            Category::Cache => "cache",
            Category::Alias => "alias",
            Category::Suppression => "suppression",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    Off,
    Note,
    Warning,
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Off => "off",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        })
    }
}

/// One finding, decided and worded. Order: file, start, rule, message.
#[derive(Clone, Debug)]
pub struct Finding {
    pub rule: &'static RuleInfo,
    pub level: Level,
    /// Tight: the access, not its statement.
    pub span: Span,
    /// What, with the number: lower case, no full stop, names in backticks.
    pub message: String,
    /// Understandable alone, at the span.
    pub label: String,
    /// Why it costs.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
    /// Where each part of the address comes from; also other places of the same finding.
    pub trail: Vec<TrailStep>,
    /// The kernel as `inspect` names it; empty for host-side findings.
    pub kernel: String,
    /// `in[i * 32]`: white space folded; with rule, kernel and ordinal it is the fingerprint.
    pub access_text: String,
    pub numbers: Numbers,
    pub fix: Option<Fix>,
}

impl Finding {
    /// Did its rule put it below the level of the rule? Such a finding stays there whatever the rule's level is set to.
    pub fn is_lowered(&self) -> bool {
        self.level < self.rule.default_level
    }
}

/// The numbers behind a finding. Sectors and wavefronts are averages per executed request of a warp.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// `256`, `16x16`, with where it was read: `launch site`.
    pub launch_shape: Option<String>,
    pub launch_source: Option<String>,
    pub space: Option<MemorySpace>,
    pub operation: Option<Operation>,
    pub access_bytes: Option<Bytes>,
    pub lane_stride: Option<Bytes>,
    pub sectors: Option<f64>,
    pub ideal_sectors: Option<f64>,
    pub wavefronts: Option<f64>,
    pub ideal_wavefronts: Option<f64>,
    pub confidence: Option<Confidence>,
    pub assumptions: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Applicability {
    /// Keeps behaviour; applied by `--fix`.
    Safe,
    /// Keeps results but changes resource use or needs a promise; applied by `--unsafe-fixes`.
    Unsafe,
    /// Shown, never applied.
    DisplayOnly,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    pub title: String,
    pub applicability: Applicability,
    /// Non-overlapping; may touch several files. Empty for a display-only text.
    pub edits: Vec<Edit>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_findings_promise_less_than_many() {
        let of = |right, found| Measured { right, found };
        // 193 of 197: (0.97970 + 0.00975 − 1.96·√(0.000101 + 0.0000247)) / 1.0195 = 0.9675 / 1.0195.
        assert!((of(193, 197).at_least() - 0.949).abs() < 5e-4);
        // 30 of 31: (0.96774 + 0.06196 − 1.96·√(0.001007 + 0.000999)) / 1.1239 = 0.9419 / 1.1239.
        assert!((of(30, 31).at_least() - 0.838).abs() < 5e-4);
        assert_eq!((of(193, 197).precision(), of(30, 31).precision()), ("very-high", "high"));
        // 3 of 4: (0.75 + 0.4802 − 1.96·√(0.04688 + 0.06003)) / 1.9604 = 0.5894 / 1.9604 = 0.301.
        assert_eq!((of(3, 4).precision(), of(0, 0).precision()), ("low", "low"));
    }
}
