/* What one instruction set provides. Every file in simd/ is compiled once for each, with TT_ISA set to its name, and
 * defines tables of that suffix; dispatch.c gathers them. */
#pragma once
#include "core/tt.h"
#include "backend/operators.h"
#include "cpu/iterate.h"
#include "scalar/loop.h"

#define TT_PASTE_(a, b) a##_##b
#define TT_PASTE(a, b) TT_PASTE_(a, b)
#define TT_LOCAL(name) TT_PASTE(name, TT_ISA)

struct tt_step;
typedef tt_loop tt_op_loops[TT_NUM_DTYPES];       /* by the dtype computed in; NULL where there is none */
typedef tt_cast_loop tt_cast_loops[TT_NUM_DTYPES]; /* [from][to] */
/* Where it ended, see superinstructions.h; twice: elements may be done again. */
typedef int64_t tt_superinstruction_fn(const struct tt_step *s, char **p, int64_t from, int64_t end, bool twice);

#define TT_ISAS 3 /* at most */

struct tt_isa {
    const char *name;
    const tt_op_loops *ops;
    const tt_loop *pairs;
    const tt_cast_loops *casts;
    tt_superinstruction_fn *superinstruction;
    void *const *steps;
};

const struct tt_isa *tt_get_isa(int index); /* NULL: there is none of that number */

/* The chosen one: dispatch.c. */
extern const struct tt_isa *tt_isa;
extern int tt_isa_index;

/* A family of kernels with loops of its own in simd/ gathers them in one struct per instruction set, named
 * TT_LOCAL(name); this makes `name[tt_isa_index]` the chosen one. */
#ifdef TT_X86
#define TT_ISA_TABLES(type, name)                                                                                      \
    extern const type name##_baseline, name##_avx2, name##_avx512;                                                     \
    static const type *const name[] = {&name##_baseline, &name##_avx2, &name##_avx512};
#else
#define TT_ISA_TABLES(type, name)                                                                                      \
    extern const type name##_baseline;                                                                                 \
    static const type *const name[] = {&name##_baseline};
#endif
