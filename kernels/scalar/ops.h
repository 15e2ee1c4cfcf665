/* The elementwise operators: X(name, arity, domain, rule, flops, cost).
 *
 * domain: the dtypes there is a scalar function tt_<name>_<dtype> for
 *   FLT  float32, float64 (integers are promoted to the default dtype)     NUM  those and the integers
 *   ALL  those and bool                                                    INT  the integers and bool
 *   REAL  float32, float64; integers are refused                           INTS  the integers
 *   NONE  no real numbers: complex ones only, see below
 * rule: SAME  the result has the dtype computed in        BOOL  the result is bool
 *       PERIODIC  SAME, with a cheaper function <name>_small of the same bits for moderate arguments (float32)
 *       PART  SAME, and a complex number gives a real one
 *       SELECT  the first operand is a bool condition, the result has the dtype of the other two
 * flops: floating-point operations for an element, as the profiler counts them: those of the formula, and of functions
 *        such as exp about those of the polynomial
 * cost: vector instructions for an element in float32, about: whoever divides work among loops or threads reads it. 2
 *       stands for everything as cheap as an addition
 * float16 and bfloat16 are computed in float32. The loops, their table, Python's operator codes and tinytorch/scalar.py
 * follow from here. */
#pragma once

/* clang-format off */
#define TT_OPS(X) TT_COMMON_OPS(X) TT_SPECIAL_OPS(X)
#define TT_COMMON_OPS(X)                                                                                        \
    /* unary */                                                                                                 \
    X(exp, 1, FLT, SAME, 18, 30) X(exp2, 1, FLT, SAME, 16, 27) X(expm1, 1, FLT, SAME, 22, 27)                   \
    X(log, 1, FLT, SAME, 22, 32) X(log2, 1, FLT, SAME, 24, 33) X(log10, 1, FLT, SAME, 24, 34)                   \
    X(log1p, 1, FLT, SAME, 26, 42) X(sin, 1, FLT, PERIODIC, 24, 30) X(cos, 1, FLT, PERIODIC, 24, 30)            \
    X(tan, 1, FLT, SAME, 34, 198) X(asin, 1, FLT, SAME, 24, 66) X(acos, 1, FLT, SAME, 24, 73)                   \
    X(atan, 1, FLT, SAME, 24, 64) X(sinh, 1, FLT, SAME, 26, 103) X(cosh, 1, FLT, SAME, 22, 77)                  \
    X(tanh, 1, FLT, SAME, 26, 35) X(asinh, 1, FLT, SAME, 34, 97) X(acosh, 1, FLT, SAME, 34, 93)                 \
    X(atanh, 1, FLT, SAME, 30, 98) X(erf, 1, FLT, SAME, 30, 40) X(erfc, 1, FLT, SAME, 36, 142)                  \
    X(erfinv, 1, FLT, SAME, 40, 176) X(lgamma, 1, FLT, SAME, 70, 368) X(digamma, 1, FLT, SAME, 50, 326)         \
    X(sigmoid, 1, FLT, SAME, 21, 38) X(logsigmoid, 1, FLT, SAME, 34, 42) X(softplus, 1, FLT, SAME, 34, 41)      \
    X(silu, 1, FLT, SAME, 22, 43) X(gelu, 1, FLT, SAME, 34, 60) X(gelu_tanh, 1, FLT, SAME, 34, 67)              \
    X(sinc, 1, FLT, SAME, 20, 60) X(sinc_slope, 1, FLT, SAME, 42, 120) X(ndtr, 1, FLT, SAME, 34, 60)            \
    X(entr, 1, FLT, SAME, 24, 39)                                                                               \
    X(sqrt, 1, FLT, SAME, 1, 2) X(rsqrt, 1, FLT, SAME, 2, 2) X(reciprocal, 1, FLT, SAME, 1, 2)                  \
    X(neg, 1, NUM, SAME, 1, 2) X(abs, 1, NUM, PART, 1, 2) X(sign, 1, ALL, SAME, 1, 2)                           \
    X(square, 1, NUM, SAME, 1, 2) X(relu, 1, NUM, SAME, 1, 2) X(positive, 1, NUM, SAME, 0, 2)                   \
    X(floor, 1, NUM, SAME, 1, 2) X(ceil, 1, NUM, SAME, 1, 2) X(round, 1, NUM, SAME, 1, 2)                       \
    X(trunc, 1, NUM, SAME, 1, 2) X(frac, 1, REAL, SAME, 1, 2) X(cube, 1, REAL, SAME, 1, 2)                      \
    X(isnan, 1, ALL, BOOL, 1, 2) X(isinf, 1, ALL, BOOL, 1, 2) X(isfinite, 1, ALL, BOOL, 1, 2)                   \
    X(signbit, 1, ALL, BOOL, 0, 2) X(logical_not, 1, ALL, BOOL, 1, 2) X(bitwise_not, 1, INT, SAME, 1, 2)        \
    X(angle, 1, FLT, PART, 1, 2) X(sgn, 1, ALL, SAME, 1, 2) X(conj_physical, 1, NONE, SAME, 1, 2)               \
    X(hardswish, 1, REAL, SAME, 5, 6) X(hardsigmoid, 1, REAL, SAME, 4, 5) X(selu, 1, REAL, SAME, 25, 31)        \
    X(mish, 1, REAL, SAME, 26, 42)                                                                              \
    /* binary */                                                                                                \
    X(add, 2, ALL, SAME, 1, 2) X(sub, 2, NUM, SAME, 1, 2) X(mul, 2, ALL, SAME, 1, 2) X(div, 2, FLT, SAME, 1, 2) \
    X(pow, 2, NUM, SAME, 48, 193) X(fmod, 2, NUM, SAME, 4, 20) X(remainder, 2, NUM, SAME, 5, 20)                \
    X(floor_divide, 2, NUM, SAME, 1, 20) X(trunc_divide, 2, NUM, SAME, 1, 2) X(maximum, 2, ALL, SAME, 1, 2)     \
    X(minimum, 2, ALL, SAME, 1, 2) X(fmax, 2, ALL, SAME, 1, 2) X(fmin, 2, ALL, SAME, 1, 2)                      \
    X(atan2, 2, FLT, SAME, 28, 94) X(hypot, 2, REAL, SAME, 6, 25) X(copysign, 2, FLT, SAME, 0, 2)               \
    X(nextafter, 2, REAL, SAME, 1, 15) X(logaddexp, 2, REAL, SAME, 48, 140) X(xlogy, 2, FLT, SAME, 24, 39)      \
    X(xlog1py, 2, FLT, SAME, 28, 50) X(heaviside, 2, ALL, SAME, 1, 2) X(smooth_l1, 2, REAL, SAME, 5, 2)         \
    X(huber, 2, REAL, SAME, 5, 2) X(eq, 2, ALL, BOOL, 1, 2) X(ne, 2, ALL, BOOL, 1, 2) X(lt, 2, ALL, BOOL, 1, 2) \
    X(le, 2, ALL, BOOL, 1, 2) X(gt, 2, ALL, BOOL, 1, 2) X(ge, 2, ALL, BOOL, 1, 2)                               \
    X(logical_and, 2, ALL, BOOL, 1, 2) X(logical_or, 2, ALL, BOOL, 1, 2) X(logical_xor, 2, ALL, BOOL, 1, 2)     \
    X(bitwise_and, 2, INT, SAME, 1, 2) X(bitwise_or, 2, INT, SAME, 1, 2) X(bitwise_xor, 2, INT, SAME, 1, 2)     \
    X(bitwise_left_shift, 2, INTS, SAME, 1, 2) X(bitwise_right_shift, 2, INTS, SAME, 1, 2)                      \
    X(gcd, 2, INTS, SAME, 40, 200) X(lcm, 2, INTS, SAME, 42, 220) X(logaddexp2, 2, REAL, SAME, 48, 140)         \
    X(ldexp, 2, FLT, SAME, 17, 60) X(squared_difference, 2, REAL, SAME, 2, 2)                                   \
    X(leaky_relu, 2, REAL, SAME, 2, 2) X(elu, 2, REAL, SAME, 24, 30) X(celu, 2, REAL, SAME, 25, 31)             \
    X(hardshrink, 2, REAL, SAME, 2, 2) X(softshrink, 2, REAL, SAME, 3, 3) X(gated, 2, REAL, SAME, 22, 39)       \
    /* kernels of derivatives: (gradient, saved value) */                                                       \
    X(relu_backward, 2, NUM, SAME, 2, 2) X(sigmoid_backward, 2, FLT, SAME, 3, 2)                                \
    X(tanh_backward, 2, FLT, SAME, 3, 2) X(silu_backward, 2, FLT, SAME, 26, 43)                                 \
    X(gelu_backward, 2, FLT, SAME, 54, 62) X(gelu_tanh_backward, 2, FLT, SAME, 44, 53)                          \
    X(hardswish_backward, 2, REAL, SAME, 5, 6) X(hardsigmoid_backward, 2, REAL, SAME, 3, 4)                     \
    X(selu_backward, 2, REAL, SAME, 22, 34) X(mish_backward, 2, REAL, SAME, 36, 52)                             \
    X(softplus_backward, 2, FLT, SAME, 22, 39) X(logsigmoid_backward, 2, FLT, SAME, 22, 40)                     \
    /* ternary */                                                                                               \
    X(where, 3, ALL, SELECT, 0, 2) X(clamp, 3, NUM, SAME, 2, 2) X(lerp, 3, REAL, SAME, 3, 2)                    \
    X(addcmul, 3, NUM, SAME, 3, 2) X(addcdiv, 3, REAL, SAME, 3, 2) X(masked_scale, 3, REAL, SELECT, 1, 2)       \
    X(threshold, 3, NUM, SAME, 1, 2) X(softplus_below, 3, REAL, SAME, 37, 45)                                   \
    X(softplus_below_slope, 3, REAL, SAME, 23, 41)                                                              \
    /* kernels of derivatives: (gradient, difference, bound) */                                                 \
    X(smooth_l1_backward, 3, REAL, SAME, 4, 2) X(huber_backward, 3, REAL, SAME, 3, 2)           \
    X(smooth_l1_between, 3, REAL, SAME, 6, 2) X(huber_between, 3, REAL, SAME, 6, 2)                             \
    X(squared_difference_backward, 3, REAL, SAME, 3, 2)                                                         \
    /* (gradient, saved value, parameter) */                                                                    \
    X(leaky_relu_backward, 3, REAL, SAME, 2, 2) X(elu_backward, 3, REAL, SAME, 21, 33)                          \
    X(celu_backward, 3, REAL, SAME, 21, 34) X(shrink_backward, 3, REAL, SAME, 2, 2)                             \
    X(hardtanh_backward, 3, REAL, SAME, 2, 2) X(relu6_backward, 3, REAL, SAME, 2, 2)                            \
    X(threshold_backward, 3, REAL, SAME, 1, 2) X(gated_backward, 3, REAL, SAME, 25, 42)
