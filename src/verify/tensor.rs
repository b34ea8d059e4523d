//! PyTorch's tensor accessors as kernel parameters, for programs whose PyTorch is not at hand.
//!
//! Layout and members are those of `ATen/core/TensorAccessor.h`: a pointer, a size for each dimension, a stride for each.

/// The types of sizes and strides that the classes have, by their bytes; `None` for the name of another class.
pub fn index_bytes(class: &str) -> Option<u64> {
    match class {
        "PackedTensorAccessor32" => Some(4),
        "PackedTensorAccessor64" | "PackedTensorAccessor" | "GenericPackedTensorAccessor" => Some(8),
        _ => None,
    }
}

/// The longest side, up to `most`, of a tensor of `dimensions` equal sides that `bytes` have room for.
pub fn side(most: u64, dimensions: u64, element_bytes: u64, bytes: u64) -> u64 {
    let fits = |side: u64| {
        let exponent = u32::try_from(dimensions).unwrap_or(u32::MAX);
        let elements = side.checked_pow(exponent).and_then(|count| count.checked_mul(element_bytes));
        elements.is_some_and(|needed| needed <= bytes)
    };
    if fits(most) {
        return most;
    }
    let side = (1..most).rev().find(|&side| fits(side)).unwrap_or(1);
    // Rows begin where lines do, as those of most tensors.
    if side > 32 { side / 32 * 32 } else { side }
}

/// What stands in for the header.
pub const HEADER: &str = "namespace at {
template <class T> struct DefaultPtrTraits { typedef T* PtrType; };
template <class T> struct RestrictPtrTraits { typedef T* __restrict__ PtrType; };
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t> struct TensorAccessor {
    typename P<T>::PtrType data_;
    const I *sizes_, *strides_;
    __device__ TensorAccessor(typename P<T>::PtrType data, const I* sizes, const I* strides)
        : data_(data), sizes_(sizes), strides_(strides) {}
    __device__ I size(I i) const { return sizes_[i]; }
    __device__ I stride(I i) const { return strides_[i]; }
    __device__ typename P<T>::PtrType data() const { return data_; }
    __device__ decltype(auto) operator[](I i) const {
        if constexpr (N == 1) return (data_[strides_[0] * i]);
        else return TensorAccessor<T, N - 1, P, I>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
    }
};
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t>
struct GenericPackedTensorAccessor {
    typename P<T>::PtrType data_;
    I sizes_[N], strides_[N];
    __device__ I size(I i) const { return sizes_[i]; }
    __device__ I stride(I i) const { return strides_[i]; }
    __device__ typename P<T>::PtrType data() const { return data_; }
    __device__ decltype(auto) operator[](I i) const {
        if constexpr (N == 1) return (data_[strides_[0] * i]);
        else return TensorAccessor<T, N - 1, P, I>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
    }
};
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, P, I>;
template <class T, size_t N, template <class> class P = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, P, int32_t>;
template <class T, size_t N, template <class> class P = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, P, int64_t>;
}
namespace torch {
using at::DefaultPtrTraits;
using at::GenericPackedTensorAccessor;
using at::PackedTensorAccessor;
using at::PackedTensorAccessor32;
using at::PackedTensorAccessor64;
using at::RestrictPtrTraits;
using at::TensorAccessor;
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_fill_what_there_is() {
        // 1024² floats are 4 MiB; 256³ are 64 MiB; of doubles 203³ are, and 192 is the multiple of 32 below.
        assert_eq!(side(1024, 2, 4, 64 << 20), 1024);
        assert_eq!(side(1024, 3, 4, 64 << 20), 256);
        assert_eq!(side(1024, 3, 8, 64 << 20), 192);
        assert_eq!(side(1000, 1, 4, 64 << 20), 1000);
        // 2^24 elements: 6 dimensions of 16.
        assert_eq!(side(1024, 6, 4, 64 << 20), 16);
        assert_eq!(side(1024, u64::MAX, 4, 64 << 20), 1);
    }
}
