#pragma once
#include "backend/backend.h"

/* The dtype the operator computes in, before halves become float32; -1 and an error when it has none. */
int tt_common_dtype(int op, int n, tt_array *const *in);
