/* Eigenvalues of many small symmetric matrices, and singular values of square ones: what lapack.c shares out, and the
 * loops of simd/jacobi.c do.
 *
 * Note [Matrices side by side]
 * LAPACK's path through a matrix of a few rows is mostly branches and calls. Jacobi's method is the same rotations for
 * every matrix, but for their angles: so a vector holds one element of as many matrices as it has lanes. A matrix that
 * is done turns by an angle of 0 while others in its vector go on: its bits depend on no neighbour, and on no number of
 * lanes. One that is not done after TT_JACOBI_SWEEPS is left as it was, for LAPACK. */
#pragma once
#include "core/tt.h"

#define TT_JACOBI_MOST 16 /* rows */
#define TT_JACOBI_LANES 16 /* at most */
#define TT_JACOBI_SWEEPS 24 /* five to eight are usual */

typedef struct {
    void *a[TT_JACOBI_LANES],
        *values[TT_JACOBI_LANES]; /* column-major; of as many matrices as lanes, the last repeated */
    int count, n; /* matrices of which results are wanted; rows */
    bool upper, vectors; /* the triangle that is read; do eigenvectors, as columns, take its place? */
    void *u[TT_JACOBI_LANES], *v[TT_JACOBI_LANES]; /* of singular values, if `vectors`: U and V^T */
    char *room; /* TT_JACOBI_ROOM(n, lanes, itemsize) bytes, aligned to 64 */
    bool done[TT_JACOBI_LANES];
} tt_jacobi;
#define TT_JACOBI_ROOM(n, lanes, itemsize) (2 * (int64_t)(n) * (n) * (lanes) * (itemsize))

typedef struct {
    struct {
        int lanes;
        void (*eigh)(tt_jacobi *), (*svd)(tt_jacobi *);
    } types[2]; /* of float32, float64 */
} tt_jacobi_table;
