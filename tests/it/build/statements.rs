use super::{body, body_of, expr, masked, same, show};

#[test]
fn literals() {
    same(expr("0x1Fu"), "31u");
    same(expr("0b101"), "5");
    same(expr("017"), "15");
    same(expr("1'000'000ull"), "1000000ul");
    // 2^31 does not fit an int: a decimal literal becomes long, a hexadecimal one unsigned.
    same(expr("2147483648"), "2147483648l");
    same(expr("0x80000000"), "2147483648u");
    same(expr("-1"), "Neg(1)");
    same(expr("1.5f"), "1.5f");
    same(expr("1e3"), "1000.0");
    same(expr("0x1p-3"), "0.125");
    same(expr("'a'"), "'97");
    same(expr("'\\n'"), "'10");
    same(expr("'\\x41'"), "'65");
    same(expr("\"text\""), "\"\"");
}

#[test]
fn operators() {
    same(expr("a + b * 2 - c"), "Sub(Add(a, Mul(b, 2)), c)");
    same(expr("!a && ~b || -c"), "Or(And(Not(a), BitNot(b)), Neg(c))");
    same(expr("*p++ = &x"), "Deref(PostInc(p)) = AddrOf(x)");
    same(expr("--i"), "PreDec(i)");
    same(expr("i <<= 2"), "i Shl= 2");
    same(expr("a ? b : c ? d : e"), "(a ? b : (c ? d : e))");
    same(expr("a, b, c"), "(a, b, c)");
    same(expr("a[i][j + 1]"), "a[i][Add(j, 1)]");
    same(expr("p->q.r"), "p->q.r");
    same(expr("((a))"), "a");
}

#[test]
fn calls_casts_and_types() {
    same(expr("f(a, b)"), "f(a, b)");
    same(expr("x.m<4>(a)"), "x.m<=4>(a)");
    same(expr("ns::f<T, N * 2, (N > 4)>(a)"), "ns::f<T, =Mul(N, 2), =Gt(N, 4)>(a)");
    same(expr("std::max<A<B, 3>>(a, b)"), "std::max<A<B, =3>>(a, b)");
    same(expr("(const float4 *)p"), "C<*const float4>(p)");
    same(expr("reinterpret_cast<float4 *>(p)[0].x"), "Reinterpret<*float4>(p)[0].x");
    same(expr("static_cast<unsigned long>(x)"), "Static<u64>(x)");
    same(expr("const_cast<T *>(x)"), "Const<*T>(x)");
    same(expr("float(x)"), "new:f32(x)");
    same(expr("Foo(x)"), "Foo(x)");
    same(expr("int()"), "new:i32()");
    same(expr("T{1, 2}"), "new:T{1, 2}");
    same(expr("sizeof(float) + sizeof(T) + sizeof(a[0])"), "Add(Add(sizeof<f32>, sizeof<T>), sizeof(a[0]))");
    same(expr("alignof(double)"), "alignof<f64>");
    same(expr("new float[n]"), "new f32[n]");
    same(expr("this->x"), "this->x");
}

#[test]
fn launches() {
    same(expr("k<<<g, b>>>(p, n)"), "k<<<g, b>>>(p, n)");
    same(expr("k<T, 16><<<g, dim3(16, 4), s, st>>>(p)"), "k<T, =16><<<g, dim3(16, 4), s, st>>>(p)");
    same(expr("ns::k<<<g, 1 << 5>>>()"), "ns::k<<<g, Shl(1, 5)>>>()");
    same(expr("(*fp)<<<g, b>>>(p)"), "Deref(fp)<<<g, b>>>(p)");
    same(expr("s.kernel<<<g, b>>>(p)"), "s.kernel<<<g, b>>>(p)");
}

