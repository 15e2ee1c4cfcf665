/* Pooling of one plane, or of some of its channels. A window's elements are taken in row-major order, in which sums are
 * added up; of equal maxima the first counts, and of NaNs the last, as in PyTorch. */
#include "cpu/simd.h"
#include "cpu/windows.h"
#include <string.h>

/* for every window of the plane: a, b, c are its parts of the three axes, i its number */
#define OVER_WINDOWS(...)                                                                                              \
    const tt_pool_work *w = j->w;                                                                                      \
    const tt_window *first = j->rows + outer * j->rows_of_plane, *second = first + w->axes[0].out,                     \
                    *third = second + w->axes[1].out;                                                                  \
    int64_t i = 0;                                                                                                     \
    for (int64_t i0 = 0; i0 < w->axes[0].out; i0++)                                                                    \
        for (int64_t i1 = 0; i1 < w->axes[1].out; i1++)                                                                \
            for (int64_t i2 = 0; i2 < w->axes[2].out; i2++, i++) {                                                     \
                const tt_window a = first[i0], b = second[i1], c = third[i2];                                          \
                __VA_ARGS__                                                                                            \
            }

/* for every element of window (a, b, c): `at` is its place in the plane */
#define OVER_WINDOW(...)                                                                                               \
    for (int64_t d = 0; d < a.count; d++)                                                                              \
        for (int64_t h = 0; h < b.count; h++) {                                                                        \
            int64_t row =                                                                                              \
                ((a.first + d * w->axes[0].step) * w->axes[1].in + b.first + h * w->axes[1].step) * w->axes[2].in +    \
                c.first;                                                                                               \
            for (int64_t k = 0; k < c.count; k++) {                                                                    \
                int64_t at = row + k * w->axes[2].step;                                                                \
                __VA_ARGS__                                                                                            \
            }                                                                                                          \
        }

#define T float
#define IS_NAN(x) ((x) != (x))
#define MARK int32_t /* of T's size */
#define LOWEST (-__builtin_inff())
#define OF(name) name##_f32
#include "cpu/simd/windows_loops.h"
#define T double
#define IS_NAN(x) ((x) != (x))
#define MARK int64_t /* of T's size */
#define LOWEST (-__builtin_inf())
#define OF(name) name##_f64
#include "cpu/simd/windows_loops.h"
#define T int64_t
#define IS_NAN(x) false
#define MARK int64_t /* of T's size */
#define LOWEST INT64_MIN
#define OF(name) name##_i64
#include "cpu/simd/windows_loops.h"

#define TABLE(T) {max_##T, average_##T, max_backward_##T, average_backward_##T}
const tt_pool_table TT_LOCAL(tt_pool) = {TABLE(f32), TABLE(f64), TABLE(i64)};
