/* Devices of NVIDIA's: see Note [Devices] in kernels/cpu/tt.h and Note [Launching] in kernels/cuda/cuda.h. */
#pragma once
#include "core.h"

/* Where this thread's functions allocate when no operand says it (0: the CPU, k + 1: cuda:k); the device before. To be
 * set back when the call that it was for returns. */
int tt_device_set(int device);

/* A kernel's key, bit by bit: family 8, operator 8, five dtypes of 4, variant 28. Its parts, in that order, into out[8];
 * and the family's name, which is that of its file in kernels/cuda. */
void tt_key_parts(int64_t key, int32_t *out);
const char *tt_family_name(int family); /* NULL: no such */
const char *tt_operator_name(int family, int op); /* of families over elementwise operators or reducers; "" else */
int tt_compute_of(int op, int operand, int dtype); /* what the loop of `op` wants: operand 0 is the result */

/* `a` on another device, at once for the CPU's readers; itself is never returned. */
tt_array *tt_to_device(tt_array *a, int device);
/* Memory of a device that somebody else owns. */
tt_array *tt_from_device(int device, int dtype, int ndim, int64_t *shape, int64_t *strides, void *data, int64_t nbytes,
                         void *owner, void (*release)(void *));

/* What tt_cuda_copy moves. */
enum { TT_COPY_TO_DEVICE = 1, TT_COPY_TO_HOST, TT_COPY_ON_DEVICE };


/* Where the kernels of a device, when it is opened, are to write what they find wrong (Note [Faults] in kernels/cuda):
 * so many bytes, by their address here and there. tt_device_check: an error, once, if a kernel found something; to be
 * asked after every wait for the device. */
int64_t tt_fault_bytes(void);
int tt_fault_record(int device, int64_t here, int64_t there);
int tt_device_check(int device);
