/* Many arrays at once, such as a model's gradients. These decline for what they do not handle: the caller then goes
 * through the arrays one by one. */
#pragma once
#include "api/core.h"

/* One norm for each array, by `op` of tt_reduce: floating arrays with elements, all of one dtype and device. */
tt_array *tt_norms(int op, int n, tt_array **in);
/* Each array times `by`, a number of the same device, in place: floating arrays of one dtype and device that lie
 * row-major, no two in the same storage. */
int tt_scale(int n, tt_array **arrays, tt_array *by, int writer);
