/* Fourier transforms of rows of a power of two: what fft.c plans, and the loops of simd/fft.c do.
 *
 * Note [Rows of a power of two]
 * A row stays in the first cache. Steps put the numbers in order by themselves (Stockham: Cochran et al., "What is the
 * fast Fourier transform?", 1967). The first one has radix 8, the last one what is left, others 4 or 8. Real and
 * imaginary parts lie apart, so that products want no shuffles. In the first step a vector's lanes are places of
 * sequences, of some rows where these are short; it ends with a transposition, and from then on lanes are neighbouring
 * numbers, which share their roots. A row of eight vectors stays in registers. Every number's arithmetic is the same
 * whatever a vector holds: its bits depend neither on the instruction set nor on other rows. A transform back is one
 * forwards whose parts are exchanged. A real row is that of half as many complex numbers, of the even elements and the
 * odd ones.
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

/* Of a transform of m complex numbers. Real parts first, then imaginary ones: of the first step, the powers 1 to 7 of
 * e^(-2 pi i q / m) for its places q < m/8, again and again where these are fewer than TT_FFT_LANES; of the second one,
 * for n = m/8, the powers of e^(-2 pi i p / n), eight times each. As (re, im), of later steps, e^(-2 pi i k / n). See
 * real_row for `real`; `real_apart` has the same, real parts first. */
typedef struct {
    const void *first, *second, *later, *real, *real_apart;
} tt_fft_roots;

/* The radix of a step which is not the last one. */
static inline int tt_fft_radix(int64_t n) { return __builtin_ctzll((uint64_t)n) % 3 ? 4 : 8; }

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
/* Of a row of complex numbers, and one more, or of what the first step makes of some short ones. */
#define TT_FFT_PITCH(size) (2 * ((size) < 8 * TT_FFT_LANES ? 8 * TT_FFT_LANES : (size)) + 16)
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
        int lanes; /* of a vector */
        void (*run)(const tt_fft_rows *);
        void (*join)(const tt_fft_long *, int64_t begin, int64_t end); /* vectors of a part's numbers */
    } types[2]; /* of float32, float64 */
} tt_fft_table;