#[test]
fn declarations() {
    same(body("int i = 0, *p = q, a[4];"), "i: i32 = 0 / p: *i32 = q / a: [4]i32");
    same(body("__shared__ float t[32][33], u;"), "shared t: [32][33]f32 / shared u: f32");
    same(body("extern __shared__ float s[];"), "extern shared s: []f32");
    same(body("const float *__restrict__ p = q;"), "p: *restrict const f32 = q");
    same(body("float *const p = q;"), "const p: *f32 = q");
    same(body("static constexpr int N = 4;"), "static constexpr N: i32 = 4");
    same(body("auto &r = a[0];"), "r: &auto = a[0]");
    same(body("float4 v = {1, 2};"), "v: float4 = {1, 2}");
    same(body("float v[2]{1, 2};"), "v: [2]f32{1, 2}");
    same(body("S s = {.x = 1};"), "s: S = {.x=1}");
    same(body("unsigned long long n;"), "n: u64");
    same(body("typename A<T>::B b;"), "b: A<T>::B");
    same(body("alignas(16) float x[4];"), "align(16) x: [4]f32");
    same(body("volatile __shared__ int s;"), "shared volatile s: i32");
    same(
        body("auto [x, y] = pair();"),
        "[x, y]: auto = pair() / x: &auto = [x, y].[0] / y: &auto = [x, y].[1]",
    );
    same(body("decltype(x) y = x;"), "y: decltype(x) = x");
}

#[test]
fn what_the_grammar_takes_for_a_function() {
    same(body("dim3 b(BX, BY);"), "b: dim3(BX, BY)");
    same(body("dim3 g((n + 1) / 2), h(n);"), "g: dim3(Div(Add(n, 1), 2)) / h: dim3(n)");
    same(body("dim3 g(ceil(n), 1);"), "g: dim3(ceil(n), 1)");
    same(body("T x(n * m);"), "x: T(Mul(n, m))");
    same(body("Foo s(p, a::q);"), "s: Foo(p, a::q)");
}

#[test]
fn what_the_grammar_takes_for_an_element_of_a_call() {
    same(body("float (*m)[16] = q;"), "m: *[16]f32 = q");
    same(body("float (&r)[4] = q;"), "r: &[4]f32 = q");
    same(body("T x; T (*m)[8][16] = q;"), "x: T; m: *[8][16]T = q");
    // No type: a call.
    same(body("f(&x)[3] = 1;"), "f(AddrOf(x))[3] = 1");
}

#[test]
fn what_the_grammar_takes_for_a_template() {
    same(body("if (x < n && y > (m)) a = 1;"), "if (And(Lt(x, n), Gt(y, m))) a = 1");
    same(
        body("while (i < n / 2 && j > (k + 1)) i++;"),
        "while (And(Lt(i, Div(n, 2)), Gt(j, Add(k, 1)))) PostInc(i)",
    );
    same(body("if (x < n >> 1) a = 1;"), "if (Lt(x, Shr(n, 1))) a = 1");
    same(
        body("if (p->x < n / 2 >> 3 >> k && y) a = 1;"),
        "if (And(Lt(p->x, Shr(Shr(Div(n, 2), 3), k)), y)) a = 1",
    );
    same(body("a = x + 1<n.y>>(k + 1) ? 2 : 3;"), "a = (Lt(Add(x, 1), Shr(n.y, Add(k, 1))) ? 2 : 3)");
    same(
        body("if (x < n && y > -1 + k && z) a = 1;"),
        "if (And(And(Lt(x, n), Gt(y, Add(Neg(1), k))), z)) a = 1",
    );
    same(
        body("a = (x >= 0 && x < n && y >= 0 && y < m) ? 2 : 3;"),
        "a = (And(And(And(Ge(x, 0), Lt(x, n)), Ge(y, 0)), Lt(y, m)) ? 2 : 3)",
    );
    same(
        body("for (; k < size<2>(t) - 1; ++k) a = 1;"),
        "for (; Lt(k, Sub(size<=2>(t), 1)); PreInc(k)) a = 1",
    );
    same(
        body("if (k < size<2>(t) && j + 1 < 5 * size<1>(t)) a = 1;"),
        "if (And(Lt(k, size<=2>(t)), Lt(Add(j, 1), Mul(5, size<=1>(t))))) a = 1",
    );
    // A template: the operator stands apart from its arguments.
    same(body("if (is_wide<T> > 1) a = 1;"), "if (Gt(is_wide<T>, 1)) a = 1");
}

#[test]
fn loop_macros() {
    same(body("KERNEL_LOOP(i, n) { a[i] = 1; }"), "loop KERNEL_LOOP(i, n) {a[i] = 1}");
    same(body("LOOP(i, n + 1) { a[i] = 1; }"), "loop LOOP(i, Add(n, 1)) {a[i] = 1}");
    let text = "__global__ void k() { CUDA_KERNEL_LOOP(i, n + 1) { a[i] = 1; } b(); }";
    let spelt: Vec<_> = body_of(&masked(text)).iter().map(show::stmt).collect();
    assert_eq!(spelt, ["loop CUDA_KERNEL_LOOP(i, Add(n, 1)) {a[i] = 1}", "b()"]);
}

