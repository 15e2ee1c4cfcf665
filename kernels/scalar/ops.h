/* The elementwise operators: X(name, arity, domain, rule).
 *
 * domain: the dtypes there is a scalar function tt_<name>_<dtype> for
 *   FLT  float32, float64 (integers are promoted to the default dtype)     NUM  those and the integers
 *   ALL  those and bool                                                    INT  the integers and bool
 *   REAL  float32, float64; integers are refused                           INTS  the integers
 * rule: SAME  the result has the dtype computed in        BOOL  the result is bool
 *       PERIODIC  SAME, with a cheaper function <name>_small of the same bits for moderate arguments
 *       SELECT  the first operand is a bool condition, the result has the dtype of the other two
 * float16 and bfloat16 are computed in float32. The loops, their table and Python's operator codes follow from here. */
#pragma once

#define TT_OPS(X)                                                                                     \
    /* unary */                                                                                       \
    X(exp, 1, FLT, SAME) X(exp2, 1, FLT, SAME) X(expm1, 1, FLT, SAME)                                 \
    X(log, 1, FLT, SAME) X(log2, 1, FLT, SAME) X(log10, 1, FLT, SAME) X(log1p, 1, FLT, SAME)          \
    X(sin, 1, FLT, PERIODIC) X(cos, 1, FLT, PERIODIC) X(tan, 1, FLT, SAME)                            \
    X(asin, 1, FLT, SAME) X(acos, 1, FLT, SAME) X(atan, 1, FLT, SAME)                                 \
    X(sinh, 1, FLT, SAME) X(cosh, 1, FLT, SAME) X(tanh, 1, FLT, SAME)                                 \
    X(asinh, 1, FLT, SAME) X(acosh, 1, FLT, SAME) X(atanh, 1, FLT, SAME)                              \
    X(erf, 1, FLT, SAME) X(erfc, 1, FLT, SAME) X(erfinv, 1, FLT, SAME)                                \
    X(lgamma, 1, FLT, SAME) X(digamma, 1, FLT, SAME)                                                  \
    X(sigmoid, 1, FLT, SAME) X(logsigmoid, 1, FLT, SAME) X(softplus, 1, FLT, SAME)                    \
    X(silu, 1, FLT, SAME) X(gelu, 1, FLT, SAME) X(gelu_tanh, 1, FLT, SAME)                            \
    X(sqrt, 1, FLT, SAME) X(rsqrt, 1, FLT, SAME) X(reciprocal, 1, FLT, SAME)                          \
    X(neg, 1, NUM, SAME) X(abs, 1, NUM, SAME) X(sign, 1, ALL, SAME) X(square, 1, NUM, SAME)           \
    X(relu, 1, NUM, SAME) X(positive, 1, NUM, SAME)                                                   \
    X(floor, 1, NUM, SAME) X(ceil, 1, NUM, SAME) X(round, 1, NUM, SAME) X(trunc, 1, NUM, SAME)        \
    X(frac, 1, REAL, SAME) X(cube, 1, REAL, SAME)                                                     \
    X(isnan, 1, ALL, BOOL) X(isinf, 1, ALL, BOOL) X(isfinite, 1, ALL, BOOL) X(signbit, 1, ALL, BOOL)  \
    X(logical_not, 1, ALL, BOOL) X(bitwise_not, 1, INT, SAME)                                         \
    /* binary */                                                                                      \
    X(add, 2, ALL, SAME) X(sub, 2, NUM, SAME) X(mul, 2, ALL, SAME) X(div, 2, FLT, SAME)               \
    X(pow, 2, NUM, SAME) X(fmod, 2, NUM, SAME) X(remainder, 2, NUM, SAME)                             \
    X(floor_divide, 2, NUM, SAME) X(trunc_divide, 2, NUM, SAME)                                       \
    X(maximum, 2, ALL, SAME) X(minimum, 2, ALL, SAME) X(fmax, 2, ALL, SAME) X(fmin, 2, ALL, SAME)     \
    X(atan2, 2, FLT, SAME) X(hypot, 2, REAL, SAME) X(copysign, 2, FLT, SAME)                          \
    X(nextafter, 2, REAL, SAME) X(logaddexp, 2, REAL, SAME) X(xlogy, 2, FLT, SAME) X(zeta, 2, FLT, SAME) \
    X(heaviside, 2, ALL, SAME)                                                                        \
    X(smooth_l1, 2, REAL, SAME) X(huber, 2, REAL, SAME)                                               \
    X(eq, 2, ALL, BOOL) X(ne, 2, ALL, BOOL) X(lt, 2, ALL, BOOL) X(le, 2, ALL, BOOL)                   \
    X(gt, 2, ALL, BOOL) X(ge, 2, ALL, BOOL)                                                           \
    X(logical_and, 2, ALL, BOOL) X(logical_or, 2, ALL, BOOL) X(logical_xor, 2, ALL, BOOL)             \
    X(bitwise_and, 2, INT, SAME) X(bitwise_or, 2, INT, SAME) X(bitwise_xor, 2, INT, SAME)             \
    X(bitwise_left_shift, 2, INTS, SAME) X(bitwise_right_shift, 2, INTS, SAME)                        \
    /* kernels of derivatives: (gradient, saved value) */                                             \
    X(relu_backward, 2, NUM, SAME) X(sigmoid_backward, 2, FLT, SAME) X(tanh_backward, 2, FLT, SAME)   \
    X(silu_backward, 2, FLT, SAME) X(gelu_backward, 2, FLT, SAME) X(gelu_tanh_backward, 2, FLT, SAME) \
    /* ternary */                                                                                     \
    X(where, 3, ALL, SELECT) X(clamp, 3, NUM, SAME) X(lerp, 3, REAL, SAME)                            \
    X(addcmul, 3, NUM, SAME) X(addcdiv, 3, REAL, SAME) X(masked_scale, 3, REAL, SELECT)               \
    /* kernels of derivatives: (gradient, difference, bound) */                                       \
    X(smooth_l1_backward, 3, REAL, SAME) X(huber_backward, 3, REAL, SAME)

/* Operators that begin like the kernel of their derivative, for the same x: X(name, derivative). The interpreter of fused
 * mode has loops that do both (float32); in generated code a compiler finds it. */
#define TT_PAIRS(X) X(gelu, gelu_backward) X(silu, silu_backward)

#define TT_DTYPES_FLT(M, op) M(op, f32) M(op, f64)
#define TT_DTYPES_REAL(M, op) TT_DTYPES_FLT(M, op)
#define TT_DTYPES_INTS(M, op) M(op, u8) M(op, i8) M(op, i16) M(op, i32) M(op, i64)
#define TT_DTYPES_NUM(M, op) TT_DTYPES_FLT(M, op) TT_DTYPES_INTS(M, op)
#define TT_DTYPES_ALL(M, op) TT_DTYPES_NUM(M, op) M(op, b8)
#define TT_DTYPES_INT(M, op) TT_DTYPES_INTS(M, op) M(op, b8)
