/* What the planner's parts share: recorded operators as it sees them. Note [Planning] in partition.c. */
#pragma once
#include "fuse/fuse.h"

typedef struct {
    int mode, id, dtype;
    int64_t offset;              /* bytes */
    int64_t steps[TT_FUSE_DIMS];  /* bytes, along the node's space; a reduction's result: along its kept dimensions */
    int writer;                  /* the node that wrote the storage last before this one; -1: none */
    int inside;                  /* level of the value where it is passed on within a kernel; -1: through memory */
    int next;                    /* the operand that read the storage through memory before this one; -1 */
} tt_operand;

typedef struct {
    int kind, op, dtype, n;
    int nd;                      /* its space: the shape without dimensions of size 1 */
    int64_t space[TT_FUSE_DIMS], numel;
    int64_t mask;                /* a reduction's, of dimensions of the space */
    tt_operand o[4];             /* 0: the result */
    bool whole;                  /* it writes all of its storage */
    bool ordered;                /* a reduction's operand lies row-major */
    bool recipe;                 /* part of the same operator as the node before */
    bool dead, stored, covered;  /* not used; stored to memory; a later node overwrites it */
    int kernel, level;           /* level 2: the result of a reduction that is there after the kernel */
    int slot;
} tt_node;

typedef struct {
    int nd;
    int64_t space[TT_FUSE_DIMS], numel;
    int pattern, kept;             /* as in tt_kernel */
    int64_t mask;
    int num_nodes, num_operands;
    bool alone;                  /* one operator on a device, whose eager kernel does it */
    int family;                  /* a storage of the family that its first node is of: see partition.c */
} tt_group;

typedef struct {
    int32_t storage;
    int first, last;   /* waves: kernels that run side by side */
    int64_t nbytes, offset;
} tt_temporary;

typedef struct tt_plan {
    tt_program program;
    struct tt_plan *next;        /* in the table of programs */
    uint64_t hash;
    int users;                   /* runs of it under way; Python may look at it after one */
    int num_temporaries;
    tt_temporary *temporaries;
    int64_t temporary_bytes;
} tt_plan;

/* partition.c: gives each node a kernel, and says whether it is stored; how many kernels there are, in the order in
 * which they run. -1: out of memory. */
int tt_partition_nodes(tt_group *groups, tt_node *nodes, const tt_trace *t);

/* lower.c: the kernel of a group's nodes. False: out of memory. */
bool tt_lower_kernel(tt_kernel *k, const tt_group *d, int number, tt_node *nodes, int num_nodes);

/* allocate.c: assigns buffers to slots; chooses the slots that compiled functions recompute; lists the parts of each
 * stage. False: out of memory. */
bool tt_allocate_buffers(tt_kernel *k);
void tt_choose_recomputed(tt_kernel *k);
bool tt_list_parts(tt_kernel *k);

/* Of rows that follow one another: how many of them make whole blocks of TT_BLOCK elements. */
static inline int64_t tt_whole_blocks(int64_t row) {
    int64_t power = row & -row;
    return power < TT_BLOCK ? TT_BLOCK / power : 1;
}

static inline int64_t tt_last_size(int nd, const int64_t *space, int from) {
    int64_t n = 1;
    for (int d = from; d < nd; d++) n *= space[d];
    return n;
}
