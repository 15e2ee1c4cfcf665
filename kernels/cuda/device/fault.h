/* What a kernel found wrong, where only the kernel could see it: Note [Faults]. Seen by the host and by kernels.
 *
 * Note [Faults]
 * The values of an index or a divisor are on the device, and the CPU does not wait for a kernel: so it is the kernel
 * that finds one that is wrong. It then goes on with a valid one (a quotient by 0 is 0), and writes what it found into
 * its device's record, in memory that both sides see; the first to come is kept. Whenever the CPU has waited for the
 * device (tt_device_read, tt_device_check) it looks there, empties the record, and raises the exception that the CPU's
 * own kernel would have raised. Unlike an assertion of CUDA's, this leaves the device in working order. */
#pragma once

/* The rules of indices first, in the order of enum tt_index_rule in kernels/backend/indexing.h. */
enum {
    TT_FAULT_NONE,
    TT_FAULT_SUBSCRIPT,
    TT_FAULT_SELF,
    TT_FAULT_STRICT,
    TT_FAULT_FLAT,
    TT_FAULT_NEGATIVE_CLASS,
    TT_FAULT_CLASS, /* of one_hot */
    TT_FAULT_SORTER,                         /* of searchsorted */
    TT_FAULT_DIVISION,                       /* of integers, by zero; value: the operator */
    TT_FAULT_TARGET,                         /* of a classification; dim: is it of logits? */
    TT_FAULT_PIVOT,                          /* of a factorization */
};

typedef struct {
    int32_t claimed, kind, dim, unused;
    int64_t value, size;
} tt_fault;

#if defined(__CUDACC_RTC__) || defined(TT_EMULATED)
static __device__ __noinline__ void tt_report(tt_fault *fault, int kind, int64_t value, int64_t size, int dim) {
    if (atomicCAS(&fault->claimed, 0, 1)) return;
    fault->value = value;
    fault->size = size;
    fault->dim = dim;
    __threadfence_system();
    *(volatile int32_t *)&fault->kind = kind;
}
#endif