/* Those of scalar/special.h. They are computed in float64 and one by one: loops are compiled once, not for each
 * instruction set, and generated code includes that header only for these. */
#define TT_SPECIAL_OPS(X)                                                                                       \
    X(i0, 1, FLT, SAME, 80, 300) X(i0e, 1, FLT, SAME, 64, 200) X(i1, 1, FLT, SAME, 80, 300)                     \
    X(i1e, 1, FLT, SAME, 64, 200) X(modified_bessel_k0, 1, FLT, SAME, 120, 500)                                 \
    X(modified_bessel_k1, 1, FLT, SAME, 120, 500) X(scaled_modified_bessel_k0, 1, FLT, SAME, 120, 500)          \
    X(scaled_modified_bessel_k1, 1, FLT, SAME, 120, 500) X(bessel_j0, 1, FLT, SAME, 80, 400)                    \
    X(bessel_j1, 1, FLT, SAME, 80, 400) X(bessel_y0, 1, FLT, SAME, 120, 500)                                    \
    X(bessel_y1, 1, FLT, SAME, 120, 500) X(spherical_bessel_j0, 1, FLT, SAME, 24, 150)                          \
    X(airy_ai, 1, FLT, SAME, 120, 500) X(erfcx, 1, FLT, SAME, 60, 200) X(log_ndtr, 1, FLT, SAME, 90, 300)       \
    X(ndtri, 1, FLT, SAME, 200, 900) X(zeta, 2, FLT, SAME, 150, 400) X(igamma, 2, REAL, SAME, 200, 1500)        \
    X(igammac, 2, REAL, SAME, 200, 1500) X(chebyshev_polynomial_t, 2, FLT, SAME, 60, 300)                       \
    X(chebyshev_polynomial_u, 2, FLT, SAME, 60, 300) X(chebyshev_polynomial_v, 2, FLT, SAME, 60, 300)           \
    X(chebyshev_polynomial_w, 2, FLT, SAME, 60, 300) X(shifted_chebyshev_polynomial_t, 2, FLT, SAME, 62, 300)   \
    X(shifted_chebyshev_polynomial_u, 2, FLT, SAME, 62, 300)                                                    \
    X(shifted_chebyshev_polynomial_v, 2, FLT, SAME, 62, 300)                                                    \
    X(shifted_chebyshev_polynomial_w, 2, FLT, SAME, 62, 300) X(hermite_polynomial_h, 2, FLT, SAME, 60, 300)     \
    X(hermite_polynomial_he, 2, FLT, SAME, 60, 300) X(laguerre_polynomial_l, 2, FLT, SAME, 80, 400)             \
    X(legendre_polynomial_p, 2, FLT, SAME, 80, 400) X(standard_gamma_grad, 2, REAL, SAME, 300, 2000)            \
    X(dirichlet_grad, 3, REAL, SAME, 600, 4000)
