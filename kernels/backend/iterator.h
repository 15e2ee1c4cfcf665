/* Several operands of one shape, for a loop or a kernel.
 *
 * There is room for TT_MAX_NDIM dimensions, of which those there are are filled in, and looked at: it costs nothing
 * while nobody clears or copies the whole. So it is with all structures that have arrays of TT_MAX_NDIM. */
#pragma once
#include "core/tt.h"

typedef struct {
    int nops, ndim;                     /* operand 0 is the output */
    int64_t numel;
    int64_t shape[TT_MAX_NDIM];         /* coalesced; innermost last */
    int64_t strides[5][TT_MAX_NDIM];    /* in bytes */
    char *data[5];
    int16_t dtype[5];                   /* as stored */
    int16_t compute[5];                 /* as the loop wants it */
} tt_iter;
void tt_iter_coalesce(tt_iter *it);     /* sorts and merges dimensions; call once after filling the fields */
void tt_iter_copy(tt_iter *it, const tt_array *out, const tt_array *a); /* operands of a copy or cast. Not coalesced */
/* Describes operand k as `a`, broadcast to the shape of `out`, for a loop that wants `compute`. */
void tt_iter_operand(tt_iter *it, int k, const tt_array *out, const tt_array *a, int compute);
/* Operands of an elementwise operator of that dtype: k = 0 is `out`. Not coalesced. */
void tt_iter_elementwise(tt_iter *it, int op, int dtype, const tt_array *out, int n, tt_array *const *in);
