//! Masking: equal length, exact texts, recorded facts, kernels, and no panic on any input.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use cudalint::source::FileId;
use cudalint::syntax::macros::{Defines, Presence};
use cudalint::syntax::mask::{self, AttributeKind, HeadKind, MaskOptions, Masked};

fn run(text: &str) -> Masked {
    let masked = mask::mask(FileId(0), text, &Defines::default(), &MaskOptions::default());
    check_shape(text, &masked);
    masked
}

/// What holds for every input: length, line ends, and spans within the text.
fn check_shape(text: &str, masked: &Masked) {
    assert_eq!(text.len(), masked.text.len());
    let line_ends = |text: &str| -> Vec<usize> {
        text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect()
    };
    assert_eq!(line_ends(text), line_ends(&masked.text));
    let spans = masked
        .attributes
        .iter()
        .map(|attribute| attribute.start..attribute.end)
        .chain(masked.kernels.iter().flat_map(|kernel| [kernel.name_span.clone(), kernel.body.clone()]))
        .chain(masked.loop_macros.iter().map(|found| found.span.clone()))
        .chain(masked.statement_macros.iter().map(|found| found.span.clone()))
        .chain(masked.dead.iter().cloned())
        .chain(masked.undecided.iter().flat_map(|found| found.branches.iter().cloned()));
    for span in spans {
        assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?}");
    }
    for kernel in &masked.kernels {
        let island = mask::island(masked, kernel);
        assert!(island.start <= kernel.name_span.start && island.end == kernel.body.end);
        assert_eq!(mask::isolate(masked, &island).len(), text.len());
    }
}

/// The masked text with runs of spaces as one, so that expectations stay readable.
fn squeezed(text: &str) -> String {
    run(text).text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn fixtures() -> Vec<(PathBuf, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/lower/mask");
    let mut found: Vec<(PathBuf, String)> = std::fs::read_dir(folder)
        .expect("the fixtures are part of the repository")
        .filter_map(Result::ok)
        .map(|entry| (entry.path(), std::fs::read_to_string(entry.path()).expect("fixtures are UTF-8")))
        .collect();
    found.sort();
    found
}

fn parse(text: &str) -> tree_sitter::Tree {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).expect("the grammar fits the library");
    parser.parse(text, None).expect("no time limit is set")
}

#[test]
fn fixtures_parse_without_error_once_masked() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 4);
    for (path, text) in &fixtures {
        let masked = run(text);
        let tree = parse(&masked.text);
        assert!(!tree.root_node().has_error(), "{}:\n{}\n{}", path.display(), masked.text, tree.root_node());
        assert!(parse(text).root_node().has_error(), "{} needs no mask", path.display());
        assert!(masked.gaps.is_empty());
    }
}

#[test]
fn kernels_are_found_with_their_bodies() {
    let names: Vec<(String, Vec<String>)> = fixtures()
        .iter()
        .map(|(path, text)| {
            let masked = run(text);
            for kernel in &masked.kernels {
                let body = &text[kernel.body.start as usize..kernel.body.end as usize];
                assert!(body.starts_with('{') && body.ends_with('}'));
                assert_eq!(
                    &text[kernel.name_span.start as usize..kernel.name_span.end as usize],
                    kernel.name
                );
            }
            let file = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            (file, masked.kernels.iter().map(|kernel| kernel.name.clone()).collect())
        })
        .collect();
    let expected: [(&str, &[&str]); 5] = [
        ("attributes", &["bounded", "clustered", "sized"]),
        ("conditionals", &["feature", "split", "undecided", "undecided"]),
        ("cpp", &["pack", "shapes", "constrained"]),
        ("macros", &["marked", "macro_marked"]),
        ("specifiers", &[]),
    ];
    for ((file, kernels), (expected_file, expected_kernels)) in names.iter().zip(expected) {
        assert_eq!(file, expected_file);
        assert_eq!(kernels, expected_kernels);
    }
}

#[test]
fn an_island_starts_at_the_template_header() {
    let text = "int a;\ntemplate <int N> __global__ void k(int* p) { p[N] = 0; }\nint b;\n";
    let masked = run(text);
    let island = mask::isolate(&masked, &mask::island(&masked, &masked.kernels[0]));
    assert_eq!(island.trim(), "template <int N> __global__ void k(int* p) { p[N] = 0; }");
}

