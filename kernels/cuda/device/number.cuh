/* Arithmetic of the kernels that decompose matrices: alike for real and complex numbers of type T with parts of type
 * R. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/complex.cuh"

template <typename S> struct tt_parts_of {
    typedef S type;
};
template <> struct tt_parts_of<tt_complex64> {
    typedef float type;
};
template <> struct tt_parts_of<tt_complex128> {
    typedef double type;
};
typedef TT_TYPE(TT_D0) T;
typedef tt_parts_of<T>::type R;

#if TT_IS_COMPLEX(TT_D0)
static TT_DEVICE T number(R re, R im) {
    T z;
    z.re = re;
    z.im = im;
    return z;
}
static TT_DEVICE T number(R re) { return number(re, 0); }
static TT_DEVICE T conj_of(T z) { return number(z.re, -z.im); }
static TT_DEVICE R real_of(T z) { return z.re; }
static TT_DEVICE R square_of(T z) { return z.re * z.re + z.im * z.im; }
static TT_DEVICE R size_of(T z) { return (z.re < 0 ? -z.re : z.re) + (z.im < 0 ? -z.im : z.im); }
static TT_DEVICE T operator-(T a, T b) { return number(a.re - b.re, a.im - b.im); }
static TT_DEVICE T scaled(T z, R by) { return number(z.re * by, z.im * by); }
static TT_DEVICE T minus_product(T c, T a, T b) {
    return number(c.re - a.re * b.re + a.im * b.im, c.im - a.re * b.im - a.im * b.re);
}
static TT_DEVICE T plus_product(T c, T a, T b) {
    return number(c.re + a.re * b.re - a.im * b.im, c.im + a.re * b.im + a.im * b.re);
}
/* By the larger part of the divisor. */
static TT_DEVICE T operator/(T a, T b) {
    const R c = b.re < 0 ? -b.re : b.re, d = b.im < 0 ? -b.im : b.im;
    if (c >= d) {
        const R ratio = b.im / b.re, by = b.re + b.im * ratio;
        return number((a.re + a.im * ratio) / by, (a.im - a.re * ratio) / by);
    }
    const R ratio = b.re / b.im, by = b.re * ratio + b.im;
    return number((a.re * ratio + a.im) / by, (a.im * ratio - a.re) / by);
}
static TT_DEVICE bool is_nan(T z) { return z.re != z.re || z.im != z.im; }
static TT_DEVICE bool is_zero(T z) { return z.re == 0 && z.im == 0; }
static TT_DEVICE bool is_finite(T z) { return z.re * 0 == 0 && z.im * 0 == 0; }
#else
static TT_DEVICE T number(R re) { return re; }
static TT_DEVICE T conj_of(T x) { return x; }
static TT_DEVICE R real_of(T x) { return x; }
static TT_DEVICE R square_of(T x) { return x * x; }
static TT_DEVICE R size_of(T x) { return x < 0 ? -x : x; }
static TT_DEVICE T scaled(T x, R by) { return x * by; }
static TT_DEVICE float minus_product(float c, float a, float b) { return tt_fma_f32(-a, b, c); }
static TT_DEVICE double minus_product(double c, double a, double b) { return tt_fma_f64(-a, b, c); }
static TT_DEVICE T plus_product(T c, T a, T b) { return c + a * b; }
static TT_DEVICE bool is_nan(T x) { return x != x; }
static TT_DEVICE bool is_zero(T x) { return x == 0; }
static TT_DEVICE bool is_finite(T x) { return x * 0 == 0; }
#endif
