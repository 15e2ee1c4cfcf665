/* Fourier transforms along one dimension, as every backend does them. */
#pragma once
#include "core/tt.h"

typedef struct {
    tt_array *a, *out; /* of any strides; of one shape, but along `dim`; they may be the same array */
    int dim;
    int64_t size;  /* of the transform */
    bool forward;  /* the exponent's sign is - */
    double scale;  /* multiplies the result */
} tt_fft_work;