#[test]
fn markers_stand_for_global() {
    let masked = mask::mask(
        FileId(0),
        "MY_KERNEL k(int* p) {}\nRAFT_KERNEL r(int* p) {}\nMY_KERNEL_ATTR void v(int* p) {}",
        &Defines::default(),
        &MaskOptions { kernel_macros: vec!["MY_KERNEL".into(), "MY_KERNEL_ATTR".into()] },
    );
    assert_eq!(
        masked.text,
        "void      k(int* p) {}\nvoid        r(int* p) {}\n__global__     void v(int* p) {}"
    );
    let markers: Vec<_> = masked.kernels.iter().map(|kernel| kernel.marker.as_deref()).collect();
    assert_eq!(markers, [Some("MY_KERNEL"), Some("RAFT_KERNEL"), Some("MY_KERNEL_ATTR")]);
    assert!(masked.kernels.iter().all(|kernel| kernel.offset < kernel.name_span.start));
}

#[test]
fn attributes_keep_their_arguments() {
    let kinds = |text: &str| run(text).attributes.into_iter().map(|found| found.kind).collect::<Vec<_>>();
    assert_eq!(kinds("struct __align__(4 * 4) V {};"), [AttributeKind::Align("4 * 4".into())]);
    assert_eq!(
        kinds("__global__ void __launch_bounds__(T < 4 ? 1 : 2, f(1, 2)) k() {}"),
        [AttributeKind::LaunchBounds(vec!["T < 4 ? 1 : 2".into(), "f(1, 2)".into()])]
    );
    assert_eq!(
        kinds("struct __attribute__((packed, aligned(8))) S {};"),
        [AttributeKind::Packed, AttributeKind::Align("8".into())]
    );
    assert_eq!(
        kinds("#define A(n) static __align__(n)\nA(8) int x;"),
        [AttributeKind::Align("8".into()), AttributeKind::Specifiers("static".into())]
    );
    assert_eq!(kinds("void f(float* MY_RESTRICT a);"), [AttributeKind::Restrict]);
    assert_eq!(
        kinds("#define SH __shared__\n__global__ void k() { SH float s[4]; }"),
        [AttributeKind::Specifiers("__shared__".into())]
    );
}

#[test]
fn loop_macros_are_recorded_even_where_they_would_parse() {
    let text = "__global__ void k(int* a, int n) {\n  CUDA_KERNEL_LOOP(i, n) { a[i] = 1; }\n}";
    let masked = run(text);
    assert!(masked.text.contains("while(1)"));
    let found = &masked.loop_macros[0];
    assert_eq!(found.name, "CUDA_KERNEL_LOOP");
    assert_eq!(found.args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>(), ["i", "n"]);
    assert_eq!(&text[found.args[1].span.start as usize..found.args[1].span.end as usize], "n");
    assert_eq!(found.kind, HeadKind::Loop);
    assert!(run("class A final { A(int x) { f(x); } };").loop_macros.is_empty());
    // `do { … } while (0)` ends in `while (…)` and opens nothing.
    let masked = run("#define TWICE(x) do { x; x; } while (0)\nvoid f() { TWICE(g());\n g(); }");
    assert!(masked.loop_macros.is_empty());
}

#[test]
fn statements_as_macro_arguments_become_branches() {
    let squeeze = |body: &str| squeezed(&format!("void f() {{ {body} }}"));
    // There is no room for `else`, so what an sm_90 build does not take goes.
    assert_eq!(squeeze("IF_TARGET(SM_80, (a(); b();), (c();));"), "void f() { if(1) {a(); b();} ; }");
    assert_eq!(squeeze("IF_TARGET(SM_80, (a();),    (c();));"), "void f() { if(1) {a();}else {c();} ; }");
    assert_eq!(squeeze("NV_IF_TARGET(NV_IS_HOST, (a();))"), "void f() { if(0) {a();} }");
    assert_eq!(squeeze("DISPATCH(t, ([&] { a(); }));"), "void f() { DISPATCH(t, ([&] { a(); })); }");
}

