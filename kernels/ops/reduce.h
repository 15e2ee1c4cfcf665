/* What other operators want of reductions. */
#pragma once
#include "backend/reduction.h"

int tt_reducer_of(int op, int *then); /* of tt_reduce's; then: TT_RED_ALONE ... of scalar/codes.h */
