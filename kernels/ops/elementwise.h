/* Elementwise operators. `in`: the operands. */
#pragma once
#include "core/array.h"

/* A Python number as an operand: a descriptor on the stack, of the widest dtype of its kind. */
typedef struct tt_weak {
    tt_array array;
    tt_storage storage;
    char element[TT_MAX_ITEMSIZE] __attribute__((aligned(16)));
} tt_weak;
tt_array *tt_weak_operand(tt_weak *number, int kind, const double *f, const int64_t *i);

tt_array *tt_elementwise(int op, int n, tt_array **in); /* of any operands */
/* Has `out` the dtype and the shape of the result? */
bool tt_elementwise_fits(int op, const tt_array *out, int n, tt_array *const *in);
int64_t tt_operands_stamp(const tt_array *out, int n, tt_array *const *in);
/* Must the operand k, where it is a Python number, be one that the dtype has? Arithmetic takes others, too. */
bool tt_must_fit(int op, int dtype, int k);
/* The operator of one operand that is `a` to the power of this number, or -1. */
int tt_power(const tt_array *a, const tt_array *number);

/* The commonest case: no fused mode, float32 or float64, contiguous, of one shape, few, on the CPU, and neither a view
 * nor to be waited for; all but the first may be numbers. NULL, or false, and nothing done, in all others. */
tt_array *tt_elementwise_small(int op, int n, tt_array *const *in);
bool tt_elementwise_small_into(int op, tt_array *out, int n, tt_array *const *in); /* the version is the caller's */
/* Fused mode's commonest operators in place: `b` is like `out`, or a number, or not there. True: it is done. */
bool tt_record_update(int op, tt_array *out, tt_array *b);
