/* DLPack: arrays handed to and taken from other libraries. The structures are those of dlpack.h, versions 0 (unversioned)
 * and 1, by their published layout. */
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

void *tt_to_dlpack(tt_array *a, int versioned, int copied);
void tt_dlpack_delete(void *managed, int versioned);
tt_array *tt_from_dlpack(void *managed, int versioned);
