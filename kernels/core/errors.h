/* Errors of a thread, which Python raises. */
#pragma once
#include "api/core.h"
#include <stdbool.h>
#include <stddef.h>

/* Sets the thread's error; always returns NULL, so that `return tt_fail(...)` serves in functions that give
 * pointers. */
void *tt_fail(int kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *tt_decline(void);
/* "(2, 3)" into buf of at least 16 * 22 bytes. */
const char *tt_shape_text(char *buf, int ndim, const int64_t *shape);
#define TT_SHAPE_TEXT 400
/* False and an error for complex numbers: of operators that sort or draw. */
bool tt_is_real(const char *op, int dtype);
/* For those and the unsigned integers that have no loops: of operators that compare, round or count. */
bool tt_has_order(const char *op, int dtype);
