use cudalint::ir::ast::*;
use cudalint::source::{FileId, Span};
use cudalint::syntax::build;

use super::{masked, raw, same, show};

fn function(text: &str) -> FunctionDef {
    let unit = raw(text);
    assert!(unit.gaps.is_empty(), "{:?}", unit.gaps);
    unit.functions.last().expect("a function").as_ref().clone()
}

fn spelt(all: &[VarDecl]) -> String {
    all.iter().map(show::variable).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_kernel() {
    let text = "template <typename T, int N = 4, class... R>\n\
                static __global__ void __launch_bounds__(256, N) k(const T *__restrict__ in, float a[], int n = 3) { f(); }";
    let k = function(text);
    assert_eq!((k.name.as_str(), k.qualifiers.kernel, k.qualifiers.is_static), ("k", true, true));
    assert_eq!(&text[k.name_span.start as usize..k.name_span.end as usize], "k");
    let body = k.body_span.expect("a body");
    assert_eq!(&text[body.start as usize..body.end as usize], " f(); ");
    same(show::list(&k.launch_bounds), "256, N");
    same(spelt(&k.params), "in: *restrict const T, a: []f32, n: i32 = 3");
    assert!(k.params[0].storage.restrict);
    let names: Vec<_> = k.template.iter().map(|p| (p.name.as_str(), p.is_pack)).collect();
    assert_eq!(names, [("T", false), ("N", false), ("R", true)]);
    assert!(matches!(&k.template[1].kind, TemplateParamKind::Value { default: Some(_), .. }));
}

#[test]
fn masked_attributes() {
    let unit = masked(
        "struct __align__(16) V { float x; };\n\
         __global__ void __launch_bounds__(128) k(float *a) {\n  __shared__ __align__(8) char s[64];\n}\n\
         RAFT_KERNEL r(float *a) { a[0] = 1; }\n",
    );
    same(show::expr(unit.structs[0].align.as_ref().expect("an alignment")), "16");
    let k = &unit.functions[0];
    same(show::list(&k.launch_bounds), "128");
    same(show::block(k.body.as_deref().unwrap_or(&[])), "{shared align(8) s: [64]i8}");
    assert!(unit.functions[1].qualifiers.kernel);
}

#[test]
fn functions() {
    assert_eq!(function("__device__ float *f() { return 0; }").ret, function("float *g();").ret);
    same(show::ty(&function("auto f(int i) -> const float * { return 0; }").ret), "*const f32");
    assert!(function("int f(void);").params.is_empty());
    assert!(function("extern \"C\" __global__ void k(int) {}").qualifiers.kernel);
    same(spelt(&function("void f(float (&m)[4], void (*g)(int));").params), "m: &[4]f32, g: ?function type");
    let f = function("namespace a::b { namespace c { int f() { return 1; } } }");
    assert_eq!(f.scope.iter().map(|n| n.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(f.class, None);
}

#[test]
fn methods() {
    let unit = raw("struct S {\n  int a : 3; float b[2] = {1, 2};\n  static constexpr int N = 4;\n\
                    union { int x; float y; };\n  S(int q) : a(q), b{1, 2} {}\n\
                    __device__ float operator()(int i) const { return b[i]; }\n  float operator [] (int i);\n\
                    struct In { int z; };\n  using value_type = float;\n  enum { A, B };\n\
                    template <int M> int get() { return M; }\n};\nint S::f(int i) { return i; }\n");
    assert!(unit.gaps.is_empty(), "{:?}", unit.gaps);
    let s = &unit.structs[0];
    assert_eq!(s.fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["a", "b", ""]);
    same(spelt(&s.constants), "static constexpr N: i32 = 4");
    let names: Vec<_> = s.methods.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["S", "operator()", "operator[]", "get"]);
    assert_eq!(s.methods[0].initializers.len(), 2);
    assert!(s.methods[1].qualifiers.is_const && s.methods[1].qualifiers.device);
    assert_eq!(s.structs.len(), 2);
    assert!(s.structs[0].is_union);
    assert_eq!((s.aliases.len(), s.enums.len()), (1, 1));
    let f = unit.functions.last().expect("f");
    assert_eq!(f.class.map(|n| n.as_str()), Some("S"));
    // Methods with a body are functions of the unit too.
    assert!(unit.functions.iter().any(|m| m.name.as_str() == "operator()" && m.class.is_some()));
}

#[test]
fn operators_outside_of_a_class() {
    let f =
        function("template <class T> struct S;\ntemplate <class T> T S<T>::operator()(int i) { return i; }");
    assert_eq!((f.name.as_str(), f.class.map(|n| n.as_str())), ("operator()", Some("S")));
}

#[test]
fn types_at_file_scope() {
    let unit = raw("typedef struct { float x, y; } P;\ntypedef struct Q { int a; } *QP;\n\
                    enum class E : int { A, B = 3 };\nusing V = float;\ntemplate <class T> using W = S<T>;\n\
                    __constant__ float c[16];\n__device__ int d = 3;\nextern __shared__ float s[];\n");
    assert!(unit.gaps.is_empty(), "{:?}", unit.gaps);
    let structs: Vec<_> = unit.structs.iter().map(|s| show::fields(s)).collect();
    assert_eq!(structs, ["P {x: f32, y: f32}", "Q {a: i32}"]);
    let aliases: Vec<_> = unit.aliases.iter().map(|a| format!("{}={}", a.name, show::ty(&a.ty))).collect();
    assert_eq!(aliases, ["QP=*Q", "V=f32", "W=S<T>"]);
    assert!(unit.enums[0].scoped && unit.enums[0].items.len() == 2);
    same(spelt(&unit.globals), "constant c: [16]f32, device d: i32 = 3, extern shared s: []f32");
}

#[test]
fn specialisations_and_instantiations() {
    let unit =
        raw("template <> __global__ void k<float>(float *p) {}\ntemplate <> struct S<int> { int a; };\n\
                    template __global__ void k<float, 4>(float *);\n");
    assert_eq!(unit.functions[0].specialization.as_ref().map(Vec::len), Some(1));
    assert_eq!(unit.structs[0].specialization.as_ref().map(Vec::len), Some(1));
    same(show::path(&unit.instantiations[0].function), "k<f32, =4>");
    assert_eq!(unit.instantiations[0].params.len(), 1);
}

#[test]
fn both_branches_at_file_scope() {
    let unit = raw("#ifdef A\nint f() { return 1; }\n#else\nint g() { return 2; }\n#endif\n");
    let names: Vec<_> = unit.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["f", "g"]);
}

#[test]
fn snippets() {
    let at = Span::new(FileId(7), 40, 44);
    let expr = build::parse_expr("a + f(b)", at).expect("an expression");
    assert_eq!(expr.span, at);
    for bad in ["a +", "a; b", "}", "int x", "", "a } void g() { return b"] {
        assert!(build::parse_expr(bad, at).is_none(), "{bad}");
    }
    let statements = build::parse_stmts("int i = 0; i++", at).expect("statements");
    same(show::block(&statements), "{i: i32 = 0; PostInc(i)}");
    assert!(build::parse_stmts("f(", at).is_none());
    same(show::ty(&build::parse_type("const float4 *", at).expect("a type")), "*const float4");
    assert!(build::parse_type("3 +", at).is_none());
}
