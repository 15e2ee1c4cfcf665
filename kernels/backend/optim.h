/* Steps of optimisers: parameters ready to be updated by a rule of scalar/optim.h. */
#pragma once
#include "core/tt.h"
#include "scalar/optim.h"

/* The numbers of tt_rates in kernels/scalar/optim.h, before they are rounded to the dtype computed in. */
typedef struct {
    int flags;
    double sign, decay, rate, ahead, a, b, c, root, eps;
} tt_update;

/* What rate and root follow from, step by step: tt_rate_of and tt_root_of in kernels/scalar/optim.h. */
typedef struct {
    double lr, lr_decay, beta1, beta2, root;
    const tt_array *skip; /* a float32 number on the device: unless it is 0 nothing is updated. Or NULL */
} tt_schedule;

/* One parameter, ready for the loop. */
typedef struct {
    int64_t end; /* elements of this and all before that are on the CPU */
    int64_t numel;
    char *data[TT_UPDATE_OPERANDS];
    tt_array *copies[TT_UPDATE_OPERANDS]; /* of operands that do not lie in memory as the parameter does */
    double step;
    tt_update update;
    tt_array *count; /* the step count, where it is on the parameter's device: rate and root then follow from it */
    int dtype, device;
    int operands; /* which there are, as bits; data may be NULL where there are no elements */
} tt_update_item;
