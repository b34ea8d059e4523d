//! The smallest sufficient change.

use cudalint::lint::check::{Input, check};
use cudalint::lint::finding::Finding;
use cudalint::lint::fix;
use cudalint::rules;
use cudalint::source::{SourceFile, Sources};

use super::{findings, fixed};

const RULE: &str = "missing-restrict";

const ACCUMULATE: &str = "__global__ void weigh(float *out, const float *a, const float *b, int n, int m) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < m; k++) out[t] += a[k * n + t] * b[k];
}
";

#[test]
fn one_output_suffices_for_two_inputs() {
    let (fixed, _) = fixed(RULE, ACCUMULATE).unwrap();
    assert_eq!(fixed, ACCUMULATE.replace("float *out", "float *__restrict__ out"));
    assert!(findings(RULE, &fixed, false).is_empty());
}

#[test]
fn one_input_is_changed_itself() {
    let text = ACCUMULATE.replace(" * b[k]", "").replace(", const float *b", "");
    let (fixed, _) = fixed(RULE, &text).unwrap();
    assert_eq!(fixed, text.replace("float *a", "float *__restrict__ a"));
    assert!(findings(RULE, &fixed, false).is_empty());
}

#[test]
fn what_is_only_eligible_is_pedantic() {
    let text = "__global__ void copy(float *out, const float *in) { out[threadIdx.x] = in[threadIdx.x]; }\n";
    assert!(findings(RULE, text, false).is_empty());
    let found = findings(RULE, text, true);
    assert_eq!(found.len(), 1);
    assert!(found[0].message.starts_with("`in` is only read"), "{}", found[0].message);
}

/// The texts of several files after the fix of the only finding.
fn fixed_together(files: &[(&str, &str)]) -> Vec<String> {
    let mut sources = Sources::default();
    for (path, text) in files {
        sources.add(SourceFile::new(*path, text.to_string()));
    }
    let input = Input { checked: sources.ids().collect(), sources, ..Input::default() };
    let found: Vec<Finding> =
        check(&input, rules::ALL).findings.into_iter().filter(|found| found.rule.name == RULE).collect();
    assert_eq!(found.len(), 1, "{found:#?}");
    let edits = fix::by_file(found.iter().filter_map(|found| found.fix.as_ref()));
    let text = |file| {
        let edits = edits.get(&file).map_or(&[][..], Vec::as_slice);
        fix::apply(&input.sources.get(file).text, edits).unwrap()
    };
    input.sources.ids().map(text).collect()
}

#[test]
fn every_declaration_of_the_kernel_is_changed_with_it() {
    let header = "__global__ void weigh(float *out, const float *a, const float *b, int n, int m);\n";
    let caller = "__global__ void weigh(float *, const float *, const float *, int, int);\n\
                  __global__ void weigh(double *out, int n);\n\
                  void go() { weigh<<<4, 64>>>(0, 0, 0, 1, 2); }\n";
    let done = "__global__ void weigh(float *__restrict__ out, const float *, const float *, int, int);\n";
    let other = "__global__ void weigh(float *out, const float *a, const float *b, int n, int m) {}\n\
                 int main() { weigh<<<4, 64>>>(0, 0, 0, 1, 2); }\n";
    let kernel = format!("#include \"weigh.cuh\"\n{ACCUMULATE}");
    let files = [
        ("p/a/weigh.cu", kernel.as_str()),
        ("p/a/weigh.cuh", header),
        ("p/a/main.cu", caller),
        ("p/a/done.cu", done),
        ("p/b/deep/other/main.cu", other),
        ("p/b/deep/other/weigh.cuh", header),
    ];
    let restricted = |text: &str| text.replacen("float *out", "float *__restrict__ out", 1);
    let expected = [
        restricted(&kernel),
        restricted(header),
        caller.replacen("float *,", "float *__restrict__,", 1),
        done.to_owned(),
        other.to_owned(),
        header.to_owned(),
    ];
    assert_eq!(fixed_together(&files), expected);
}
