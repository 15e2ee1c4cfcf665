/* The reducers, X(name, reads, flops), and the reductions that are made of them, X(name, reducer, rule, then,
 * identity).
 *
 * reads: the dtypes that elements may have:
 *   FLT  float32, float64             SUMS   those and int64
 *   EVERY  all that are computed in   TRUTH  bool, with int64 accumulators
 * flops: floating-point operations for an element
 * rule: the result's dtype. LIKE_SUM  the input's, for integers int64     SAME  the input's       NUMBER  int64
 *                           FLOATING  the input's, which must be floating  TRUTH  bool
 * then: what is left to do with an accumulator: nothing (ALONE), DIVIDE by the number of elements, ROOT, DIVIDE_VALID
 *       by the result of the reducer `valid`
 * identity: the result for no elements; -1: there is none
 *
 * Enumerators, loops, their tables, and tinytorch/scalar.py follow from the lists. A reducer itself is three macros:
 * what one element contributes, how two accumulators join, and what joined to anything leaves it as it is, to the bit
 * (so -0 and not 0 for sums), for lanes without elements. Note [The tree of a reduction] in backend/reduction.h. They
 * use the functions of arith.h.
 *
 *   TT_MAP_<reducer>(X, x, p)    of an element x of dtype X; p: what the reducer has to know of the result
 *   TT_JOIN_<reducer>(X, a, b)   in this order
 *   TT_NONE_<reducer>(X) */
#pragma once

/* clang-format off */
#define TT_REDUCERS(X)                                                                        \
    X(sum, SUMS, 1) X(prod, SUMS, 1) X(max, EVERY, 1) X(min, EVERY, 1)                        \
    X(count, TRUTH, 1)      /* of bools that hold */                                          \
    X(nansum, FLT, 2)       /* NaN counts as 0 */                                             \
    X(valid, FLT, 1)        /* how many are not NaN */                                        \
    X(abssum, FLT, 2) X(sqsum, FLT, 2) X(maxabs, FLT, 2) X(minabs, FLT, 2) X(nonzero, FLT, 1) \
    X(devsq, FLT, 3)        /* (x - parameter)^2 */                                           \
    X(expsum, FLT, 20)      /* exp(x - parameter) */

#define TT_REDUCTIONS(X)                                                                           \
    X("sum", sum, LIKE_SUM, ALONE, 0) X("mean", sum, FLOATING, DIVIDE, 0)                          \
    X("prod", prod, LIKE_SUM, ALONE, 1) X("nansum", nansum, LIKE_SUM, ALONE, 0)                    \
    X("count_valid", valid, FLOATING, ALONE, 0) X("nanmean", nansum, FLOATING, DIVIDE_VALID, 0)    \
    X("amax", max, SAME, ALONE, -1) X("amin", min, SAME, ALONE, -1)                                \
    X("max", max, SAME, ALONE, -1) X("min", min, SAME, ALONE, -1)                                  \
    X("any", max, TRUTH, ALONE, 0) X("all", min, TRUTH, ALONE, 1)                                  \
    X("count_nonzero", count, NUMBER, ALONE, 0)                                                    \
    X("norm_0", nonzero, FLOATING, ALONE, 0) X("norm_1", abssum, FLOATING, ALONE, 0)               \
    X("norm_2", sqsum, FLOATING, ROOT, 0)                                                          \
    X("norm_inf", maxabs, FLOATING, ALONE, -1) X("norm_-inf", minabs, FLOATING, ALONE, -1)
/* clang-format on */

/* Those that read complex numbers, too. M(name, x) */
#define TT_COMPLEX_REDUCERS(M) M(sum, c64) M(sum, c128) M(prod, c64) M(prod, c128)

/* M(name, x, a) for each dtype that a reducer reads; a: its accumulators' */
#define TT_READS_FLT(M, name) M(name, f32, f32) M(name, f64, f64)
#define TT_READS_SUMS(M, name) TT_READS_FLT(M, name) M(name, i64, i64)
#define TT_READS_EVERY(M, name)                                                                                        \
    TT_READS_SUMS(M, name) M(name, b8, b8) M(name, u8, u8) M(name, i8, i8) M(name, i16, i16) M(name, i32, i32)
#define TT_READS_TRUTH(M, name) M(name, b8, i64)

#define TT_RED_PASTE_(a, b) a##b
#define TT_RED_PASTE(a, b) TT_RED_PASTE_(a, b)

#define TT_PLUS_f32(a, b) ((a) + (b))
#define TT_PLUS_f64(a, b) ((a) + (b))
#define TT_PLUS_i64(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b))) /* overflow wraps */
#define TT_TIMES_f32(a, b) ((a) * (b))
#define TT_TIMES_f64(a, b) ((a) * (b))
#define TT_TIMES_i64(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
/* NaN wins; of equal ones the second. */
#define TT_LARGER(a, b) (((a) > (b)) | ((a) != (a)) ? (a) : (b))
#define TT_SMALLER(a, b) (((a) < (b)) | ((a) != (a)) ? (a) : (b))

