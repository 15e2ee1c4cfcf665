/* Resampling along one dimension: sums of neighbours, each with its weight. */
#include "cpu/simd.h"
#include "cpu/resample.h"
#include <string.h>

#define T float
#define OF(name) name##_f32
#include "cpu/simd/resample_loops.h"
#define T double
#define OF(name) name##_f64
#include "cpu/simd/resample_loops.h"

const tt_resample_table TT_LOCAL(tt_resample_loops) = {resample_f32, resample_f64};
