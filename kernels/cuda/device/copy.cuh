/* Copies with a change of dtype or layout, and fills: elementwise kernels that compute nothing. */
#pragma once
#define TT_COPY 1
#include "cuda/device/elementwise.cuh"
