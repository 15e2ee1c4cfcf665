/* Attention in tiles: the arguments of its kernels, and the shapes of tiles that host and kernels agree on. Note
 * [Attention's tiles] in attention_tile.cuh. */
#pragma once
#include "cuda/device/random_args.h"

#define TT_ATTENTION_MOST 256 /* width of a head */

/* The variant's bits. A width is counted in 32 columns, rounded up, less one. */
#define TT_ATTENTION_WIDTH 0     /* 3 bits: of queries and keys */
#define TT_ATTENTION_OUT_WIDTH 3 /* 3 bits: of values */
#define TT_ATTENTION_WARPS 6     /* 2 bits: log of a thread block's warps */
#define TT_ATTENTION_MASK 8      /* 2 bits: */
#define TT_ATTENTION_BOOL 1
#define TT_ATTENTION_ADDED 2
#define TT_ATTENTION_DROPS (1 << 10)
#define TT_ATTENTION_PACKS (1 << 11)  /* rows consist of aligned packs of so many elements */
#define TT_ATTENTION_PACK(size) ((size) == 2 ? 8 : 4)
#define TT_ATTENTION_TENSOR (1 << 12) /* tensor cores multiply */

/* A tile's rows and columns that a thread has, for widths of e and v and numbers of `size` bytes; with tensor cores the
 * tile is another one for operands that are split (attention_mma.cuh). */
#define TT_ATTENTION_WIDER(e, v) ((e) > (v) ? (e) : (v))
#define TT_ATTENTION_R_FORWARD(tensor, split, e, v, size)                                                              \
    ((tensor) ? ((v) <= ((split) ? 64 : 128) ? 4 : 2) : ((v) <= 64 ? 32 : 16) / (size))
#define TT_ATTENTION_C_FORWARD(tensor, split, e, v, size)                                                              \
    ((tensor) ? (TT_ATTENTION_WIDER(e, v) <= 64 && !(split) ? 16 : 8)                                                  \
              : (TT_ATTENTION_WIDER(e, v) <= 64 ? 32 : 16) / (size))
#define TT_ATTENTION_R_QUERY(tensor, split, e, v, size)                                                                \
    ((tensor) ? ((e) <= 64 ? 4 : 2) : ((e) <= 64 ? 32 : 16) / (size))
#define TT_ATTENTION_C_QUERY(tensor, split, e, v, size) ((tensor) ? 8 : 16 / (size))
#define TT_ATTENTION_R_KEY(tensor, split, e, v, size)                                                                  \
    ((tensor) ? (TT_ATTENTION_WIDER(e, v) <= 64 && !(split) ? 4 : 2)                                                   \
              : (TT_ATTENTION_WIDER(e, v) <= 128 ? 16 : 8) / (size))
#define TT_ATTENTION_C_KEY(tensor, split, e, v, size)                                                                  \
    ((tensor) ? 8 : (TT_ATTENTION_WIDER(e, v) <= 64 ? 32 : 16) / (size))
#define TT_ATTENTION_TENSOR_KEYS 128 /* the widest heads of which tensor cores find the keys' derivative */

/* Lanes that share a row; in shared memory: tiles of columns at a time, numbers behind a row, so that neighbouring rows
 * lie in other banks, and behind a row of weights. */
#define TT_ATTENTION_GROUP(tensor) ((tensor) ? 4 : 8)
#define TT_ATTENTION_STAGES(tensor) ((tensor) ? 2 : 1)
#define TT_ATTENTION_PAD 4 /* without tensor cores; with them a pack */
#define TT_ATTENTION_PAD_WEIGHTS 8

/* Of attention_wgmma.cuh: the variant's bits (without the first two it is for the queries), heads' widths, a thread
 * block's rows, tiles of columns in shared memory, and bytes of it: what a stage has of keys and values, or of queries,
 * g and two numbers of each query; barriers; to align it all. */
#define TT_ATTENTION_OF_KEYS 1
#define TT_ATTENTION_OF_VALUES 2
#define TT_ATTENTION_WGMMA_WIDE 4
#define TT_ATTENTION_WGMMA_WIDTH(variant) ((variant) & TT_ATTENTION_WGMMA_WIDE ? 128 : 64)
#define TT_ATTENTION_WGMMA_ROWS 128
#define TT_ATTENTION_WGMMA_STAGES 4
#define TT_ATTENTION_WGMMA_COLS(variant) ((variant) ? 64 : 128) /* registers of narrow queries have room for more */
#define TT_ATTENTION_WGMMA_STAGE(variant)                                                                              \
    (4 * TT_ATTENTION_WGMMA_WIDTH(variant) * TT_ATTENTION_WGMMA_COLS(variant) + 1024)
#define TT_ATTENTION_WGMMA_SHARED(variant) (TT_ATTENTION_WGMMA_STAGES * (TT_ATTENTION_WGMMA_STAGE(variant) + 16) + 1024)

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