#define TT_ZERO_f32 -0.0f
#define TT_ZERO_f64 -0.0
#define TT_ZERO_i64 0
#define TT_ONE_f32 1
#define TT_ONE_f64 1
#define TT_ONE_i64 1
#define TT_PLUS_c64(a, b) tt_add_c64(a, b)
#define TT_PLUS_c128(a, b) tt_add_c128(a, b)
#define TT_TIMES_c64(a, b) tt_mul_c64(a, b)
#define TT_TIMES_c128(a, b) tt_mul_c128(a, b)
#define TT_ZERO_c64 tt_complex_f32(-0.0f, -0.0f)
#define TT_ZERO_c128 tt_complex_f64(-0.0, -0.0)
#define TT_ONE_c64 tt_complex_f32(1, 0)
#define TT_ONE_c128 tt_complex_f64(1, 0)
#define TT_LOWEST_b8 0
#define TT_HIGHEST_b8 1
#define TT_LOWEST_u8 0
#define TT_HIGHEST_u8 255
#define TT_LOWEST_i8 (-128)
#define TT_HIGHEST_i8 127
#define TT_LOWEST_i16 (-32768)
#define TT_HIGHEST_i16 32767
#define TT_LOWEST_i32 (-2147483647 - 1)
#define TT_HIGHEST_i32 2147483647
#define TT_LOWEST_i64 (-9223372036854775807 - 1)
#define TT_HIGHEST_i64 9223372036854775807
#define TT_LOWEST_f32 -TT_INF_F32
#define TT_HIGHEST_f32 TT_INF_F32
#define TT_LOWEST_f64 -TT_INF_F64
#define TT_HIGHEST_f64 TT_INF_F64

#define TT_MAP_sum(X, x, p) (x)
#define TT_MAP_prod(X, x, p) (x)
#define TT_MAP_max(X, x, p) (x)
#define TT_MAP_min(X, x, p) (x)
#define TT_MAP_count(X, x, p) ((int64_t)(x))
#define TT_MAP_nansum(X, x, p) ((x) == (x) ? (x) : 0)
#define TT_MAP_valid(X, x, p) ((x) == (x) ? (TT_RED_PASTE(TT_C_, X))1 : (TT_RED_PASTE(TT_C_, X))0)
#define TT_MAP_abssum(X, x, p) TT_RED_PASTE(tt_abs_, X)(x)
#define TT_MAP_sqsum(X, x, p) ((x) * (x))
#define TT_MAP_maxabs(X, x, p) TT_RED_PASTE(tt_abs_, X)(x)
#define TT_MAP_minabs(X, x, p) TT_RED_PASTE(tt_abs_, X)(x)
#define TT_MAP_nonzero(X, x, p) ((x) != 0 ? (TT_RED_PASTE(TT_C_, X))1 : (TT_RED_PASTE(TT_C_, X))0)
#define TT_MAP_devsq(X, x, p) (((x) - (p)) * ((x) - (p)))
#define TT_MAP_expsum(X, x, p) TT_RED_PASTE(tt_exp_, X)((x) - (p))

#define TT_JOIN_sum(X, a, b) TT_RED_PASTE(TT_PLUS_, X)(a, b)
#define TT_JOIN_prod(X, a, b) TT_RED_PASTE(TT_TIMES_, X)(a, b)
#define TT_JOIN_max(X, a, b) TT_LARGER(a, b)
#define TT_JOIN_min(X, a, b) TT_SMALLER(a, b)
#define TT_JOIN_count(X, a, b) TT_PLUS_i64(a, b)
#define TT_JOIN_nansum TT_JOIN_sum
#define TT_JOIN_valid TT_JOIN_sum
#define TT_JOIN_abssum TT_JOIN_sum
#define TT_JOIN_sqsum TT_JOIN_sum
#define TT_JOIN_maxabs TT_JOIN_max
#define TT_JOIN_minabs TT_JOIN_min
#define TT_JOIN_nonzero TT_JOIN_sum
#define TT_JOIN_devsq TT_JOIN_sum
#define TT_JOIN_expsum TT_JOIN_sum

#define TT_NONE_sum(X) TT_RED_PASTE(TT_ZERO_, X)
#define TT_NONE_prod(X) TT_RED_PASTE(TT_ONE_, X)
#define TT_NONE_max(X) TT_RED_PASTE(TT_LOWEST_, X)
#define TT_NONE_min(X) TT_RED_PASTE(TT_HIGHEST_, X)
#define TT_NONE_count(X) 0
#define TT_NONE_nansum TT_NONE_sum
#define TT_NONE_valid TT_NONE_sum
#define TT_NONE_abssum TT_NONE_sum
#define TT_NONE_sqsum TT_NONE_sum
#define TT_NONE_maxabs TT_NONE_max
#define TT_NONE_minabs TT_NONE_min
#define TT_NONE_nonzero TT_NONE_sum
#define TT_NONE_devsq TT_NONE_sum
#define TT_NONE_expsum TT_NONE_sum
