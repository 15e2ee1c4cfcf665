/* Elementwise operators, and (with another way to compute) copies. See elementwise.c for the variants.
 *
 * TT_K0: what the scalar function gives; TT_D1 as it is stored. TT_K1 ... TT_K3: what it takes; TT_D2 ... as stored. */
#pragma once
#include "cuda/device/prelude.cuh"

#define TT_UNROLL ((TT_VARIANT & 4096 ? 2 : 1) << (TT_VARIANT >> 13 & 3)) /* TWICE, SHORTER in elementwise.c */
#define TT_V (1 << (TT_VARIANT & 7))
#define TT_GIVEN(k) ((TT_VARIANT >> (3 + 2 * (k))) & 3)
enum { TT_MANY, TT_ONE, TT_VALUE };

#ifndef TT_COPY
#include "scalar/arith.h"
#define TT_SCALAR TT_JOIN4(tt_, TT_NAME, _, TT_D0)
#if TT_ARITY == 1
#define TT_APPLY(a, b, c) TT_SCALAR(a)
#elif TT_ARITY == 2
#define TT_APPLY(a, b, c) TT_SCALAR(a, b)
#else
#define TT_APPLY(a, b, c) TT_SCALAR(a, b, c)
#endif
#else
#define TT_ARITY 1
#define TT_APPLY(a, b, c) (a)
#endif

typedef TT_TYPE(TT_D1) out_type;
typedef TT_TYPE(TT_D2) in1_type;
typedef TT_TYPE(TT_D3) in2_type;
typedef TT_TYPE(TT_D4) in3_type;
typedef TT_TYPE(TT_K1) value1;
typedef TT_TYPE(TT_K2) value2;
typedef TT_TYPE(TT_K3) value3;

template <typename T> static TT_DEVICE T tt_bits_as(const tt_value &given) {
    union {
        tt_value given;
        T value;
    } u;
    u.given = given;
    return u.value;
}

static TT_DEVICE out_type compute(tt_fault *fault, value1 a, value2 b, value3 c) {
#if TT_VARIANT & 2048 /* DIVIDES in elementwise.c */
    if (b == 0) tt_report(fault, TT_FAULT_DIVISION, TT_OP, 0, 0);
#endif
    return (out_type)TT_CONVERT(TT_K0, TT_D1, TT_APPLY(a, b, c));
}

/* The operator on a thread's successive elements; s1 ... s3 of inputs that are the same for all of them. */
static TT_DEVICE tt_pack<out_type, TT_V> computed(tt_fault *fault, const tt_pack<in1_type, TT_V> &a,
                                                  const tt_pack<in2_type, TT_V> &b, const tt_pack<in3_type, TT_V> &c,
                                                  value1 s1, value2 s2, value3 s3) {
    tt_pack<out_type, TT_V> r;
    const auto result = [&](int v) {
        return compute(fault, TT_GIVEN(1) == TT_MANY ? (value1)TT_CONVERT(TT_D2, TT_K1, a.at[v]) : s1,
                       TT_ARITY > 1 && TT_GIVEN(2) == TT_MANY ? (value2)TT_CONVERT(TT_D3, TT_K2, b.at[v]) : s2,
                       TT_ARITY > 2 && TT_GIVEN(3) == TT_MANY ? (value3)TT_CONVERT(TT_D4, TT_K3, c.at[v]) : s3);
    };
#if defined(TT_BOUNDS) && !defined(TT_APPROXIMATE) && TT_VARIANT & 7
    if (TT_GIVEN(1) == TT_MANY)
        return tt_rounded<TT_V>(
            TT_JOIN2(tt_both_, TT_D1),
            [&](int v, float &low, float &high) { TT_BOUNDS(TT_CONVERT(TT_D2, TT_K1, a.at[v]), low, high); }, result);
#endif
#ifdef TT_TOGETHER
    if (TT_GIVEN(1) == TT_MANY) {
        value1 x[TT_V];
        TT_TYPE(TT_K0) y[TT_V];
#pragma unroll
        for (int v = 0; v < TT_V; v++) x[v] = TT_CONVERT(TT_D2, TT_K1, a.at[v]);
        if (TT_TOGETHER(x, y)) {
#pragma unroll
            for (int v = 0; v < TT_V; v++) r.at[v] = (out_type)TT_CONVERT(TT_K0, TT_D1, y[v]);
            return r;
        }
    }
#endif
#pragma unroll
    for (int v = 0; v < TT_V; v++) r.at[v] = result(v);
    return r;
}

#if !(TT_VARIANT & 8)
#define TT_ARGS tt_flat_args

/* What is the same for all elements is read once. */
#define TT_SINGLE(k, T, D, K)                                                                                          \
    (TT_GIVEN(k) == TT_VALUE ? tt_bits_as<T>(p.value[k - 1]) : TT_CONVERT(D, K, *(const TT_TYPE(D) *)p.in[k - 1]))

