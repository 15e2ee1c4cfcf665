/* Eigenvalues and singular values of as many matrices as a vector has lanes. Note [Matrices side by side] in
 * cpu/jacobi.h. */
#include "cpu/jacobi.h"
#include "cpu/simd.h"
#include <math.h>
#ifdef TT_X86
#include <immintrin.h>
#endif

#if defined __AVX512F__
#define BYTES 64
#define SQRT_f32(x) (vec) _mm512_sqrt_ps((__m512)(x))
#define SQRT_f64(x) (vec) _mm512_sqrt_pd((__m512d)(x))
#elif defined __AVX2__
#define BYTES 32
#define SQRT_f32(x) (vec) _mm256_sqrt_ps((__m256)(x))
#define SQRT_f64(x) (vec) _mm256_sqrt_pd((__m256d)(x))
#else
#define BYTES 16
#ifdef TT_X86
#define SQRT_f32(x) (vec) _mm_sqrt_ps((__m128)(x))
#define SQRT_f64(x) (vec) _mm_sqrt_pd((__m128d)(x))
#else
#define SQRT_f32(x) ((vec){sqrtf((x)[0]), sqrtf((x)[1]), sqrtf((x)[2]), sqrtf((x)[3])})
#define SQRT_f64(x) ((vec){sqrt((x)[0]), sqrt((x)[1])})
#endif
#endif
#define INLINE static inline __attribute__((always_inline))

#define T float
#define MASK int32_t /* of T's size */
#define EPSILON 0x1p-24f
#define TINY 1e-18f /* of which the square is a normal number */
#define OF(name) name##_f32
#define SQRT SQRT_f32
#include "cpu/simd/jacobi_loops.h"
#define T double
#define MASK int64_t
#define EPSILON 0x1p-53
#define TINY 1e-150
#define OF(name) name##_f64
#define SQRT SQRT_f64
#include "cpu/simd/jacobi_loops.h"

const tt_jacobi_table TT_LOCAL(tt_jacobi_loops) = {{{BYTES / 4, eigh_f32, svd_f32}, {BYTES / 8, eigh_f64, svd_f64}}};
