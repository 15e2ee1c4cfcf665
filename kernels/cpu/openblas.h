/* The functions of OpenBLAS that products are made of. */
#pragma once
#include "core/tt.h"

typedef struct {
    void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
    void (*dgemm)(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *,
                  int);
    void (*sgemv)(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
    void (*dgemv)(int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
    float (*sdot)(int, const float *, int, const float *, int);
    double (*ddot)(int, const double *, int, const double *, int);
} tt_blas_functions;
extern tt_blas_functions tt_blas; /* once tt_blas_need() was true */

bool tt_blas_need(void); /* opens the library, where that was not done; else an error */
