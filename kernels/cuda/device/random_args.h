/* random: numbers of a draw; dropout: a mask of them, applied; range: sequences; multinomial: samples of categories;
 * variates: by rejection; permutation: randperm. */
#pragma once
#include "cuda/device/args.h"

/* Where numbers are in a random stream; what is in `place`, where it is not NULL, is added to seed and draw. */
typedef struct {
    uint64_t seed, draw;
    const uint64_t *place;
} tt_stream;

typedef struct {
    tt_stream from;
    int64_t numel, low;
    uint64_t range;
    double a, b, rate;
    char *out;
    const double *chance; /* bernoulli: of each element */
    uint64_t threshold;
    float unit;
    uint32_t dropped;
} tt_random_args;

/* The operators of random beyond the kinds of kernels/scalar/random.h. */
enum { TT_RANDOM_INTEGERS = 32, TT_RANDOM_SHORT_INTEGERS, TT_RANDOM_BERNOULLI };

/* dropout. Variant: in vectors. */
#define TT_DROPOUT_VECTORS 1
typedef struct {
    tt_stream from;
    int64_t numel;
    const char *in;
    char *out;
    uint8_t *kept;
    double scale;
    uint64_t threshold;
} tt_dropout_args;

typedef struct {
    int64_t numel;
    char *out;
    double start, end, step, base;
    int64_t first, by;             /* of integers */
    int64_t rows, cols, offset;    /* of a triangle; numel is that of one of its two rows of indices */
} tt_range_args;

typedef struct {
    tt_stream from;
    const double *weights;
    double *scratch;               /* as large as the weights */
    int64_t *out, *bad;            /* bad: twice the first row that has no distribution, and 1 more if its sum is 0 */
    int64_t categories, samples;
} tt_multinomial_args;

typedef struct {
    tt_stream from;
    int64_t numel;
    const char *a, *b;             /* b: NULL for kinds of one parameter */
    char *out;
    double least;
} tt_variates_args;

typedef struct {
    tt_stream from;
    int64_t n;
    int64_t *out;                  /* first the places that the exchanges choose */
    int64_t *heads, *next;         /* of each place the list of the exchanges that choose it; -1 ends it */
} tt_permutation_args;