#[test]
fn statement_macros() {
    same(body("SYNC; f();"), "macro SYNC; f()");
    let text = "__global__ void k() {\n  f();\n  CHECK(a, b + 1)\n  g();\n  if (x) {\n    CHECK(c)\n  }\n}";
    let spelt: Vec<_> = body_of(&masked(text)).iter().map(show::stmt).collect();
    assert_eq!(spelt, ["f()", "macro CHECK(a|b + 1)", "g()", "if (x) {macro CHECK(c)}"]);
}

#[test]
fn control_flow() {
    same(body("if (a) b(); else if (c) d(); else e();"), "if (a) b() else if (c) d() else e()");
    same(body("if constexpr (N > 4) return;"), "if constexpr (Gt(N, 4)) return ");
    same(body("if (int x = f(); x > 1) g();"), "if (x: i32 = f(); Gt(x, 1)) g()");
    same(body("if (int x = f()) g();"), "if (x: i32 = f(); x) g()");
    same(body("for (int i = 0; i < n; ++i) a(i);"), "for (i: i32 = 0; Lt(i, n); PreInc(i)) a(i)");
    same(body("for (;;) { break; }"), "for (; ; ) {break}");
    same(
        body("for (i = 0, j = 1; i < n; i++, j--) continue;"),
        "for ((i = 0, j = 1); Lt(i, n); (PostInc(i), PostDec(j))) continue",
    );
    same(body("for (auto &x : xs) f(x);"), "for (x: &auto : xs) f(x)");
    same(body("do { i--; } while (i > 0);"), "do {PostDec(i)} while (Gt(i, 0))");
    same(
        body("switch (n) { case 1: i = 2; break; case 2: { f(); } default: g(); }"),
        "switch (n) 1 => {i = 2; break}, 2 => {{f()}}, _ => {g()}",
    );
    same(body("goto end; end: f();"), "jump; jump; f()");
    same(body("try { f(); } catch (int e) { g(); }"), "{f()}");
    same(body("throw 1;"), "return ");
    same(body(";"), "empty");
}

#[test]
fn preprocessor_branches() {
    same(body("\n#ifdef A\nf();\n#else\ng();\n#endif\nh();"), "#if {f()} #else {g()}; h()");
    same(body("\n#ifdef A\nf();\n#endif\n"), "#if {f()} #else {}");
    same(body("\n#if 0\nf();\n#else\ng();\n#endif\n"), "g()");
    same(body("\n#pragma unroll\nfor (;;) f();"), "for (; ; ) f()");
}

#[test]
fn assembly() {
    same(
        body(r#"asm volatile("ld.global.f32 %0, [%1];\n" "x" : "=f"(u) : "l"(in + i) : "memory");"#),
        r#"asm "ld.global.f32 %0, [%1];\nx" : =f u : l Add(in, i)"#,
    );
    same(body(r#"asm("bar.sync 0;");"#), r#"asm "bar.sync 0;" :  : "#);
}

#[test]
fn lambdas() {
    same(body("auto f = [=] __device__ (int i) { return i; };"), "f: auto = lambda device(i: i32){return i}");
    same(body("auto f = [&](int i) { a[i] = 1; };"), "f: auto = lambda&(i: i32){a[i] = 1}");
    same(body("auto f = [] { return 1; };"), "f: auto = lambda(){return 1}");
}

#[test]
fn local_types() {
    same(body("using V = float4; typedef int I, *P;"), "alias V = float4; alias I = i32; alias P = *i32");
    same(body("struct S { int a; }; S s;"), "struct S {a: i32}; s: S");
    same(body("enum { A = 1, B };"), "enum ");
    same(
        body("__shared__ union { float f; int i; } u;"),
        "struct union <anonymous 0:33> {f: f32, i: i32}; shared u: <anonymous 0:33>",
    );
    same(body("namespace cg = cooperative_groups;"), "alias cg = cooperative_groups");
}

#[test]
fn an_error_costs_one_statement() {
    same(body("a = 1; b = = 2; c = 3;"), "a = 1; ?syntax error; c = 3");
    same(body("if (a) { b = = 2; c = 3; }"), "if (a) {?syntax error; c = 3}");
}
