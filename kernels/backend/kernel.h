/* Kernels of fused programs, as every backend runs them: what they consist of stands in api/fuse.h. */
#pragma once
#include "api/fuse.h"
#include "core/tt.h"

#define TT_FUSE_KERNEL_NODES 96
#define TT_FUSE_LONG_ROW 32768 /* rows up to this are reduced in stages */
#define TT_DRAW_NUMBERS 6      /* recorded numbers that make a draw */
