/* What the operators over rows share. */
#pragma once
#include "core/tt.h"

bool tt_rows_are_float(const char *op, const tt_array *a); /* else an error */
bool tt_rows_too_long(const char *op, int64_t n);          /* for this thread's device; then an error */
