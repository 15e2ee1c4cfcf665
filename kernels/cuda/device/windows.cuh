/* What kernels over windows of images share: TT_D0, the dtype of elements, TT_D1, that computed in, and places. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/windows_args.h"

typedef TT_TYPE(TT_D0) stored;
typedef TT_TYPE(TT_D1) number;
#if TT_VARIANT & TT_POOL_WIDE
typedef int64_t place;
#define TT_SPLIT(x, size, d) ((x) / (size))
#else
typedef int32_t place;
#define TT_SPLIT(x, size, d) ((place)tt_quotient((uint32_t)(x), d))
#endif