#[test]
fn an_unroll_macro_leaves_the_loop_to_the_outer_one() {
    let text =
        "void f() { for (int i = 0; i < 4; ++i)\n  LIB_UNROLL\n  for (int j = 0; j < 4; ++j) g(i, j); }";
    let masked = run(text);
    assert_eq!(masked.text, text.replace("LIB_UNROLL", "          "));
    assert!(masked.statement_macros.is_empty());
}

#[test]
fn values_and_types_are_never_blanked() {
    let body =
        "TILE * 2; REAL x = TILE; f(TILE, x); a[TILE] = MASK & x; REAL* p; for (;;) TILE; return TILE;";
    let text = format!("#define TILE 16\n#define REAL float\nint f() {{ {body} }}");
    assert!(run(&text).text.contains(body));
    let outer =
        "REAL f(REAL a, const REAL* b) { return a; } DATA_TYPE g(DATA_TYPE x, DATA_TYPE A[4]); ENUM_A::B c;";
    assert_eq!(run(outer).text, outer);
    let list = "enum E {\n  RED\n};\nint t[] = {\n  RED\n};\nint n = ONE +\n  TWO\n  + THREE;";
    assert_eq!(run(list).text, list);
}

#[test]
fn conditionals_follow_a_default_linux_build() {
    assert_eq!(squeezed("#ifdef _WIN32\nint a;\n#else\nint b;\n#endif"), "int b;");
    assert_eq!(
        squeezed("#if __CUDA_ARCH__ >= 700 && !defined(__HIPCC__)\nint a;\n#else\nint b;\n#endif"),
        "int a;"
    );
    assert_eq!(squeezed("#define V(a, b) ((a) * 10 + (b))\n#if V(1, 2) == 12\nint a;\n#endif"), "int a;");
    assert_eq!(
        squeezed("#if CUDART_VERSION < 12000\nint a;\n#elif 1\nint b;\n#else\nint c;\n#endif"),
        "int b;"
    );
    // Unknown: kept at file scope, undefined where there is an `#else` and inside bodies.
    assert_eq!(squeezed("#ifdef FEATURE\nint a;\n#endif"), "int a;");
    assert_eq!(squeezed("#ifdef FEATURE\nint a;\n#else\nint b;\n#endif"), "int b;");
    assert_eq!(squeezed("void f() {\n#ifdef FEATURE\nint a;\n#endif\n}"), "void f() { }");
    assert_eq!(squeezed("namespace n {\n#ifdef FEATURE\nint a;\n#endif\n}"), "namespace n { int a; }");
    // Half a function is not kept.
    assert_eq!(squeezed("#ifdef FEATURE\nvoid f() {\n#else\nvoid g() {\n#endif\n}"), "void g() { }");
    assert_eq!(squeezed("#ifdef FEATURE\nvoid f() {\n#endif\nint a;"), "int a;");
    assert_eq!(squeezed("#define N 1 // one\\\n\n#if N /* x */ == \\\n 1\nint a;\n#endif"), "int a;");
    assert_eq!(squeezed("#undef A\n#define A 1\n#undef A\n#ifdef A\nint a;\n#endif"), "");
}

#[test]
fn what_the_preprocessor_saw_is_reported() {
    let text = "#include \"a.h\"\n#include <b>\n#define N 4 // four\n#define F(x, ...) g(x, \\\n  __VA_ARGS__)\n\
                #undef N\n#ifdef X\n#define N 5\n#endif\n#if 0\n#define N 6\n#endif\n";
    let masked = run(text);
    let includes: Vec<_> = masked.includes.iter().map(|found| (found.path.as_str(), found.quoted)).collect();
    assert_eq!(includes, [("a.h", true), ("b", false)]);
    let macros: Vec<_> = masked
        .macros
        .iter()
        .map(|def| (def.name.as_str(), def.body.as_str(), def.undef, def.presence))
        .collect();
    assert_eq!(macros[0], ("N", "4", false, Presence::Live));
    assert_eq!(macros[1].1.split_whitespace().collect::<String>(), "g(x,__VA_ARGS__)");
    assert_eq!(masked.macros[1].params.as_deref(), Some(&["x".to_owned()][..]));
    assert!(masked.macros[1].variadic);
    assert_eq!(macros[2], ("N", "", true, Presence::Live));
    assert_eq!(macros[3], ("N", "5", false, Presence::Kept));
    assert_eq!(macros[4], ("N", "6", false, Presence::Dead));
}

