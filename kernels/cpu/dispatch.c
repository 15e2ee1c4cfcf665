/* Chooses the instruction set at load: the best one that was built and that this CPU has. */
#include "cpu/simd.h"
#include <stdlib.h>
#include <string.h>
#ifdef TT_X86
#include <cpuid.h>
#endif

#define DECLARE(isa)                                                                                                   \
    extern const tt_op_loops tt_op_table_##isa[];                                                                      \
    extern const tt_loop tt_pair_table_##isa[];                                                                        \
    extern const tt_cast_loops tt_cast_table_##isa[];                                                                  \
    extern tt_superinstruction_fn tt_superinstruction_run_##isa;                                                       \
    extern void *const tt_step_table_##isa[];
/* clang-format off */
#define TABLES(isa) \
    {#isa, tt_op_table_##isa, tt_pair_table_##isa, tt_cast_table_##isa, tt_superinstruction_run_##isa, \
     tt_step_table_##isa}
/* clang-format on */

DECLARE(baseline)
#ifdef TT_X86
DECLARE(avx2)
DECLARE(avx512)
#endif

static const struct tt_isa isas[] = {
    TABLES(baseline),
#ifdef TT_X86
    TABLES(avx2),
    TABLES(avx512),
#endif
};

const struct tt_isa *tt_isa = &isas[0];
int tt_isa_index;

#ifdef TT_X86
/* Compilers of before 2021 cannot ask for it by name. */
static bool has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

static bool has(int k) {
#ifdef TT_X86
    if (k == 1) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    if (k == 2)
        return has(1) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return k == 0;
}

const struct tt_isa *tt_get_isa(int index) { return index < (int)(sizeof isas / sizeof *isas) ? &isas[index] : NULL; }

const char *tt_isa_name(void) { return tt_isa->name; }

int tt_set_isa(const char *name) {
    for (size_t k = 0; k < sizeof isas / sizeof *isas; k++)
        if (strcmp(isas[k].name, name) == 0 && has((int)k)) {
            tt_isa = &isas[tt_isa_index = (int)k];
            return 0;
        }
    tt_fail(TT_VALUE_ERROR, "no kernels for the instruction set '%s' on this machine", name);
    return -1;
}

__attribute__((constructor)) static void choose(void) {
#ifdef TT_X86
    __builtin_cpu_init();
#endif
    for (size_t k = 0; k < sizeof isas / sizeof *isas; k++)
        if (has((int)k)) tt_isa = &isas[tt_isa_index = (int)k];
}
