/* The records of faults, one for each device: Note [Faults] in fault.h. */
#include "api/fuse.h"
#include "backend/operators.h"
#include "cuda/host/cuda.h"
#include <string.h>

#define DEVICES 64
static struct {
    tt_fault *here, *there;
} records[DEVICES];

int64_t tt_fault_bytes(void) { return sizeof(tt_fault); }

int tt_fault_record(int device, int64_t here, int64_t there) {
    if (device >= DEVICES) {
        tt_fail(TT_RUNTIME_ERROR, "at most %d CUDA devices can be used", DEVICES);
        return -1;
    }
    records[device].here = (tt_fault *)(intptr_t)here;
    records[device].there = (tt_fault *)(intptr_t)there;
    memset(records[device].here, 0, sizeof(tt_fault));
    return 0;
}

tt_fault *tt_cuda_fault(void) { return records[tt_device - 1].there; }

static void raise(const tt_fault *f) {
    static const char *const where = "(found by a CUDA kernel that ran before this point)";
    long long value = (long long)f->value, size = (long long)f->size;
    switch (f->kind) {
    case TT_FAULT_SELF:
        tt_fail(TT_INDEX_ERROR, "index out of range in self: index %lld, but dimension %d has size %lld %s", value,
                f->dim, size, where);
        return;
    case TT_FAULT_FLAT:
        tt_fail(TT_INDEX_ERROR, "out of range: tried to access index %lld on a tensor of %lld elements. %s", value,
                size, where);
        return;
    case TT_FAULT_NEGATIVE_CLASS:
        tt_fail(TT_RUNTIME_ERROR, "one_hot: Class values must be non-negative, got %lld. %s", value, where);
        return;
    case TT_FAULT_CLASS:
        tt_fail(TT_RUNTIME_ERROR,
                "one_hot: Class values must be smaller than num_classes. Got %lld, num_classes is %lld %s", value, size,
                where);
        return;
    case TT_FAULT_SORTER:
        tt_fail(TT_RUNTIME_ERROR, "searchsorted: sorter index %lld is out of range for a dimension of size %lld %s",
                value, size, where);
        return;
    case TT_FAULT_DIVISION:
        tt_fail(TT_ZERO_DIVISION, "%s: ZeroDivisionError: integer division by zero %s", tt_op_facts((int)value)->name,
                where);
        return;
    case TT_FAULT_TARGET:
        tt_fail(TT_INDEX_ERROR, "%s: Target %lld is out of bounds for %lld classes. %s",
                f->dim ? "cross_entropy" : "nll_loss", value, size, where);
        return;
    case TT_FAULT_PIVOT: tt_fail(TT_RUNTIME_ERROR, TT_WRONG_PIVOT " %s", size, (int)value, where); return;
    default:
        tt_fail(TT_INDEX_ERROR, "index %lld is out of bounds for dimension %d with size %lld %s", value, f->dim, size,
                where);
    }
}

int tt_device_check(int device) {
    tt_fault *f = device >= 0 && device < DEVICES ? records[device].here : NULL;
    if (!f || __atomic_load_n(&f->kind, __ATOMIC_ACQUIRE) == TT_FAULT_NONE) return 0;
    tt_fault found = *f;
    memset(f, 0, sizeof *f);
    raise(&found);
    return -1;
}
