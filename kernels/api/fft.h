/* Fourier transforms. */
#pragma once
#include "api/core.h"

/* The loops that compute one dimension: those of NumPy's generalised ufuncs, for float and double. */
enum { TT_FFT_FORWARD, TT_FFT_INVERSE, TT_FFT_REAL_EVEN, TT_FFT_REAL_ODD, TT_FFT_TO_REAL, TT_FFT_LOOPS };
void tt_fft_use(int loop, int is_double, void *function, void *data);
/* What a ufunc object holds behind Python's header: numpy/ufuncobject.h. */
typedef struct {
    int32_t nin, nout, nargs, identity;
    void **functions, **data; /* of each combination of dtypes */
    int32_t ntypes;
} tt_ufunc;

/* Over the dimensions `dims`, each named once; results are multiplied by `scale`. The exponent's sign is - for those
 * from real numbers, + for those to real ones. */
tt_array *tt_fft(tt_array *a, int ndims, const int64_t *dims, double scale, int forward); /* of complex numbers */
/* Of real numbers. `half`: only the first size / 2 + 1 of the last of `dims`, which the others are the conjugates
 * of. */
tt_array *tt_fft_real(tt_array *a, int ndims, const int64_t *dims, double scale, int half);
/* The inverse: to `size` real numbers along the last of `dims`. */
tt_array *tt_fft_to_real(tt_array *a, int ndims, const int64_t *dims, double scale, int64_t size);
