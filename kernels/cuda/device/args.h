/* What the host hands to kernels: plain structures that the C compiler and NVRTC lay out alike. */
#pragma once
#ifndef __CUDACC_RTC__
#include <stdint.h>
#endif
#include "cuda/device/fault.h"
#include "scalar/codes.h"

#define TT_CUDA_THREADS 256 /* of a block, where nothing else is said */
#define TT_FLAT_THREADS 128 /* of one that goes through elements as they lie: smaller blocks end more evenly */
#define TT_CUDA_DIMS 16 /* of iteration, after merging */
#define TT_CUDA_MOST_DIMS 64 /* of an array */

/* Division by a number of up to 31 bits that is known before: x / size = (x * magic >> 32) + x >> shift, for x < 2^31
 * (Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994). */
typedef struct {
    uint32_t size, magic, shift;
} tt_divider;

/* An element of any dtype, as its bits. */
typedef struct {
    int64_t bits[2];
} tt_value;

/* elementwise, all operands one after the other. An input that is one element for all may be given by its value: its
 * bits, in the dtype computed in. */
typedef struct {
    int64_t numel;
    char *out;
    const char *in[3];
    tt_value value[3];
    tt_fault *fault; /* of a division */
} tt_flat_args;

/* mul_backward: the gradients of a * b from that of the product. Variant: in vectors. */
#define TT_MUL_BACKWARD_VECTORS 1
typedef struct {
    int64_t numel;
    const char *g, *a, *b;
    char *of_a, *of_b;
} tt_mul_backward_args;

/* elementwise, any layout; dimensions innermost first, steps in bytes, of the output and three inputs */
typedef struct {
    int64_t numel;
    char *out;
    const char *in[3];
    tt_value value[3];
    int32_t ndim, unused;
    int64_t size[TT_CUDA_DIMS];
    tt_divider by[TT_CUDA_DIMS];
    int64_t step[4][TT_CUDA_DIMS];
    tt_fault *fault; /* of a division */
} tt_strided_args;

/* transpose: a copy whose elements follow each other in memory in one dimension of `out` (`across`), and in another of
 * `in` (`along`); what is in a tile of both is a thread block's. Variant: log of a tile's side. Steps in bytes; other
 * dimensions innermost first. */
typedef struct {
    char *out;
    const char *in;
    int64_t across, along;
    int64_t in_step, out_step; /* of `in` across, of `out` along */
    uint32_t tiles_across, tiles_along;
    int32_t ndim, unused;
    uint32_t size[TT_CUDA_DIMS];
    int64_t in_steps[TT_CUDA_DIMS], out_steps[TT_CUDA_DIMS];
} tt_transpose_args;

/* matmul_int: c = a b, or c + a b; row-major, the stack's matrices `step` elements apart, c's without gaps */
typedef struct {
    const char *a, *b;
    char *c;
    int64_t m, n, k, lda, ldb, step_a, step_b, tiles_n;
    int32_t add, unused;
} tt_matmul_args;
#define TT_MATMUL_TILE 16
