/* Devices of NVIDIA's: see Note [Devices] in kernels/cpu/tt.h and Note [Launching] in kernels/cuda/cuda.h. */
#pragma once
#include "core.h"

/* Where this thread's functions allocate when no operand says it (0: the CPU, k + 1: cuda:k); the device before. To be
 * set back when the call that it was for returns. */
int tt_device_set(int device);

/* A kernel's key, bit by bit: family 8, operator 8, five dtypes of 4, variant 28. Its parts, in that order, into out[8];
 * and the family's name, which is that of its file in kernels/cuda. */
void tt_key_parts(int64_t key, int32_t *out);
const char *tt_family_name(int family); /* NULL: no such */
const char *tt_operator_name(int family, int op); /* of families over elementwise operators or reducers; "" else */
int tt_compute_of(int op, int operand, int dtype); /* what the loop of `op` wants: operand 0 is the result */

/* `a` on another device, at once for the CPU's readers; itself is never returned. */
tt_array *tt_to_device(tt_array *a, int device);
/* Memory of a device that somebody else owns. */
tt_array *tt_from_device(int device, int dtype, int ndim, int64_t *shape, int64_t *strides, void *data, int64_t nbytes,
                         void *owner, void (*release)(void *));

/* A product of matrices, c = alpha a b + beta c: all that the choice of an algorithm depends on, without gaps between the
 * fields. Matrices are row-major; one that is transposed lies as its transpose. */
typedef struct tt_gemm {
    int64_t m, n, k;
    int64_t lda, ldb;               /* from row to row as stored, in elements; of the result it is n */
    int64_t count, step_a, step_b;  /* of a stack: how many, and from one to the next (0: the same); of the result m n */
    int32_t dtype, trans;           /* trans: 1 for a, 2 for b */
    int32_t bias;                   /* n numbers are added to each row */
    int32_t align;                  /* binary logarithms of the alignment of a, b, c, bias in bytes, 4 bits each */
} tt_gemm;

/* What tt_cuda_copy moves. */
enum { TT_COPY_TO_DEVICE = 1, TT_COPY_TO_HOST, TT_COPY_ON_DEVICE };