#[test]
fn defines_from_outside_decide() {
    let mut defines = Defines::default();
    defines.define("FEATURE");
    defines.define("SIZE=4*2");
    defines.define("MIN(a,b)=((a)<(b)?(a):(b))");
    let text = "#if FEATURE && MIN(SIZE, 9) == 8\nint a;\n#else\nint b;\n#endif";
    let masked = mask::mask(FileId(0), text, &defines, &MaskOptions::default());
    assert_eq!(masked.text.trim(), "int a;");
    assert_eq!(masked.dead.len(), 1);
}

#[test]
fn undecided_conditions_keep_both_branches_only_where_they_are_whole() {
    let whole = run("#if F(1)\nint a;\n#else\nint b;\n#endif\n");
    assert!(whole.undecided[0].both && whole.text.contains("#if F(1)") && whole.text.contains("int b;"));
    assert_eq!(whole.undecided[0].branches.len(), 2);
    let half = run("#if F(1)\nvoid a() {\n#else\nvoid b() {\n#endif\n}\n");
    assert!(!half.undecided[0].both && !half.text.contains('#') && !half.text.contains("void b"));
}

#[test]
fn odd_bytes_keep_their_place() {
    for text in [
        "\u{feff}#pragma once\r\nint ä = 1; // ü\r\n",
        "__global__ void k() { const char* s = \"unclosed\n; }",
        "/* open",
        "R\"x(open",
        "#define",
        "#if (((",
        "#if 1 ? 2 :",
        "#else\n#endif\n#elif",
        "'",
        "\\",
        "__global__",
        "__global__ k(",
        "RAFT_KERNEL",
        "A(B(C(",
        "}}}}{{{{",
        "typename A<B<C",
        "\0\0int a;",
        "FOO\u{e9}(1)\nint x;",
    ] {
        run(text);
    }
}

/// A linear congruential generator (Knuth's MMIX constants): the same inputs on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

#[test]
fn mutated_fixtures_never_panic_and_keep_their_shape() {
    let mut random = Random(1);
    for (_, text) in fixtures() {
        for _ in 0..400 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..=random.below(4) {
                mutate(&mut bytes, &mut random);
            }
            run(&String::from_utf8_lossy(&bytes));
        }
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let from = random.below(bytes.len());
    let to = (from + random.below(40)).min(bytes.len());
    match random.below(5) {
        0 => drop(bytes.drain(from..to)),
        1 => {
            let copy = bytes[from..to].to_vec();
            let at = random.below(bytes.len());
            bytes.splice(at..at, copy);
        }
        2 => bytes.truncate(from),
        3 => {
            let odd = b"(){}[]<>#\\\"'\n\r/*;,:.=&\xff_A0";
            let byte = odd[random.below(odd.len())];
            bytes.insert(from, byte);
        }
        _ => bytes[from..to].reverse(),
    }
}

/// 128 KiB of what might be quadratic: 2^17 steps squared would take minutes in a debug build, which on a busy machine
/// must hold the bound too.
#[test]
fn odd_texts_take_linear_time() {
    let pieces = [
        "(",
        "{",
        "<",
        "#if X\n",
        "#if 1\n",
        "#ifdef A\n{\n",
        "__global__ ",
        "__global__ k() ",
        "typename A<",
        "A B ",
        "A::",
        "A<",
        "LOOP(a) {",
        "FOO(",
        "FOO ",
        "* A",
        "\"",
        "R\"(",
        "/*",
        "#define A A A\n",
        "#if F(A)\n#else\n",
        "static ",
        "f(int, ",
        "0x80000000, ",
        "\\\n",
        "} ",
        ") ",
        "#if A ? A : \\\n",
        "L([&]{ L(1) { ",
    ];
    for piece in pieces {
        let text = piece.repeat((1 << 17) / piece.len());
        let start = Instant::now();
        run(&text);
        assert!(start.elapsed() < Duration::from_secs(10), "{piece:?} took {:?}", start.elapsed());
    }
}
