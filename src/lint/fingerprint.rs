//! Which finding is which, from one version of the source to the next.
//!
//! A baseline must know an accepted finding again after lines moved, after unrelated edits, after a new
//! instantiation of the same template, and after its file was renamed. A fingerprint is therefore made of what
//! the finding says about the code and not of where it stands:
//!
//! ```text
//! FNV-1a64(rule ⋄ kernel without template arguments ⋄ operation ⋄ access text without idle white space) : ordinal
//! 6d1f0c5b9a3e7f42:1
//! ```
//!
//! The path is not in the key, so that a rename loses nothing. Equal keys, in one file or in two, are told apart
//! by the ordinal, which counts them over the whole run in report order (file, then position), from 1. The set of
//! fingerprints of `n` equal findings is thus always `…:1` to `…:n`, whatever their files are called; one more
//! equal finding adds exactly `…:n+1`.
//!
//! A run over part of the project numbers only what it sees. A baseline that is compared with such a run should
//! store the path beside each fingerprint and compare [`key`]s per path first, whole fingerprints after.

use std::borrow::Borrow;

use super::super::source::{Sources, Span};
use super::finding::Finding;

/// The fingerprint of each finding, in the order given. All are distinct.
pub fn fingerprints<F: Borrow<Finding>>(sources: &Sources, findings: &[F]) -> Vec<String> {
    let keys: Vec<u64> = findings.iter().map(|finding| key_of(sources, finding.borrow())).collect();
    let mut order: Vec<usize> = (0..findings.len()).collect();
    // Report order among equals; the given order decides where even that is equal (two launch shapes).
    let place =
        |finding: &F| (finding.borrow().span.file, finding.borrow().span.start, finding.borrow().span.end);
    order.sort_by_key(|&at| (keys.get(at), findings.get(at).map(place)));
    let mut result = vec![String::new(); findings.len()];
    let (mut previous, mut ordinal) = (None, 0u32);
    for at in order {
        let Some(&key) = keys.get(at) else { continue };
        ordinal = if previous == Some(key) { ordinal + 1 } else { 1 };
        previous = Some(key);
        if let Some(slot) = result.get_mut(at) {
            *slot = join(key, ordinal);
        }
    }
    result
}

/// The fingerprint of one finding that is the `ordinal`-th (from 1) of its equals in the run.
pub fn fingerprint(sources: &Sources, finding: &Finding, ordinal: u32) -> String {
    join(key_of(sources, finding), ordinal)
}

/// The part of a fingerprint that equal findings share: `9f3c…:2` → `9f3c…`.
pub fn key(fingerprint: &str) -> &str {
    fingerprint.split_once(':').map_or(fingerprint, |(key, _)| key)
}

fn join(key: u64, ordinal: u32) -> String {
    format!("{key:016x}:{ordinal}")
}

fn key_of(sources: &Sources, finding: &Finding) -> u64 {
    let operation = finding.numbers.operation.map_or(String::new(), |operation| operation.to_string());
    // Host-side findings have no access: the text they point at stands for it.
    let text = match finding.access_text.is_empty() {
        true => squeeze(first_line(sources, finding.span)),
        false => squeeze(&finding.access_text),
    };
    let parts = [finding.rule.name, &without_template_args(&finding.kernel), &operation, &text];
    fnv1a(&parts.join("\u{0}"))
}

fn first_line(sources: &Sources, span: Span) -> &str {
    sources.text(span).lines().next().unwrap_or("")
}

/// `ns::k<float, (N > 4)>::f` → `ns::k::f`. Operators keep their signs: what does not close is kept as written.
fn without_template_args(name: &str) -> String {
    let mut kept = String::new();
    let mut rest = name;
    while let Some(open) = rest.find('<') {
        let (before, from) = rest.split_at(open);
        kept.push_str(before);
        match closing_angle(from) {
            Some(close) => rest = from.get(close + 1..).unwrap_or(""),
            None => {
                kept.push_str(from);
                rest = "";
            }
        }
    }
    kept.push_str(rest);
    squeeze(&kept)
}

