/* Attention in tiles: the arguments of its kernels, and the shapes of tiles that host and kernels agree on. Note
 * [Attention's tiles] in attention_tile.cuh. */
#pragma once
#include "cuda/device/random_args.h"

#define TT_ATTENTION_MOST 256 /* width of a head */
#define TT_ATTENTION_PAD 4 /* numbers behind a row in shared memory, so that neighbouring rows lie in other banks */
#define TT_ATTENTION_PAD_WEIGHTS 8

/* The variant's bits. A width is counted in 32 columns, rounded up, less one. */
#define TT_ATTENTION_WIDTH 0 /* 3 bits: of queries and keys */
#define TT_ATTENTION_OUT_WIDTH 3 /* 3 bits: of values */
#define TT_ATTENTION_WARPS 6 /* 2 bits: log of a thread block's warps */
#define TT_ATTENTION_MASK 8 /* 2 bits: */
#define TT_ATTENTION_BOOL 1
#define TT_ATTENTION_ADDED 2
#define TT_ATTENTION_DROPS (1 << 10)
#define TT_ATTENTION_PACKS (1 << 11) /* rows consist of aligned packs of four elements */

/* The rows that a thread has of a tile, and the columns, for widths of e and v and numbers of `size` bytes. */
#define TT_ATTENTION_WIDER(e, v) ((e) > (v) ? (e) : (v))
#define TT_ATTENTION_R_FORWARD(e, v, size) (((v) <= 64 ? 32 : 16) / (size))
#define TT_ATTENTION_C_FORWARD(e, v, size) ((TT_ATTENTION_WIDER(e, v) <= 64 ? 32 : 16) / (size))
#define TT_ATTENTION_R_QUERY(e, v, size) (((e) <= 64 ? 32 : 16) / (size))
#define TT_ATTENTION_C_QUERY(e, v, size) (16 / (size))
#define TT_ATTENTION_R_KEY(e, v, size) ((TT_ATTENTION_WIDER(e, v) <= 128 ? 16 : 8) / (size))
#define TT_ATTENTION_C_KEY(e, v, size) ((TT_ATTENTION_WIDER(e, v) <= 64 ? 32 : 16) / (size))

/* A tensor (N, heads, rows, columns) whose columns are neighbours; steps in elements. */
typedef struct {
    char *data;
    int64_t batch, head, row;
} tt_heads;

typedef struct {
    int32_t heads, group; /* of queries; ... to a head of keys */
    int32_t rows, keys, width, out_width;
    int32_t blocks, causal; /* blocks: thread blocks of a head */
    double scale;
    tt_heads query, key, value, out, g, of_query, of_key, of_value;
    char *lse, *delta; /* of each row of queries; delta: the sum of g times out */
    const char *mask;
    int64_t mask_step[4];
    tt_stream from; /* what is dropped */
    double kept; /* what others are multiplied by */
    uint64_t threshold;
} tt_attention_args;
