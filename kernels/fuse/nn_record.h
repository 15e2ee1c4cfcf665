/* Operators of rows, recorded: Note [Rows, recorded] in nn_record.c. NULL: not recorded, the caller flushes its
 * operands and computes. Reductions keep their dimensions. */
#pragma once
#include "core/tt.h"

bool tt_worth_recording(const tt_array *a); /* are there elements, and is it this trace that has yet to compute them? */
tt_array *tt_record_softmax(tt_array *a, tt_array *y, int dim, bool log);
tt_array *tt_record_var(tt_array *a, int64_t mask, double correction, bool root);
tt_array *tt_record_logsumexp(tt_array *a, int64_t mask);
