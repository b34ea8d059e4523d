//! What a slice gets instead of host headers.

use rustc_hash::FxHashSet;

/// Namespaces that `using namespace` may name though the project does not define them.
pub const NAMESPACES: [&str; 5] = ["std", "cooperative_groups", "nvcuda", "cuda", "cub"];

/// Whether NVRTC can compile a CUDA header (with CUDA's include folder).
pub fn is_device_header(path: &str) -> bool {
    const HEADERS: [&str; 14] = [
        "cuda_fp16.h",
        "cuda_bf16.h",
        "cuda_fp8.h",
        "cuda_fp6.h",
        "cuda_fp4.h",
        "cooperative_groups.h",
        "mma.h",
        "cuda_pipeline.h",
        "cuda_pipeline_primitives.h",
        "cuda_awbarrier.h",
        "cuda_awbarrier_primitives.h",
        "curand_kernel.h",
        "cuComplex.h",
        "math_constants.h",
    ];
    HEADERS.contains(&path)
        || ["cooperative_groups/", "cuda/", "cub/"].iter().any(|folder| path.starts_with(folder))
}

/// Types, limits and the pieces of `std` that device code uses, as far as `uses` names them.
pub fn text(uses: &FxHashSet<&str>) -> String {
    let mut out = String::from(BASE);
    for namespace in NAMESPACES {
        out.push_str(&format!("namespace {namespace} {{}}\n"));
    }
    for (name, value) in VALUES {
        if uses.contains(name) {
            out.push_str(&format!("#ifndef {name}\n#define {name} {value}\n#endif\n"));
        }
    }
    if uses.contains("numeric_limits") {
        out.push_str(LIMITS);
    }
    if uses.contains("std") {
        out.push_str(STD);
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

const VALUES: [(&str, &str); 33] = [
    ("CHAR_BIT", "8"),
    ("CHAR_MIN", "(-128)"),
    ("CHAR_MAX", "127"),
    ("UCHAR_MAX", "255"),
    ("SHRT_MIN", "(-32768)"),
    ("SHRT_MAX", "32767"),
    ("USHRT_MAX", "65535"),
    ("INT_MAX", "2147483647"),
    ("INT_MIN", "(-INT_MAX - 1)"),
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
    ("INFINITY", "__builtin_huge_valf()"),
    ("HUGE_VALF", "__builtin_huge_valf()"),
    ("HUGE_VAL", "__builtin_huge_val()"),
    ("NAN", "__builtin_nanf(\"\")"),
    ("M_PI", "3.14159265358979323846"),
    ("M_SQRT2", "1.41421356237309504880"),
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
CUDALINT_LIMITS(float, -3.402823466e+38f, 1.175494351e-38f, 3.402823466e+38f, __builtin_huge_valf())
CUDALINT_LIMITS(double, -1.7976931348623158e+308, 2.2250738585072014e-308, 1.7976931348623158e+308, __builtin_huge_val())
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
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> using decay_t = remove_cv_t<remove_reference_t<T>>;
template <class T> struct decay { typedef decay_t<T> type; };
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
