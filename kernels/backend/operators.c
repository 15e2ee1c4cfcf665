/* What is known of the elementwise operators: operators.h. */
#include "backend/operators.h"
#include "api/cuda.h"
#include "api/fuse.h"
#include <string.h>

enum { FLT = TT_FLT, REAL = TT_REAL, NUM = TT_NUM, ALL = TT_ALL, INT = TT_INT, INTS = TT_INTS };
enum { SAME = TT_SAME, BOOL = TT_BOOL_RESULT, PERIODIC = TT_PERIODIC, SELECT = TT_SELECT };
const struct tt_op_info tt_ops[TT_NUM_OPS] = {
#define INFO(name, arity, domain, rule) {#name, arity, domain, rule},
    TT_OPS(INFO)
};

int tt_op_code(const char *name) {
    for (int op = 0; op < TT_NUM_OPS; op++)
        if (strcmp(tt_ops[op].name, name) == 0) return op;
    return -1;
}
int tt_op_arity(int op) { return tt_ops[op].arity; }
const char *tt_op_name(int op) { return tt_ops[op].name; }
int tt_op_weight(int op) { return tt_ops[op].domain <= TT_REAL && op != TT_OP_div ? 8 : 1; }

bool tt_divides_integers(int op, int dtype) {
    return tt_kind_of(dtype) != TT_KIND_FLOAT &&
           (op == TT_OP_floor_divide || op == TT_OP_trunc_divide || op == TT_OP_remainder || op == TT_OP_fmod);
}

int tt_compute_of(int op, int operand, int dtype) {
    if (tt_ops[op].rule == TT_SELECT && operand == 1) return TT_BOOL;
    if (tt_ops[op].rule == TT_BOOL_RESULT && operand == 0) return TT_BOOL;
    return tt_compute_dtype(dtype);
}