/// The byte of the `>` that closes the `<` at the start of `text`.
fn closing_angle(text: &str) -> Option<usize> {
    let (mut angles, mut round) = (0i32, 0i32);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => round += 1,
            ')' | ']' | '}' => round -= 1,
            '<' if round == 0 => angles += 1,
            '>' if round == 0 => {
                angles -= 1;
                if angles == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Drops white space except the one space that separates two words.
pub(crate) fn squeeze(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut squeezed = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let glued = squeezed.chars().next_back().is_some_and(is_word) && word.starts_with(is_word);
        if glued {
            squeezed.push(' ');
        }
        squeezed.push_str(word);
    }
    squeezed
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): stable over versions and platforms, unlike the standard library's hasher.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::facts::Operation;
    use crate::lint::finding::{Category, Level, Numbers, RuleInfo};
    use crate::source::{FileId, SourceFile};

    static RULE: RuleInfo = RuleInfo {
        name: "uncoalesced-access",
        summary: "",
        category: Category::Coalescing,
        default_level: Level::Warning,
        since: "0.1.0",
        measured: None,
        doc: "",
    };

    fn at(file: FileId, start: usize, kernel: &str, access: &str) -> Finding {
        Finding {
            rule: &RULE,
            level: Level::Warning,
            span: Span::new(file, start, start + 4),
            message: format!("message that may change {start}"),
            label: String::new(),
            notes: vec![],
            help: None,
            trail: vec![],
            kernel: kernel.to_owned(),
            access_text: access.to_owned(),
            numbers: Numbers { operation: Some(Operation::Load), ..Numbers::default() },
            fix: None,
        }
    }

    fn two_files() -> (Sources, FileId, FileId) {
        let mut sources = Sources::default();
        let a = sources.add(SourceFile::new("a.cu", "x".repeat(100)));
        let b = sources.add(SourceFile::new("b.cu", "x".repeat(100)));
        (sources, a, b)
    }

    #[test]
    fn fnv_vectors() {
        // Published by the authors of the hash: the empty string, "a" and "foobar".
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn lines_spacing_instances_and_renames_do_not_matter() {
        let (sources, a, b) = two_files();
        let one = fingerprints(&sources, &[at(a, 0, "ns::k<float, 4>", "in[i * 32]")]);
        let other = fingerprints(&sources, &[at(b, 50, "ns::k<(8 > 4)>", "in[ i*32 ]")]);
        assert_eq!(one, other);
        assert!(one.iter().all(|f| f.ends_with(":1") && key(f).len() == 16));
        assert_eq!(one, [fingerprint(&sources, &at(a, 0, "ns::k", "in[i*32]"), 1)]);
    }

    #[test]
    fn equals_are_numbered_in_report_order_over_files() {
        let (sources, a, b) = two_files();
        let findings =
            [at(b, 3, "k", "x[i]"), at(a, 9, "k", "x[i]"), at(a, 2, "k", "x[i]"), at(a, 1, "k", "y[i]")];
        let prints = fingerprints(&sources, &findings);
        let ordinals: Vec<&str> = prints.iter().filter_map(|f| f.split_once(':')).map(|(_, n)| n).collect();
        assert_eq!(ordinals, ["3", "2", "1", "1"]);
        assert_eq!(key(&prints[0]), key(&prints[1]));
        assert_ne!(key(&prints[0]), key(&prints[3]));
    }

    #[test]
    fn rule_kernel_text_and_operation_matter() {
        let (sources, a, _) = two_files();
        let base = at(a, 0, "k", "x[i]");
        let mut store = base.clone();
        store.numbers.operation = Some(Operation::Store);
        let all = [base, store, at(a, 0, "kk", "x[i]"), at(a, 0, "k", "x[j]"), at(a, 0, "operator<", "x[i]")];
        let mut prints = fingerprints(&sources, &all);
        prints.sort();
        prints.dedup();
        assert_eq!(prints.len(), all.len());
    }

    #[test]
    fn words_stay_apart() {
        assert_eq!(squeeze(" unsigned  int\tx [ i + 1 ] "), "unsigned int x[i+1]");
        assert_eq!(without_template_args("f<A<B>, C>::g"), "f::g");
        assert_eq!(without_template_args("operator<"), "operator<");
    }
}
