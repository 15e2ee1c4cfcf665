/* Fourier transforms of rows of a power of two: notes in cpu/fft.h. */
#include "cpu/fft.h"
#include "core/sizes.h"
#include "cpu/simd.h"
#include <string.h>

#if defined __AVX512F__
#define BYTES 64
#elif defined __AVX2__
#define BYTES 32
#else
#define BYTES 16
#endif
#define INLINE static inline __attribute__((always_inline))

#define T float
#define MASK int32_t /* of T's size */
#define SIGN INT32_MIN
#define LANES (BYTES / 4)
#define OF(name) name##_f32
#include "cpu/simd/fft_long_loops.h"
#include "cpu/simd/fft_step_loops.h"
#include "cpu/simd/fft_row_loops.h"
#undef T
#undef MASK
#undef SIGN
#undef LANES
#undef OF
#define T double
#define MASK int64_t
#define SIGN INT64_MIN
#define LANES (BYTES / 8)
#define OF(name) name##_f64
#include "cpu/simd/fft_long_loops.h"
#include "cpu/simd/fft_step_loops.h"
#include "cpu/simd/fft_row_loops.h"

const tt_fft_table TT_LOCAL(tt_fft_loops) = {{{BYTES / 4, run_f32, join_f32}, {BYTES / 8, run_f64, join_f64}}};
