/* The backends there are: Note [Backends] in backend.h. */
#include "backend/backend.h"

tt_backend *tt_backends[TT_DEVICE_KINDS];

void tt_register_backend(int kind, tt_backend *backend) {
    tt_backends[kind] = backend;
    tt_device_kinds[kind] = backend->name;
    tt_device_storage[kind] = backend->storage;
}

void *tt_no_kernel(const char *op) {
    char text[24];
    return tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented on %s", op, tt_device_text(text, sizeof text, tt_device));
}
