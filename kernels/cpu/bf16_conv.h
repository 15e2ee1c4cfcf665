/* Correlations of bfloat16 in runs: bf16_conv_runs.c. The weight is packed, as in bf16_conv.c. */
#pragma once
#include "cpu/conv.h"

bool tt_bf16_runs_fit(const tt_correlation *c);
void tt_bf16_correlate_runs(tt_correlation *c);