extern "C" __global__ void __launch_bounds__(TT_FLAT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t first = (int64_t)blockIdx.x * (TT_FLAT_THREADS * TT_UNROLL * TT_V) + threadIdx.x * TT_V;
    value1 s1{};
    value2 s2{};
    value3 s3{};
    if (TT_GIVEN(1) != TT_MANY) s1 = TT_SINGLE(1, value1, TT_D2, TT_K1);
    if (TT_ARITY > 1 && TT_GIVEN(2) != TT_MANY) s2 = TT_SINGLE(2, value2, TT_D3, TT_K2);
    if (TT_ARITY > 2 && TT_GIVEN(3) != TT_MANY) s3 = TT_SINGLE(3, value3, TT_D4, TT_K3);
    tt_pack<in1_type, TT_V> a[TT_UNROLL];
    tt_pack<in2_type, TT_V> b[TT_UNROLL];
    tt_pack<in3_type, TT_V> c[TT_UNROLL];
    if (first + (int64_t)(TT_UNROLL - 1) * TT_FLAT_THREADS * TT_V + TT_V <= p.numel) {
#pragma unroll
        for (int u = 0; u < TT_UNROLL; u++) { /* all loads before the first use */
            const int64_t i = first + u * (TT_FLAT_THREADS * TT_V);
            if (TT_GIVEN(1) == TT_MANY) a[u] = *(const tt_pack<in1_type, TT_V> *)(p.in[0] + i * sizeof(in1_type));
            if (TT_ARITY > 1 && TT_GIVEN(2) == TT_MANY)
                b[u] = *(const tt_pack<in2_type, TT_V> *)(p.in[1] + i * sizeof(in2_type));
            if (TT_ARITY > 2 && TT_GIVEN(3) == TT_MANY)
                c[u] = *(const tt_pack<in3_type, TT_V> *)(p.in[2] + i * sizeof(in3_type));
        }
#pragma unroll
        for (int u = 0; u < TT_UNROLL; u++) {
            const int64_t i = first + u * (TT_FLAT_THREADS * TT_V);
            *(tt_pack<out_type, TT_V> *)(p.out + i * sizeof(out_type)) =
                computed(p.fault, a[u], b[u], c[u], s1, s2, s3);
        }
        return;
    }
    for (int u = 0; u < TT_UNROLL; u++) /* the end, one by one */
        for (int v = 0; v < TT_V; v++) {
            const int64_t i = first + u * (TT_FLAT_THREADS * TT_V) + v;
            if (i >= p.numel) return;
            if (TT_GIVEN(1) == TT_MANY) s1 = TT_CONVERT(TT_D2, TT_K1, ((const in1_type *)p.in[0])[i]);
            if (TT_ARITY > 1 && TT_GIVEN(2) == TT_MANY) s2 = TT_CONVERT(TT_D3, TT_K2, ((const in2_type *)p.in[1])[i]);
            if (TT_ARITY > 2 && TT_GIVEN(3) == TT_MANY) s3 = TT_CONVERT(TT_D4, TT_K3, ((const in3_type *)p.in[2])[i]);
            ((out_type *)p.out)[i] = compute(p.fault, s1, s2, s3);
        }
}

#else
#define TT_ARGS tt_strided_args

/* What is the same for all elements of a thread. */
/* clang-format off */
#define TT_SINGLE(k, T, D, K) \
    (TT_GIVEN(k) == TT_VALUE ? tt_bits_as<T>(p.value[k - 1]) \
                             : (T)TT_CONVERT(D, K, *(const TT_TYPE(D) *)(p.in[k - 1] + at[k])))
/* clang-format on */

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
#if TT_VARIANT & 16
    typedef int64_t offset;
#else
    typedef uint32_t offset;
#endif
    const int64_t i = ((int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x) * TT_V;
    if (i >= p.numel) return;
    offset at[4] = {0, 0, 0, 0}, rest = (offset)i;
#pragma unroll
    for (int d = 0; d < TT_CUDA_DIMS; d++) {
        if (d == p.ndim) break;
        offset outer, x;
        if (d == p.ndim - 1) {
            outer = 0;
            x = rest;
        } else {
#if TT_VARIANT & 16
            outer = rest / p.size[d];
            x = rest - outer * p.size[d];
#else
            outer = tt_quotient(rest, p.by[d]);
            x = rest - outer * p.by[d].size;
#endif
        }
        rest = outer;
#pragma unroll
        for (int k = 0; k <= TT_ARITY; k++) at[k] += x * (offset)p.step[k][d];
    }
    value1 s1{};
    value2 s2{};
    value3 s3{};
    tt_pack<in1_type, TT_V> a;
    tt_pack<in2_type, TT_V> b;
    tt_pack<in3_type, TT_V> c;
    if (TT_GIVEN(1) == TT_MANY) a = *(const tt_pack<in1_type, TT_V> *)(p.in[0] + at[1]);
    else s1 = TT_SINGLE(1, value1, TT_D2, TT_K1);
    if (TT_ARITY > 1 && TT_GIVEN(2) == TT_MANY) b = *(const tt_pack<in2_type, TT_V> *)(p.in[1] + at[2]);
    else if (TT_ARITY > 1) s2 = TT_SINGLE(2, value2, TT_D3, TT_K2);
    if (TT_ARITY > 2 && TT_GIVEN(3) == TT_MANY) c = *(const tt_pack<in3_type, TT_V> *)(p.in[2] + at[3]);
    else if (TT_ARITY > 2) s3 = TT_SINGLE(3, value3, TT_D4, TT_K3);
    *(tt_pack<out_type, TT_V> *)(p.out + at[0]) = computed(p.fault, a, b, c, s1, s2, s3);
}
#endif
