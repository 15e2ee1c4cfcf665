/* LU and Cholesky factorizations of small real matrices, and solutions by them. lapack_routines.h includes this file.
 *
 * OpenBLAS takes the memory that it works in from a list behind a lock, at each call: on 16 cores of a Xeon 4096
 * Cholesky factorizations of 16 x 16 floats took 4.3 ms, and 3.1 on one; now 0.25, and 2.8. Columns lie together: the
 * inner loops run down them. */

static T OF(dot)(const T *a, const T *b, int n) {
    T sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void OF(subtract_times)(T *to, T factor, const T *from, int n) {
    for (int i = 0; i < n; i++) to[i] -= factor * from[i];
}

/* A = L L^T in place of the lower triangle. The place of a pivot that is not positive, from 1, or 0. */
static int OF(small_lower)(T *a, int n) {
    for (int j = 0; j < n; j++) {
        T *column = a + j * n, pivot = column[j];
        if (!(pivot > 0)) return j + 1;
        column[j] = pivot = (T)sqrt(pivot);
        for (int i = j + 1; i < n; i++) column[i] /= pivot;
        for (int k = j + 1; k < n; k++) OF(subtract_times)(a + k * (n + 1), column[k], column + k, n - k);
    }
    return 0;
}

/* Or U^T U in place of the upper one, by way of its transpose. */
static int OF(small_cholesky)(T *a, int n, bool upper) {
    if (!upper) return OF(small_lower)(a, n);
    T l[SMALL * SMALL];
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) l[i + j * n] = a[j + i * n];
    int info = OF(small_lower)(l, n);
    for (int j = 0; j < n; j++)
        for (int i = 0; i <= j; i++) a[i + j * n] = l[j + i * n];
    return info;
}

/* P A = L U in place of A, the exchanges of rows from 1. The place of the first pivot that is 0, from 1, or 0. */
static int OF(small_lu)(T *a, int rows, int cols, int *pivots) {
    int info = 0;
    for (int j = 0; j < rows && j < cols; j++) {
        T *column = a + j * rows;
        int largest = j;
        for (int i = j + 1; i < rows; i++)
            if (fabs(column[i]) > fabs(column[largest])) largest = i;
        pivots[j] = largest + 1;
        if (column[largest] == 0) {
            if (!info) info = j + 1;
            continue; /* the rest of the column is 0 */
        }
        for (int k = 0; k < cols && largest != j; k++) {
            T *one = a + j + k * rows, *other = a + largest + k * rows, kept = *one;
            *one = *other;
            *other = kept;
        }
        for (int i = j + 1; i < rows; i++) column[i] /= column[j];
        for (int k = j + 1; k < cols; k++)
            OF(subtract_times)(a + j + 1 + k * rows, a[j + k * rows], column + j + 1, rows - j - 1);
    }
    return info;
}

/* A X = B, or A^T X = B, in place of B's columns. */
static void OF(small_solve)(const T *lu, int n, const int *pivots, bool transposed, T *b, int cols) {
    for (T *x = b; x < b + cols * n; x += n) {
        if (transposed) {
            for (int k = 0; k < n; k++) x[k] = (x[k] - OF(dot)(lu + k * n, x, k)) / lu[k * (n + 1)];
            for (int k = n - 1; k >= 0; k--) x[k] -= OF(dot)(lu + k * (n + 1) + 1, x + k + 1, n - k - 1);
            OF(exchange_rows)(x, 1, 1, pivots, n, true);
            continue;
        }
        OF(exchange_rows)(x, 1, 1, pivots, n, false);
        for (int k = 0; k < n; k++) OF(subtract_times)(x + k + 1, x[k], lu + k * (n + 1) + 1, n - k - 1);
        for (int k = n - 1; k >= 0; k--) {
            x[k] /= lu[k * (n + 1)];
            OF(subtract_times)(x, x[k], lu + k * n, k);
        }
    }
}
