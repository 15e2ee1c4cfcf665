/* Rows of softmax, normalisation and classification losses. Every sum over a row is taken in the tree of
 * Note [The tree of a reduction], so that its bits depend neither on the instruction set nor on threads, and are those
 * of the same function written as elementwise operators and reductions: Note [Rows, recorded] in fuse/nn_record.c. */
#include "cpu/simd.h"
#include "cpu/nn.h"
#include "cpu/reduce.h"
#include "scalar/arith.h"
#include <string.h>

#define LANES TT_LANES
_Static_assert(LANES == 32, "the lanes are joined in five steps");
#define HALVE(s, h, JOIN)                                                                                              \
    for (int l = 0; l < h; l++) s[l] = JOIN(s[l], s[l + h]);
#define JOIN_LANES(s, JOIN) HALVE(s, 16, JOIN) HALVE(s, 8, JOIN) HALVE(s, 4, JOIN) HALVE(s, 2, JOIN) HALVE(s, 1, JOIN)
#define PLUS(a, b) ((a) + (b))
#define LARGER(a, b) ((b) > (a) ? (b) : (a))

/* for every i < n: BODY, where l is the lane of i; BEFORE and AFTER every block */
#define OVER_ROW(BEFORE, BODY, AFTER)                                                                                  \
    {                                                                                                                  \
        int64_t i0 = 0;                                                                                                \
        do {                                                                                                           \
            BEFORE;                                                                                                    \
            int64_t stop = n - i0 < TT_BLOCK ? n : i0 + TT_BLOCK;                                                      \
            for (; i0 + LANES <= stop; i0 += LANES) {                                                                  \
                TT_INDEPENDENT                                                                                         \
                for (int l = 0; l < LANES; l++) {                                                                      \
                    int64_t i = i0 + l;                                                                                \
                    BODY;                                                                                              \
                }                                                                                                      \
            }                                                                                                          \
            for (int l = 0; i0 + l < stop; l++) {                                                                      \
                int64_t i = i0 + l;                                                                                    \
                BODY;                                                                                                  \
            }                                                                                                          \
            i0 = stop;                                                                                                 \
            AFTER;                                                                                                     \
        } while (i0 < n);                                                                                              \
    }

/* sum = the TERMs of all i < n, after BODY for each */
#define ADD_UP(sum, BODY, TERM)                                                                                        \
    {                                                                                                                  \
        OF(tree) tree;                                                                                                 \
        T s[LANES];                                                                                                    \
        tree.waiting = 0;                                                                                              \
        OVER_ROW(OF(clear)(s), BODY; s[l] += TERM, OF(block)(&tree, s, i0))                                            \
        sum = OF(total)(&tree);                                                                                        \
    }

#define T float
#define OF(name) name##_f32
#include "cpu/simd/nn_loops.h"
#define T double
#define OF(name) name##_f64
#include "cpu/simd/nn_loops.h"

#define TABLE(T)                                                                                                       \
    {softmax_##T,       softmax_columns_##T, softmax_backward_##T, softmax_backward_columns_##T, norm_##T,             \
     norm_backward_##T, weight_##T,          class_loss_##T,       class_loss_backward_##T}
const tt_nn_table TT_LOCAL(tt_nn) = {TABLE(f32), TABLE(f64)};
