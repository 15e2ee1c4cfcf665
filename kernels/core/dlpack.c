/* DLPack, both ways. What is exported holds a descriptor, and so the storage; what is imported is a storage whose
 * release calls the exporter's deleter. */
#include "core/tt.h"
#include "api/dlpack.h"
#include "api/cuda.h"
#include <stdlib.h>
#include <string.h>

enum { DL_CPU = 1, DL_CUDA, DL_CUDA_HOST, DL_CUDA_MANAGED = 13 };
enum { DL_READ_ONLY = 1, DL_COPIED = 2 };

#define TYPE_CODE(code, suffix, type, name, kind, is_signed, compute, dlpack) dlpack,
static const uint8_t codes[TT_NUM_DTYPES] = {TT_DTYPES(TYPE_CODE)};

/* The managed structure, whichever it is, comes first: its address is that of the whole. */
typedef struct {
    union {
        tt_dl_managed old;
        tt_dl_versioned versioned;
    } managed;
    tt_array *array;
} exported;

static void delete_exported(exported *e) {
    tt_free(e->array);
    free(e);
}
static void delete_old(tt_dl_managed *m) { delete_exported(m->context); }
static void delete_versioned(tt_dl_versioned *m) { delete_exported(m->context); }

void *tt_to_dlpack(tt_array *a, int versioned, int copied) {
    int device = a->storage->device;
    exported *e = calloc(1, sizeof *e);
    if (!e) return tt_fail(TT_OUT_OF_MEMORY, "out of memory: no room for a DLPack structure");
    if (!(e->array = tt_alias(a))) {
        free(e);
        return NULL;
    }
    a = e->array;
    tt_dl_tensor t = {.data = a->data,
                      .device_type = device ? DL_CUDA : DL_CPU,
                      .device_id = device ? device - 1 : 0,
                      .ndim = a->ndim,
                      .type_code = codes[a->dtype],
                      .type_bits = (uint8_t)(8 * tt_itemsizes[a->dtype]),
                      .type_lanes = 1,
                      .shape = a->shape,
                      .strides = a->strides};
    for (int d = 0; d < a->ndim; d++) /* some readers want the stride of a single element to be 1 */
        if (a->shape[d] <= 1) a->strides[d] = 1;
    if (versioned) {
        tt_dl_versioned *m = &e->managed.versioned;
        m->major = 1;
        m->context = e;
        m->deleter = delete_versioned;
        m->flags = (a->flags & TT_FLAG_READONLY ? DL_READ_ONLY : 0) | (copied ? DL_COPIED : 0);
        m->tensor = t;
    } else {
        e->managed.old.tensor = t;
        e->managed.old.context = e;
        e->managed.old.deleter = delete_old;
    }
    return e;
}

static void release_old(void *managed) {
    tt_dl_managed *m = managed;
    if (m->deleter) m->deleter(m);
}
static void release_versioned(void *managed) {
    tt_dl_versioned *m = managed;
    if (m->deleter) m->deleter(m);
}

void tt_dlpack_delete(void *managed, int versioned) { (versioned ? release_versioned : release_old)(managed); }

static tt_capsules python;

void tt_dlpack_use(const tt_capsules *interpreter) { python = *interpreter; }

void tt_dlpack_end(void *capsule) {
    static const char *const names[] = {"dltensor", "dltensor_versioned"};
    for (int versioned = 0; versioned < 2; versioned++) {
        if (!python.is_valid(capsule, names[versioned])) continue;
        void *type, *value, *where, *managed = python.pointer(capsule, names[versioned]);
        python.fetch(&type, &value, &where); /* memory of a device may call Python when it is freed */
        void *thread = python.leave();
        tt_dlpack_delete(managed, versioned);
        python.enter(thread);
        python.restore(type, value, where);
        return;
    }
}

static int dtype_of(const tt_dl_tensor *t) {
    for (int d = 0; d < TT_NUM_DTYPES; d++)
        if (codes[d] == t->type_code && 8 * tt_itemsizes[d] == t->type_bits && t->type_lanes == 1) return d;
    return -1;
}

/* Takes the structure over if it succeeds; else it is still the caller's. */
tt_array *tt_from_dlpack(void *managed, int versioned) {
    tt_dl_versioned *v = managed;
    if (versioned && v->major > 1)
        return tt_fail(TT_RUNTIME_ERROR, "from_dlpack: the structure has version %u.%u, wanted 1 or older", v->major,
                       v->minor);
    const tt_dl_tensor *t = versioned ? &v->tensor : &((tt_dl_managed *)managed)->tensor;
    int64_t strides[TT_MAX_NDIM], reach = 1;
    bool cuda = t->device_type == DL_CUDA || t->device_type == DL_CUDA_MANAGED;
    if (!cuda && t->device_type != DL_CPU && t->device_type != DL_CUDA_HOST)
        return tt_fail(TT_RUNTIME_ERROR, "from_dlpack: unsupported device type %d, wanted the CPU (1) or CUDA (2)",
                       t->device_type);
    int dtype = dtype_of(t);
    if (dtype < 0)
        return tt_fail(TT_RUNTIME_ERROR, "from_dlpack: unsupported dtype (code %d, %d bits, %d lanes)", t->type_code,
                       t->type_bits, t->type_lanes);
    if (t->ndim < 0 || tt_numel(t->ndim, t->shape) < 0) return NULL;
    char *data = (char *)t->data + t->byte_offset;
    if ((uintptr_t)data % (size_t)tt_itemsizes[dtype])
        return tt_fail(TT_RUNTIME_ERROR, "from_dlpack: the memory is not aligned to elements of %d bytes",
                       tt_itemsizes[dtype]);
    for (int d = t->ndim - 1; d >= 0; d--) {
        strides[d] = t->strides ? t->strides[d] : d == t->ndim - 1 ? 1 : strides[d + 1] * t->shape[d + 1];
        if (t->shape[d] <= 1 && strides[d] < 0) strides[d] = 1;
        if (t->shape[d] == 0) reach = 0;
        else if (reach > 0) {
            int64_t more;
            if (__builtin_mul_overflow(t->shape[d] - 1, strides[d], &more) ||
                __builtin_add_overflow(reach, more, &reach) || reach > INT64_MAX / TT_MAX_ITEMSIZE)
                return tt_fail(TT_RUNTIME_ERROR, "from_dlpack: the strides reach beyond all memory");
        }
    }
    tt_array *a = tt_from_owner(cuda ? t->device_id + 1 : 0, dtype, t->ndim, t->shape, strides, data,
                                reach * tt_itemsizes[dtype], managed, versioned ? release_versioned : release_old);
    if (a && versioned && v->flags & DL_READ_ONLY) a->flags |= TT_FLAG_READONLY;
    return a;
}
