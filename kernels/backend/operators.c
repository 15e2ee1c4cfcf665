/* What is known of the elementwise operators: operators.h. */
#include "backend/operators.h"
#include "api/cuda.h"
#include <string.h>

enum { FLT = TT_FLT, REAL = TT_REAL, NUM = TT_NUM, ALL = TT_ALL, INT = TT_INT, INTS = TT_INTS, NONE = TT_NONE };
enum { SAME = TT_SAME, BOOL = TT_BOOL_RESULT, PERIODIC = TT_PERIODIC, SELECT = TT_SELECT, PART = TT_PART };
const struct tt_op tt_ops[TT_NUM_OPS] = {
#define INFO(name, arity, domain, rule, flops, cost) {#name, arity, domain, rule},
    TT_OPS(INFO)};
#define PAIR(op, derivative) [TT_OP_##op] = TT_PAIR_##op, [TT_OP_##derivative] = TT_PAIR_##op,
static const int8_t pairs[TT_NUM_OPS] = {TT_PAIRS(PAIR)};
#define FACTS(special, name, arity, domain, rule, flops, cost)                                                         \
    {#name, arity, rule == BOOL, rule == PERIODIC, flops, cost, 0, #domain, special},
#define COMMON(...) FACTS(0, __VA_ARGS__)
#define SPECIAL(...) FACTS(1, __VA_ARGS__)
static tt_op_info facts[TT_NUM_OPS] = {TT_COMMON_OPS(COMMON) TT_SPECIAL_OPS(SPECIAL)};
__attribute__((constructor)) static void set_pairs(void) {
    for (int op = 0; op < TT_NUM_OPS; op++) facts[op].pair = pairs[op];
}

int tt_op_code(const char *name) {
    for (int op = 0; op < TT_NUM_OPS; op++)
        if (strcmp(tt_ops[op].name, name) == 0) return op;
    return -1;
}
const tt_op_info *tt_op_facts(int op) { return op >= 0 && op < TT_NUM_OPS ? &facts[op] : NULL; }
int tt_op_weight(int op) { return facts[op].cost >= TT_COSTLY ? 8 : 1; }

bool tt_divides_integers(int op, int dtype) {
    return tt_is_integral(dtype) &&
           (op == TT_OP_floor_divide || op == TT_OP_trunc_divide || op == TT_OP_remainder || op == TT_OP_fmod);
}

int tt_compute_of(int op, int operand, int dtype) {
    if (tt_ops[op].rule == TT_SELECT && operand == 1) return TT_BOOL;
    return operand ? tt_compute_dtype(dtype) : tt_result_dtype(op, tt_compute_dtype(dtype));
}
