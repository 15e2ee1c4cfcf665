/* Random numbers: Note [Random streams] in kernels/scalar/philox.h. A generator is two numbers; each call takes the
 * next draw from it, atomically. `kind` is one of tt_random_kind. No function bumps a version. */
#include "api/core.h"

#pragma once
typedef struct tt_generator {
    uint64_t seed, draw;
    uint64_t *place; /* NULL, or Note [Random numbers of graphs] in tinytorch/backends/cuda/runtime.py */
} tt_generator;
uint64_t tt_take_draws(tt_generator *g, uint64_t n); /* the number of the first */
int tt_random_kind(const char *name);
int tt_random(tt_array *out, int kind, tt_generator *g, double a, double b, int writer);
int tt_bernoulli(tt_array *out, tt_array *p, tt_generator *g, int writer);
int tt_random_integers(tt_array *out, tt_generator *g, int64_t low, uint64_t range, int writer);
tt_array *tt_randperm(int dtype, int64_t n, tt_generator *g);
/* `a` times a mask: `scale`, which a's dtype is to hold, with probability `keep`, else 0. tt_second() then gives the
 * mask; where one kernel has drawn and multiplied, bools instead that say where it is not 0. */
tt_array *tt_dropout(tt_array *a, double keep, double scale, tt_generator *g);
double tt_rounded(int dtype, double x); /* as the dtype holds it */
/* Variates of a and b, of their floating dtype, not below `least`: contiguous, of one shape; b: NULL for kinds of one
 * parameter. They are computed in float64. */
int tt_variate_kind(const char *name);
tt_array *tt_variates(int kind, tt_array *a, tt_array *b, double least, tt_generator *g);
tt_array *tt_multinomial(tt_array *probabilities, int64_t samples, int replacement, tt_generator *g);
