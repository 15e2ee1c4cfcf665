/* Fourier transforms of rows of a power of two: what fft.c plans, and the loops of simd/fft.c do.
 *
 * Note [Rows of a power of two]
 * One row at a time stays in the first cache. Steps of radix 4, and a last one of radix 2 where the power is odd, put
 * the numbers in order by themselves (Stockham: Cochran et al., "What is the fast Fourier transform?", 1967). Vectors
 * hold neighbouring numbers: after two steps these belong to one place of 16 sequences, and share their roots; in the
 * first two, each number has its roots in a table, and what a vector has for one place goes to four. Every number's
 * arithmetic is the same whatever a vector holds, so that its bits do not depend on the instruction set. A real row is
 * that of half as many complex numbers, of the even elements and the odd ones. On one core of a Xeon, 4096 real rows
 * of 256 take 0.54 ms; 0.89 when a vector held a number of each of 16 rows, which wants two transpositions and leaves
 * that cache.
 *
 * Note [A long row]
 * One row of a power of two that leaves the caches is TT_FFT_PARTS rows, of every so many-th number: threads share
 * them, and vectors hold several. Of each place of theirs, times roots, a transform of TT_FFT_PARTS numbers makes as
 * many of the long row (the first step of Cooley and Tukey, "An algorithm for the machine calculation of complex
 * Fourier series", 1965); a vector's lanes are neighbouring places. */
#pragma once
#include "core/tt.h"

#define TT_FFT_LEAST 16    /* complex numbers of a row, or pairs of real ones */
#define TT_FFT_MOST 4096 /* more, and a row leaves the first cache */
#define TT_FFT_TOGETHER 8 /* rows, of which neighbours may lie in one cache line */
#define TT_FFT_LANES 16 /* at most */
#define TT_FFT_PARTS 16
#define TT_FFT_LONG 2048                  /* numbers of a long row, at least */
#define TT_FFT_LONGEST ((int64_t)1 << 21) /* whose roots are kept */

/* Of a transform of m complex numbers, e^(-2 pi i k / m) or, backwards, e^(2 pi i k / m); as (re, re) and (-im, im),
 * what belongs to the first two steps; see real_row for `real`. */
typedef struct {
    const void *first, *second, *real;
    const void *later; /* of order m / 16, as (re, im) */
} tt_fft_roots;

typedef struct {
    char *in[TT_FFT_TOGETHER], *out[TT_FFT_TOGETHER];
    int64_t rows;
    int64_t stride_in, stride_out; /* in bytes, from one number to the next */
    int64_t size;                  /* of the transform: rows have as many numbers, or what of them counts */
    bool from_real, to_real, forward;
    double scale;
    tt_fft_roots roots;
    void *room; /* TT_FFT_ROOM(size) parts */
} tt_fft_rows;
#define TT_FFT_PITCH(size) (2 * (size) + 16) /* of a row of complex numbers, and one more */
#define TT_FFT_ROOM(size) ((3 + TT_FFT_TOGETHER) * TT_FFT_PITCH(size))

/* Parts are transformed, and lie `pitch` numbers apart; LANES numbers behind each, and behind a row of roots, may be
 * read. */
typedef struct {
    const void *parts;
    char *out;
    int64_t stride_out, size, pitch, count; /* count: numbers of a part */
    bool from_real, forward;
    double scale;
    const void *re, *im; /* e^(-2 pi i r k / size): row r begins at r * pitch */
    const void *few; /* roots of order TT_FFT_PARTS */
} tt_fft_long;

typedef struct {
    struct {
        int numbers; /* complex ones of a vector */
        void (*run)(const tt_fft_rows *), (*run_short)(const tt_fft_rows *);
        void (*join)(const tt_fft_long *, int64_t begin, int64_t end); /* vectors of a part's numbers */
    } types[2]; /* of float32, float64 */
} tt_fft_table;
