/* What is known of the elementwise operators, from the list in scalar/ops.h: the same for every backend. */
#pragma once
#include "core/tt.h"
#include "scalar/ops.h"

#define TT_OP_ENUM(name, ...) TT_OP_##name,
enum { TT_OPS(TT_OP_ENUM) TT_NUM_OPS };
#define TT_PAIR_ENUM(name, derivative) TT_PAIR_##name,
enum { TT_NO_PAIR, TT_PAIRS(TT_PAIR_ENUM) TT_NUM_PAIRS };

/* Domains and rules: scalar/ops.h. */
enum { TT_FLT, TT_REAL, TT_NUM, TT_ALL, TT_INT, TT_INTS, TT_NONE };
enum { TT_SAME, TT_PERIODIC, TT_SELECT, TT_BOOL_RESULT, TT_PART }; /* the last two may give another dtype */
extern const struct tt_op {
    const char *name;
    int8_t arity, domain, rule;
} tt_ops[TT_NUM_OPS];
/* The dtype of the result of an operator that computes in `dtype`. */
static inline int tt_result_dtype(int op, int dtype) {
    if (tt_ops[op].rule < TT_BOOL_RESULT) return dtype;
    return tt_ops[op].rule == TT_PART ? tt_real_dtype(dtype) : TT_BOOL;
}
#define TT_COSTLY 8 /* of an operator's cost: fewer elements are worth a thread */

int tt_op_weight(int op);                             /* the cost of an element, in additions */
int tt_compute_of(int op, int operand, int dtype);    /* what a loop wants of it (operand 0: the result) */
bool tt_divides_integers(int op, int dtype);          /* must the divisor not be 0? */
