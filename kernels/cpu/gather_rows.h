/* Moves between a table of elements, reached by offsets, and dense rows. */
#pragma once
#include "backend/indexing.h"

void tt_run_moves(tt_moves *j, int dtype, int how);
