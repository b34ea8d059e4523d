//! The smallest sufficient change.

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
