//! What a slice gets instead of host headers.

use rustc_hash::FxHashSet;

use super::super::tensor;

/// Namespaces that `using namespace` may name though the project does not define them.
pub const NAMESPACES: [&str; 5] = ["std", "cooperative_groups", "nvcuda", "cuda", "cub"];

/// Namespaces in `std` that only host code has.
pub const HOST_NAMESPACES: [&str; 5] =
    ["chrono", "filesystem", "literals", "chrono_literals", "placeholders"];

/// Whether an `#include <path>` stays where it is: NVRTC can compile the header (with CUDA's include folder), and the
/// prelude, where what is used decides, has not taken it up.
pub fn is_device_header(path: &str, prelude: &str) -> bool {
    const HEADERS: [&str; 9] = [
        "cuda_fp8.h",
        "cuda_fp6.h",
        "cuda_fp4.h",
        "cuda_pipeline.h",
        "cuda_pipeline_primitives.h",
        "cuda_awbarrier.h",
        "cuda_awbarrier_primitives.h",
        "cuComplex.h",
        "math_constants.h",
    ];
    let group = path.starts_with("cooperative_groups/") && prelude.contains("<cooperative_groups.h>");
    let random = path == "curand_kernel.h" && prelude.contains("curand");
    let library = path.starts_with("cuda/") || path.starts_with("cub/") && path != "cub/cub.cuh";
    HEADERS.contains(&path) || group || random || library
}

type IsUse = fn(&str) -> bool;

/// Headers by what their use looks like. They cost compile time, so only what is used is included.
const USED_HEADERS: [(&str, IsUse); 6] = [
    ("cuda_fp16.h", |word| word.contains("half") || word.starts_with("__h")),
    ("cuda_bf16.h", |word| word.contains("bf16") || word.contains("bfloat16")),
    ("cooperative_groups.h", |word| GROUPS.contains(&word)),
    ("mma.h", |word| word == "nvcuda" || word == "wmma"),
    ("curand_kernel.h", |word| word.starts_with("curand")),
    ("cuComplex.h", |word| word.starts_with("cuComplex") || word.starts_with("cuDoubleComplex")),
];

/// What of cooperative groups needs the header, which takes NVRTC a second or two; the group of a block and its tiles do without:
/// [`BLOCK`], [`TILES`].
const GROUPS: [&str; 24] = [
    "async_copy",
    "barrier_arrive",
    "barrier_wait",
    "binary_partition",
    "block_tile_memory",
    "cluster_group",
    "coalesced_group",
    "coalesced_threads",
    "exclusive_scan",
    "experimental",
    "grid_group",
    "inclusive_scan",
    "invoke_one",
    "invoke_one_broadcast",
    "labeled_partition",
    "memcpy_async",
    "multi_grid_group",
    "this_cluster",
    "this_grid",
    "this_multi_grid",
    "this_thread",
    "thread_group",
    "wait_prior",
    "wait",
];

/// The group of a block, as `<cooperative_groups.h>` has it.
const BLOCK: &str = "namespace cooperative_groups {
struct thread_block {
    static __device__ void sync() { __syncthreads(); }
    static __device__ dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    static __device__ dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    static __device__ dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    static __device__ dim3 dim_threads() { return group_dim(); }
    static __device__ unsigned int thread_rank() {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
    static __device__ unsigned int num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    static __device__ unsigned int size() { return num_threads(); }
};
inline __device__ thread_block this_thread_block() { return thread_block(); }
inline __device__ void sync(const thread_block&) { __syncthreads(); }
}
";

