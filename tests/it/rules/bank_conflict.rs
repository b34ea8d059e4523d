//! Proposals, with the arithmetic: a padded row costs rows · 4 bytes; measured figures are hardware.md's.

use cudalint::lint::finding::Applicability;

use super::{findings, fixed};

const RULE: &str = "bank-conflict";

/// A tile written by rows and read by columns in a square block.
fn transpose(size: u32, extra: &str) -> String {
    format!(
        "__global__ void transpose(const float *in, float *out, int n) {{
    __shared__ float tile[{size}][{size}];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[y * n + x];
    __syncthreads();
    out[y * n + x] = tile[x][y];{extra}
}}
void run(const float *in, float *out, int n) {{ transpose<<<1, dim3({size}, {size})>>>(in, out, n); }}
"
    )
}

#[test]
fn rows_of_32_are_padded_by_one() {
    let text = transpose(32, "");
    let (fixed, sure) = fixed(RULE, &text).unwrap();
    assert_eq!(fixed, text.replace("tile[32][32]", "tile[32][32 + 1]"));
    assert_eq!(sure, Applicability::Unsafe);
    let help = findings(RULE, &text, false)[0].help.clone().unwrap();
    // 32 rows of 4 bytes more; 32 warps store in 1 and load in 32 wavefronts, then in 1.
    assert!(help.contains("128 B more") && help.contains("1 wavefront per request here"), "{help}");
    assert!(help.contains("64 instead of 1056 in all"), "{help}");
    assert!(findings(RULE, &fixed, false).is_empty());
}

#[test]
fn rows_of_16_are_permuted_because_padding_makes_the_store_worse() {
    let text = transpose(16, "");
    let (fixed, _) = fixed(RULE, &text).unwrap();
    let wanted = text
        .replace("tile[y][x] =", "tile[y][x ^ (y & 15)] =")
        .replace("= tile[x][y]", "= tile[x][y ^ (x & 15)]");
    assert_eq!(fixed, wanted);
    assert!(findings(RULE, &fixed, false).is_empty());
}

#[test]
fn an_array_that_is_not_only_indexed_is_not_edited() {
    let text = transpose(32, "\n    float *flat = &tile[0][0];\n    out[0] = *flat;");
    assert_eq!(fixed(RULE, &text), None);
    let text = transpose(32, "\n    out[1] = sizeof(tile);");
    assert_eq!(fixed(RULE, &text), None);
}

#[test]
fn an_array_behind_a_macro_is_not_edited() {
    let text = transpose(16, "").replace("= tile[x][y]", "= AT(x, y)");
    assert_eq!(fixed(RULE, &format!("#define AT(r, c) tile[r][c]\n{text}")), None);
}

#[test]
fn an_array_that_would_not_fit_is_not_padded() {
    let text = transpose(32, "")
        .replace("[32][32];", "[32][32];\n    __shared__ float rest[11264];\n    rest[x] = 0.0f;");
    // 4096 + 45056 = 49152 bytes are all there are.
    assert_eq!(fixed(RULE, &text), None);
}

#[test]
fn a_flat_array_gets_words() {
    let text = "__global__ void rows(const float *in, float *out) {
    extern __shared__ float s[];
    for (int k = 0; k < 32; k++) s[threadIdx.x * 32 + k] = in[k * 256 + threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
void run(const float *in, float *out) { rows<<<1, 256, 32768>>>(in, out); }
";
    let found = findings(RULE, text, false);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].numbers.wavefronts, Some(32.0));
    assert!(found[0].help.as_deref().unwrap().contains("32 of `s`"), "{:?}", found[0].help);
    assert!(found[0].fix.is_none());
}

#[test]
fn a_gather_keeps_layouts_from_being_simulated() {
    let text = transpose(32, "\n    out[y] = tile[((const int *)in)[x]][y];");
    let help = findings(RULE, &text, false)[0].help.clone().unwrap();
    assert!(help.contains("not simulated: some accesses to it are not known"), "{help}");
}

#[test]
fn nothing_is_proposed_for_guessed_blocks() {
    let text = transpose(32, "");
    let kernel = text.split("void run").next().unwrap();
    let found = findings(RULE, kernel, false);
    let help = found[0].help.clone().unwrap();
    assert!(help.contains("no launch says how large a block is"), "{help}");
    assert!(found[0].fix.is_none());
}

#[test]
fn lanes_that_update_one_word_are_to_be_combined_first() {
    let text = "__global__ void count(int *out, const int *in) {
    __shared__ int total;
    atomicMax(&total, in[threadIdx.x]);
    __syncthreads();
    out[threadIdx.x] = total;
}
void run(int *out, const int *in) { count<<<1, 256>>>(out, in); }
";
    for found in findings(RULE, text, false) {
        assert!(found.help.as_deref().unwrap().starts_with("combine"), "{found:#?}");
    }
}