/* Those that take complex numbers too, X(name, arity, rule). In complex arithmetic of as many bits:
 * scalar/complex.h. */
#define TT_COMPLEX_OPS(X)                                                                                       \
    X(exp, 1, SAME) X(exp2, 1, SAME) X(expm1, 1, SAME) X(log, 1, SAME) X(log2, 1, SAME) X(log10, 1, SAME)       \
    X(log1p, 1, SAME) X(sin, 1, SAME) X(cos, 1, SAME) X(tan, 1, SAME) X(asin, 1, SAME) X(acos, 1, SAME)         \
    X(atan, 1, SAME) X(sinh, 1, SAME) X(cosh, 1, SAME) X(tanh, 1, SAME) X(asinh, 1, SAME) X(acosh, 1, SAME)     \
    X(atanh, 1, SAME) X(sigmoid, 1, SAME) X(silu, 1, SAME) X(sinc, 1, SAME) X(sqrt, 1, SAME) X(rsqrt, 1, SAME)  \
    X(reciprocal, 1, SAME) X(neg, 1, SAME) X(abs, 1, PART) X(angle, 1, PART) X(sgn, 1, SAME)                    \
    X(square, 1, SAME) X(cube, 1, SAME) X(positive, 1, SAME) X(conj_physical, 1, SAME) X(isnan, 1, BOOL)        \
    X(isinf, 1, BOOL) X(isfinite, 1, BOOL) X(logical_not, 1, BOOL) X(add, 2, SAME) X(sub, 2, SAME)              \
    X(mul, 2, SAME) X(div, 2, SAME) X(pow, 2, SAME) X(eq, 2, BOOL) X(ne, 2, BOOL) X(logical_and, 2, BOOL)       \
    X(logical_or, 2, BOOL) X(logical_xor, 2, BOOL) X(sigmoid_backward, 2, SAME) X(tanh_backward, 2, SAME)       \
    X(ldexp, 2, SAME) X(logaddexp, 2, SAME) X(silu_backward, 2, SAME) X(where, 3, SELECT) X(lerp, 3, SAME)      \
    X(addcmul, 3, SAME) X(addcdiv, 3, SAME)
