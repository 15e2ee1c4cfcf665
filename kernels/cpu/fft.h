/* Fourier transforms of several rows at once: what fft.c plans, and the loops of simd/fft.c do.
 *
 * Note [Rows side by side]
 * Rows whose size is a power of two are transformed as many at a time as a vector has lanes: a vector holds one part of
 * one number of each row. So every step is whole vectors, whatever its stride, and a row's bits do not depend on how
 * many lanes there are. Steps have radix 4, and a last one of radix 2 where the power is odd; they put the numbers in
 * order by themselves (Stockham: Cochran et al., "What is the fast Fourier transform?", 1967). A real row is that of
 * half as many complex numbers, of the even elements and the odd ones.
 *
 * Note [A long row]
 * One row of a power of two that leaves the caches is TT_FFT_PARTS rows, of every so many-th number: threads share
 * them, and vectors hold several. Of each place of theirs, times roots, a transform of TT_FFT_PARTS numbers makes as
 * many of the long row (the first step of Cooley and Tukey, "An algorithm for the machine calculation of complex
 * Fourier series", 1965); a vector's lanes are neighbouring places. */
#pragma once
#include "core/tt.h"

#define TT_FFT_LEAST 16  /* numbers of a row, real or complex */
#define TT_FFT_MOST 4096 /* more, and the numbers of a vector's rows leave the caches */
#define TT_FFT_LANES 16  /* at most */
#define TT_FFT_PARTS 16
#define TT_FFT_LONG 2048                  /* numbers of a long row, at least */
#define TT_FFT_LONGEST ((int64_t)1 << 21) /* whose roots are kept */

typedef struct {
    char *in[TT_FFT_LANES], *out[TT_FFT_LANES]; /* rows: as many as there are lanes, the last of them repeated */
    int64_t rows;                               /* of which results are wanted */
    int64_t stride_in, stride_out;              /* in bytes, from one number to the next */
    int64_t size, count_in, count_out;          /* of the transform, and numbers of a row */
    bool from_real, to_real, forward;
    double scale;
    const void *roots; /* e^(-2 pi i k / size) for k < size */
    char *room;        /* TT_FFT_ROOM(size, lanes, itemsize of a part) bytes, aligned to 64 */
} tt_fft_rows;
#define TT_FFT_ROOM(size, lanes, part) (2 * (2 * (size) + 2) * (lanes) * (part))

/* Parts are transformed, and lie `pitch` numbers apart; LANES numbers behind each, and behind a row of roots, may be
 * read. */
typedef struct {
    const void *parts;
    char *out;
    int64_t stride_out, size, pitch, count; /* count: numbers of a part */
    bool from_real, forward;
    double scale;
    const void *re, *im; /* e^(-2 pi i r k / size): row r begins at r * pitch */
    const void *roots; /* of order TT_FFT_PARTS */
} tt_fft_long;

typedef struct {
    struct {
        int lanes;
        void (*run)(const tt_fft_rows *);
        void (*join)(const tt_fft_long *, int64_t begin, int64_t end); /* vectors of a part's numbers */
    } types[2]; /* of float32, float64 */
} tt_fft_table;
