/* What the host hands to the kernels that sample images at places of a grid. */
#pragma once
#include "cuda/device/args.h"

/* The operator. Terms: what each place takes of which elements, numbered by neighbour, then by place; sorted by element
 * they are summed up for the gradient of the images. */
#define TT_SAMPLE_RESULT 0
#define TT_SAMPLE_OF_GRID 1
#define TT_SAMPLE_TERMS 2
#define TT_SAMPLE_SUMS 3
/* The variant: bit 0 three dimensions, from these on two bits of TT_GRID_...: */
#define TT_SAMPLE_MODE 1
#define TT_SAMPLE_PADDING 3
#define TT_SAMPLE_ALIGN 32
#define TT_SAMPLE_WIDE 64 /* keys of 64 bits */
typedef struct {
    const char *input, *grid, *g;
    char *out;
    void *keys; /* of terms: the element, or `elements` for those outside */
    const uint32_t *order;
    char *weights;
    int64_t batch, channels, places, elements, terms; /* elements: of one channel of all images */
    int64_t size[3];
    int32_t lanes_log, unused; /* of the threads that have an element */
} tt_sample_args;
