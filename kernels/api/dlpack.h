/* DLPack: arrays handed to and taken from other libraries. The structures are those of dlpack.h, versions 0
 * (unversioned) and 1, by their published layout. */
#pragma once
typedef struct tt_dl_tensor {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t type_code, type_bits;
    uint16_t type_lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} tt_dl_tensor;

typedef struct tt_dl_managed {
    tt_dl_tensor tensor;
    void *context;
    void (*deleter)(struct tt_dl_managed *);
} tt_dl_managed;

typedef struct tt_dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct tt_dl_versioned *);
    uint64_t flags;
    tt_dl_tensor tensor;
} tt_dl_versioned;

void *tt_to_dlpack(tt_array *a, int versioned, int copied); /* after tt_sync(a, 1) */
void tt_dlpack_delete(void *managed, int versioned);

/* The destructor of a capsule, which lets go of what nobody took. It runs wherever a capsule ends, be it that an
 * exception is on its way, with which no Python code may start: so it is C, and calls the interpreter by these
 * addresses. */
typedef struct tt_capsules {
    int (*is_valid)(void *capsule, const char *name); /* PyCapsule_IsValid */
    void *(*pointer)(void *capsule, const char *name); /* PyCapsule_GetPointer */
    void (*fetch)(void **type, void **value, void **where); /* PyErr_Fetch */
    void (*restore)(void *type, void *value, void *where); /* PyErr_Restore */
    void *(*leave)(void); /* PyEval_SaveThread */
    void (*enter)(void *); /* PyEval_RestoreThread */
} tt_capsules;
void tt_dlpack_use(const tt_capsules *interpreter);
void tt_dlpack_end(void *capsule);
tt_array *tt_from_dlpack(void *managed, int versioned);
