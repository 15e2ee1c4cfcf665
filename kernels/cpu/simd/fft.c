/* Fourier transforms of as many rows as a vector has lanes. Note [Rows side by side] in cpu/fft.h. */
#include "cpu/fft.h"
#include "cpu/simd.h"

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
#define OF(name) name##_f32
#include "cpu/simd/fft_loops.h"
#define T double
#define MASK int64_t
#define OF(name) name##_f64
#include "cpu/simd/fft_loops.h"

const tt_fft_table TT_LOCAL(tt_fft_loops) = {{{BYTES / 4, run_f32, join_f32}, {BYTES / 8, run_f64, join_f64}}};
