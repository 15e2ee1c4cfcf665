/* Arithmetic of sizes. */
#pragma once
#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
/* How many parts of `size` n has, the last one perhaps smaller. */
static inline int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }
