/* The kinds of random numbers, and what one instruction set provides to draw them.
 *
 * X(name, what a and b are) */
#pragma once
#define TT_RANDOM_KINDS(X)                                       \
    X(uniform)     /* on [a, b) */                               \
    X(normal)      /* mean a, standard deviation b */            \
    X(log_normal)  /* exp of that */                             \
    X(exponential) /* rate a */                                  \
    X(cauchy)      /* median a, scale b */                       \
    X(geometric)   /* success with probability a */              \
    X(mask)        /* b with probability a, else 0 */

#define TT_RANDOM_ENUM(name) TT_RANDOM_##name,
enum { TT_RANDOM_KINDS(TT_RANDOM_ENUM) TT_NUM_RANDOM_KINDS };

typedef struct {
    uint64_t seed, draw;
    int kind;
    double a, b;
    int digits;      /* uniform numbers in float32: their binary digits, no more than the dtype they end in has */
    int64_t low;     /* integers: low + a number below range; range 0 stands for 2^64 */
    uint64_t range;
} tt_draw;

/* Whole groups of 64 elements from group `first` on. */
typedef struct {
    void (*f32)(const tt_draw *d, float *out, int64_t first, int64_t groups);
    void (*f64)(const tt_draw *d, double *out, int64_t first, int64_t groups);
    void (*i64)(const tt_draw *d, int64_t *out, int64_t first, int64_t groups);
} tt_random_loops;