/* Those that take the unsigned integers wider than a byte, too: X(name, arity, rule). */
#define TT_WIDE_UNSIGNED_OPS(X)                                                                                 \
    X(eq, 2, BOOL) X(ne, 2, BOOL) X(mul, 2, SAME) X(bitwise_and, 2, SAME) X(bitwise_or, 2, SAME)                \
    X(bitwise_xor, 2, SAME) X(positive, 1, SAME) X(floor, 1, SAME) X(ceil, 1, SAME) X(round, 1, SAME)           \
    X(trunc, 1, SAME) X(isnan, 1, BOOL) X(isinf, 1, BOOL) X(isfinite, 1, BOOL) X(where, 3, SELECT)
/* clang-format on */

/* Operators that begin like the kernel of their derivative, for the same x: X(name, derivative). The interpreter of
 * fused mode has loops that do both (float32); in generated code a compiler finds it. */
#define TT_PAIRS(X) X(gelu, gelu_backward) X(silu, silu_backward)

#define TT_DTYPES_NONE(M, op)
#define TT_DTYPES_FLT(M, op) M(op, f32) M(op, f64)
#define TT_DTYPES_REAL(M, op) TT_DTYPES_FLT(M, op)
#define TT_DTYPES_INTS(M, op) M(op, u8) M(op, i8) M(op, i16) M(op, i32) M(op, i64)
#define TT_DTYPES_NUM(M, op) TT_DTYPES_FLT(M, op) TT_DTYPES_INTS(M, op)
#define TT_DTYPES_ALL(M, op) TT_DTYPES_NUM(M, op) M(op, b8)
#define TT_DTYPES_INT(M, op) TT_DTYPES_INTS(M, op) M(op, b8)
