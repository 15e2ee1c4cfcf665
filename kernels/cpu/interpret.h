/* A kernel of fused mode at work: what interpret_launch.c makes ready and interpret.c does, in blocks
 * (interpret_block.c). */
#pragma once
#include "backend/kernel.h"
#include "cpu/reduce.h"
#include "cpu/simd.h"

#define TT_ROW 512 /* as in iterate.c: rows this long are not mixed in a block, so that most operands lie in place */
#define TT_SHORT 16 /* rows up to this are reduced side by side */

/* Memory for the threads at work, one arena for each. */
typedef struct {
    char *memory;
    int64_t size;
    int num;
    unsigned char busy[256];
} tt_arenas;

typedef struct {
    const tt_kernel *k;
    char **data; /* of each access */
    const tt_number *numbers;
    tt_arenas *arenas; /* shared by the kernels that run side by side */
    char **parts; /* SPLIT_REDUCTION, OUTER_REDUCTION, totals: of each reduction, the blocks' results */
    int64_t tile; /* OUTER_REDUCTION: how many of them are worked on side by side */
    int64_t shares; /* OUTER_REDUCTION: into how many the lanes of a block are divided, for as many threads */
    bool direct; /* every operand lies in place: no need for blocks */
    bool *repeated; /* of each slot: an operand broadcast so that every block holds the same elements of it */
    bool compiled; /* asked once: the compiler may bring its functions at any time */
    tt_range_fn range; /* what does units of it, with this structure as context */
    int64_t units, grain; /* how many there are, and how many of them are worth a thread */
    int64_t first; /* of a group: pieces of the kernels before this one */
} tt_kernel_job;

/* interpret.c: how a kernel is divided (range, units, grain, tile and shares of a job whose `compiled` and `direct` are
 * known; `work`: additions that are worth a thread), the memory it needs for each thread and for a reduction's parts in
 * bytes, and its end, once all units are done. */
void tt_job_divide(tt_kernel_job *j, int64_t work);
int64_t tt_job_arena(const tt_kernel_job *j);
int64_t tt_job_parts(const tt_kernel_job *j, int reduction);
void tt_job_write_out(const tt_kernel_job *j);
bool tt_job_extern(const tt_kernel_job *j); /* an EXTERN kernel. False: out of memory */

/* One thread's view of a kernel at work. */
typedef struct {
    const tt_kernel_job *j;
    const tt_kernel *k;
    char *arena, **p; /* p: of each slot, where it stands */
    int which;
} tt_kernel_worker;

/* interpret_block.c: takes an arena and finds the slots whose place does not depend on the block; gives the arena
 * back. */
void tt_worker_start(tt_kernel_worker *w, const tt_kernel_job *j, char **slots);
void tt_worker_stop(tt_kernel_worker *w);
/* A stage's work on n elements from `at` on (`in_group`: their place in values that cross stages); on rows, one value
 * each; the elements of a LOAD slot, where they lie or copied to its buffer. */
void tt_worker_block(tt_kernel_worker *w, int stage, int64_t at, int64_t n, int64_t in_group);
void tt_worker_rows(tt_kernel_worker *w, int stage, int64_t first, int64_t rows);
char *tt_worker_load(const tt_kernel_worker *w, int slot, int64_t at, int64_t n);