/// Tiles of up to a warp, without the header's tiles of several warps.
const TILES: &str = "namespace cooperative_groups {
template <unsigned int N, class Parent = thread_block> struct thread_block_tile {
    static_assert(N <= 32, \"a tile of several warps\");
    __device__ thread_block_tile() {}
    template <class Other> __device__ thread_block_tile(const thread_block_tile<N, Other>&) {}
    static __device__ constexpr unsigned int size() { return N; }
    static __device__ constexpr unsigned int num_threads() { return N; }
    static __device__ unsigned int thread_rank() { return thread_block::thread_rank() % N; }
    static __device__ unsigned int meta_group_rank() { return Parent::thread_rank() / N; }
    static __device__ unsigned int meta_group_size() { return (Parent::size() + N - 1) / N; }
    static __device__ unsigned int mask() {
        unsigned int lane;
        asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(lane));
        return (0xffffffffu >> (32 - N)) << (lane & ~(N - 1));
    }
    static __device__ void sync() { __syncwarp(mask()); }
    template <class T> static __device__ T shfl(T v, int from) { return __shfl_sync(mask(), v, from, N); }
    template <class T> static __device__ T shfl_down(T v, unsigned int by) { return __shfl_down_sync(mask(), v, by, N); }
    template <class T> static __device__ T shfl_up(T v, unsigned int by) { return __shfl_up_sync(mask(), v, by, N); }
    template <class T> static __device__ T shfl_xor(T v, unsigned int by) { return __shfl_xor_sync(mask(), v, by, N); }
    static __device__ int any(int v) { return __any_sync(mask(), v); }
    static __device__ int all(int v) { return __all_sync(mask(), v); }
    static __device__ unsigned int ballot(int v) { return (__ballot_sync(mask(), v) & mask()) >> (__ffs(mask()) - 1); }
};
template <unsigned int N, class Parent> __device__ thread_block_tile<N, Parent> tiled_partition(const Parent&) {
    return thread_block_tile<N, Parent>();
}
template <unsigned int N, class Parent> __device__ void sync(const thread_block_tile<N, Parent>& tile) { tile.sync(); }
template <class T> struct plus { __device__ T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { __device__ T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { __device__ T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { __device__ T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { __device__ T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { __device__ T operator()(T a, T b) const { return a ^ b; } };
template <class Tile, class T, class Op> __device__ T reduce(const Tile& tile, T value, Op op) {
    for (unsigned int by = Tile::size() / 2; by > 0; by /= 2) value = op(value, tile.shfl_xor(value, by));
    return value;
}
}
";

/// The header of a CUB block or warp primitive: `BlockRadixSort` is in `cub/block/block_radix_sort.cuh`. NVRTC takes these,
/// `cub/cub.cuh` it refuses.
fn cub_header(word: &str) -> Option<String> {
    const PRIMITIVES: [&str; 17] = [
        "BlockAdjacentDifference",
        "BlockDiscontinuity",
        "BlockExchange",
        "BlockHistogram",
        "BlockLoad",
        "BlockMergeSort",
        "BlockRadixSort",
        "BlockReduce",
        "BlockScan",
        "BlockShuffle",
        "BlockStore",
        "WarpExchange",
        "WarpLoad",
        "WarpMergeSort",
        "WarpReduce",
        "WarpScan",
        "WarpStore",
    ];
    if !PRIMITIVES.contains(&word) {
        return None;
    }
    let mut snake = String::new();
    for c in word.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    let folder = snake.split('_').next().unwrap_or_default().to_owned();
    Some(format!("cub/{folder}/{snake}.cuh"))
}

/// Warp intrinsics from before `sm_70`, which compilers for later devices do not have; the lanes that are there take part.
const OLD_INTRINSICS: [&str; 7] =
    ["__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__any", "__all", "__ballot"];

/// Thrust's and PyTorch's complex numbers: as aligned as CUDA's own, but copied as a whole, which is one access.
const COMPLEX: &str = "template <class T> struct alignas(2 * sizeof(T)) complex {
    typedef T value_type;
    T re, im;
    __device__ constexpr complex(T re = T(), T im = T()) : re(re), im(im) {}
    __device__ constexpr complex(cuda::std::complex<T> z) : re(z.real()), im(z.imag()) {}
    template <class U> __device__ explicit constexpr complex(complex<U> z) : re(z.re), im(z.im) {}
    __device__ constexpr T real() const { return re; }
    __device__ constexpr T imag() const { return im; }
    __device__ void real(T x) { re = x; }
    __device__ void imag(T x) { im = x; }
    __device__ cuda::std::complex<T> plain() const { return cuda::std::complex<T>(re, im); }
    __device__ complex operator-() const { return complex(-re, -im); }
    friend __device__ complex operator+(complex a, complex b) { return complex(a.re + b.re, a.im + b.im); }
    friend __device__ complex operator-(complex a, complex b) { return complex(a.re - b.re, a.im - b.im); }
    friend __device__ complex operator*(complex a, complex b) { return a.plain() * b.plain(); }
    friend __device__ complex operator/(complex a, complex b) { return a.plain() / b.plain(); }
    friend __device__ bool operator==(complex a, complex b) { return a.re == b.re && a.im == b.im; }
    friend __device__ bool operator!=(complex a, complex b) { return !(a == b); }
    __device__ complex& operator+=(complex b) { return *this = *this + b; }
    __device__ complex& operator-=(complex b) { return *this = *this - b; }
    __device__ complex& operator*=(complex b) { return *this = *this * b; }
    __device__ complex& operator/=(complex b) { return *this = *this / b; }
};
";

/// Functions of a complex number that give a real one, and that give another.
const PARTS: [&str; 3] = ["abs", "arg", "norm"];
const FUNCTIONS: [&str; 10] = ["conj", "cos", "cosh", "exp", "log", "proj", "sin", "sinh", "sqrt", "tanh"];

/// Functions of `<cmath>` that NVRTC has in the global namespace only.
const MATH: [&str; 46] = [
    "abs",
    "nearbyint",
    "rint",
    "lrint",
    "trunc",
    "signbit",
    "ldexp",
    "lgamma",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "hypot",
    "isinf",
    "isnan",
    "isfinite",
    "log",
    "log10",
    "log1p",
    "log2",
    "pow",
    "round",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
];

/// Headers, types, limits and the pieces of `std` that device code uses, as far as `uses` names them.
pub fn text(uses: &FxHashSet<&str>) -> String {
    let mut out = String::from(BASE);
    for (header, is_used) in USED_HEADERS {
        // `__half`-like prefixes catch `__host__` too.
        if uses.iter().any(|word| *word != "__host__" && is_used(word)) {
            out.push_str(&format!("#include <{header}>\n"));
        }
    }
    if uses.contains("cooperative_groups") && !out.contains("<cooperative_groups.h>") {
        out.push_str(BLOCK);
        if uses.contains("tiled_partition") || uses.contains("thread_block_tile") {
            out.push_str(TILES);
        }
    }
    if uses.contains("cub") {
        let mut headers: Vec<String> = uses.iter().filter_map(|word| cub_header(word)).collect();
        headers.sort();
        headers.iter().for_each(|header| out.push_str(&format!("#include <{header}>\n")));
    }
    // The headers of the two others are none that NVRTC takes.
    let others: Vec<&str> =
        ["thrust", "c10"].into_iter().filter(|namespace| uses.contains(namespace)).collect();
    if uses.contains("complex") && (uses.contains("cuda") || !others.is_empty()) {
        out.push_str("#include <cuda/std/complex>\n");
        for namespace in others {
            out.push_str(&format!("namespace {namespace} {{\n{COMPLEX}"));
            for (names, result) in [(&PARTS[..], "T"), (&FUNCTIONS[..], "complex<T>")] {
                for name in names.iter().filter(|name| uses.contains(*name)) {
                    out.push_str(&format!(
                        "template <class T> __device__ {result} {name}(complex<T> z) {{ return cuda::std::{name}(z.plain()); }}\n"
                    ));
                }
            }
            out.push_str("}\n");
        }
    }
    for namespace in NAMESPACES {
        out.push_str(&format!("namespace {namespace} {{}}\n"));
    }
    for (name, value) in VALUES {
        if uses.contains(name) {
            out.push_str(&format!("#ifndef {name}\n#define {name} {value}\n#endif\n"));
        }
    }
    for name in OLD_INTRINSICS.iter().filter(|name| uses.contains(*name)) {
        out.push_str(&format!("#define {name}(...) {name}_sync(__activemask(), __VA_ARGS__)\n"));
    }
    if uses.contains("register") {
        out.push_str("#define register\n");
    }
    if uses.iter().any(|word| tensor::index_bytes(word).is_some()) {
        out.push_str(tensor::HEADER);
    }
    if uses.contains("numeric_limits") {
        out.push_str(LIMITS);
    }
    if uses.contains("std") {
        out.push_str(STD);
        let math: Vec<String> =
            MATH.iter().filter(|name| uses.contains(*name)).map(|name| format!("using ::{name}; ")).collect();
        out.push_str(&format!("namespace std {{ {}}}\n", math.concat()));
    }
    out
}

const BASE: &str = "\
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;
typedef unsigned long ulong;
#ifndef assert
#define assert(x) ((void)0)
#endif
";

const VALUES: [(&str, &str); 43] = [
    ("CHAR_BIT", "8"),
    ("CHAR_MIN", "(-128)"),
    ("CHAR_MAX", "127"),
    ("UCHAR_MAX", "255"),
    ("SHRT_MIN", "(-32768)"),
    ("SHRT_MAX", "32767"),
    ("USHRT_MAX", "65535"),
    ("INT_MAX", "2147483647"),
    ("INT_MIN", "(-2147483647 - 1)"),
    ("UINT_MAX", "4294967295u"),
    ("LONG_MAX", "9223372036854775807l"),
    ("LLONG_MAX", "9223372036854775807ll"),
    ("ULLONG_MAX", "18446744073709551615ull"),
    ("INT32_MAX", "2147483647"),
    ("INT32_MIN", "(-2147483647 - 1)"),
    ("UINT32_MAX", "4294967295u"),
    ("INT64_MAX", "9223372036854775807ll"),
    ("UINT64_MAX", "18446744073709551615ull"),
    ("SIZE_MAX", "18446744073709551615ull"),
    ("UINT8_MAX", "255"),
    ("UINT16_MAX", "65535"),
    ("FLT_MAX", "3.402823466e+38f"),
    ("FLT_MIN", "1.175494351e-38f"),
    ("FLT_EPSILON", "1.192092896e-07f"),
    ("DBL_MAX", "1.7976931348623158e+308"),
    ("DBL_MIN", "2.2250738585072014e-308"),
    ("DBL_EPSILON", "2.2204460492503131e-016"),
    ("INFINITY", "__builtin_bit_cast(float, 0x7f800000)"),
    ("HUGE_VALF", "__builtin_bit_cast(float, 0x7f800000)"),
    ("HUGE_VAL", "__builtin_bit_cast(double, 0x7ff0000000000000ll)"),
    ("NAN", "__builtin_bit_cast(float, 0x7fc00000)"),
    ("M_PI", "3.14159265358979323846"),
    ("M_SQRT2", "1.41421356237309504880"),
    ("M_SQRT1_2", "0.70710678118654752440"),
    ("M_E", "2.7182818284590452354"),
    ("M_LOG2E", "1.4426950408889634074"),
    ("M_LOG10E", "0.43429448190325182765"),
    ("M_LN2", "0.69314718055994530942"),
    ("M_LN10", "2.30258509299404568402"),
    ("M_PI_2", "1.57079632679489661923"),
    ("M_PI_4", "0.78539816339744830962"),
    ("M_1_PI", "0.31830988618379067154"),
    ("M_2_SQRTPI", "1.12837916709551257390"),
];

const LIMITS: &str = "\
namespace std {
template <class T> struct numeric_limits;
#define CUDALINT_LIMITS(T, LOWEST, SMALLEST, LARGEST, INF)                              \\
  template <> struct numeric_limits<T> {                                                \\
    static constexpr bool is_specialized = true;                                        \\
    __host__ __device__ static constexpr T lowest() { return LOWEST; }                  \\
    __host__ __device__ static constexpr T min() { return SMALLEST; }                   \\
    __host__ __device__ static constexpr T max() { return LARGEST; }                    \\
    __host__ __device__ static constexpr T infinity() { return INF; }                   \\
  };
CUDALINT_LIMITS(float, -3.402823466e+38f, 1.175494351e-38f, 3.402823466e+38f, __builtin_bit_cast(float, 0x7f800000))
CUDALINT_LIMITS(double, -1.7976931348623158e+308, 2.2250738585072014e-308, 1.7976931348623158e+308, __builtin_bit_cast(double, 0x7ff0000000000000ll))
CUDALINT_LIMITS(signed char, -128, -128, 127, 0)
CUDALINT_LIMITS(unsigned char, 0, 0, 255, 0)
CUDALINT_LIMITS(short, -32768, -32768, 32767, 0)
CUDALINT_LIMITS(unsigned short, 0, 0, 65535, 0)
CUDALINT_LIMITS(int, -2147483647 - 1, -2147483647 - 1, 2147483647, 0)
CUDALINT_LIMITS(unsigned int, 0, 0, 4294967295u, 0)
CUDALINT_LIMITS(long, -9223372036854775807l - 1, -9223372036854775807l - 1, 9223372036854775807l, 0)
CUDALINT_LIMITS(unsigned long, 0, 0, 18446744073709551615ul, 0)
CUDALINT_LIMITS(long long, -9223372036854775807ll - 1, -9223372036854775807ll - 1, 9223372036854775807ll, 0)
CUDALINT_LIMITS(unsigned long long, 0, 0, 18446744073709551615ull, 0)
}
";

const STD: &str = "\
namespace std {
using ::size_t;
typedef ::int8_t int8_t; typedef ::int16_t int16_t; typedef ::int32_t int32_t; typedef ::int64_t int64_t;
typedef ::uint8_t uint8_t; typedef ::uint16_t uint16_t; typedef ::uint32_t uint32_t; typedef ::uint64_t uint64_t;
template <class T, T V> struct integral_constant { static constexpr T value = V; typedef T value_type;
  __host__ __device__ constexpr operator T() const { return V; } };
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <bool B> using bool_constant = integral_constant<bool, B>;
template <class A, class B> struct is_same : false_type {};
template <class A> struct is_same<A, A> : true_type {};
template <class A, class B> constexpr bool is_same_v = is_same<A, B>::value;
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F> struct conditional { typedef T type; };
template <class T, class F> struct conditional<false, T, F> { typedef F type; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class T> struct remove_const { typedef T type; };
template <class T> struct remove_const<const T> { typedef T type; };
template <class T> struct remove_reference { typedef T type; };
template <class T> struct remove_reference<T&> { typedef T type; };
template <class T> struct remove_reference<T&&> { typedef T type; };
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> struct remove_cv { typedef typename remove_const<T>::type type; };
template <class T> struct is_pointer : false_type {};
template <class T> struct is_pointer<T*> : true_type {};
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> using decay_t = remove_cv_t<remove_reference_t<T>>;
template <class T> struct decay { typedef decay_t<T> type; };
template <class T> T&& declval() noexcept;
template <class A, class B> struct common_type { typedef decay_t<decltype(true ? declval<A>() : declval<B>())> type; };
template <class A, class B> using common_type_t = typename common_type<A, B>::type;
template <class T> struct is_floating_point : bool_constant<is_same_v<remove_cv_t<T>, float> || is_same_v<remove_cv_t<T>, double>> {};
template <class T> constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T> struct is_integral : bool_constant<T(1) / T(2) == T(0)> {};
template <class T> constexpr bool is_integral_v = is_integral<T>::value;
template <class T> struct is_signed : bool_constant<(T(-1) < T(0))> {};
template <class T> struct is_unsigned : bool_constant<!(T(-1) < T(0))> {};
template <class T> __host__ __device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> __host__ __device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> __device__ void swap(T& a, T& b) { T c = a; a = b; b = c; }
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_used_is_there() {
        let uses = FxHashSet::from_iter(["cub", "BlockRadixSort", "__shfl_xor", "std", "sqrt", "FLT_MAX"]);
        let text = text(&uses);
        for part in [
            "#include <cub/block/block_radix_sort.cuh>",
            "#define __shfl_xor(...) __shfl_xor_sync(__activemask(), __VA_ARGS__)",
            "using ::sqrt;",
            "#define FLT_MAX 3.402823466e+38f",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        let group =
            |word| super::text(&FxHashSet::from_iter(["cooperative_groups", "this_thread_block", word]));
        assert!(group("sync").contains("struct thread_block") && !group("sync").contains("#include <coop"));
        assert!(group("tiled_partition").contains("struct thread_block_tile"));
        assert!(group("coalesced_threads").contains("#include <cooperative_groups.h>"));
        let complex = |namespace| super::text(&FxHashSet::from_iter(["complex", namespace]));
        for namespace in ["thrust", "c10"] {
            let text = complex(namespace);
            let class = format!("namespace {namespace} {{\ntemplate <class T> struct alignas");
            assert!(
                text.contains(&class) && !text.contains("std::abs") && !text.contains("std::exp"),
                "{text}"
            );
        }
        assert!(!complex("std").contains("#include"));
        assert!(super::text(&FxHashSet::from_iter(["PackedTensorAccessor32"])).contains("namespace torch"));
        for part in ["cooperative_groups.h", "cuda_fp16.h", "DBL_MAX", "__shfl_up", "using ::sin;"] {
            assert!(!text.contains(part), "{part} is in\n{text}");
        }
    }
}
