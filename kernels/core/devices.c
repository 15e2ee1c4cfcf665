/* Which device this thread works on: Note [Devices] in devices.h. */
#include "core/tt.h"
#include "api/cuda.h"
#include <stdio.h>

__thread int tt_device;
const char *tt_device_kinds[TT_DEVICE_KINDS] = {"cpu"};

int tt_device_set(int device) {
    int before = tt_device;
    tt_device = device;
    return before;
}

const char *tt_device_text(char *text, size_t size, int device) {
    const char *kind = tt_device_kinds[tt_device_kind(device)];
    if (device) snprintf(text, size, "%s:%d", kind, (device - 1) % TT_DEVICES_OF_KIND);
    else snprintf(text, size, "%s", kind);
    return text;
}

bool tt_enter_device(const char *op, bool numbers, int n, tt_array *const *in) {
    int device = -1;
    for (int k = 0; k < n; k++) {
        if (!in[k] || (numbers && in[k]->ndim == 0 && !in[k]->storage->device)) continue;
        int own = in[k]->storage->device;
        if (device >= 0 && own != device) {
            char a[24], b[24];
            tt_fail(TT_RUNTIME_ERROR,
                    "%s: Expected all tensors to be on the same device, but found at least two devices, "
                    "%s and %s!",
                    op, tt_device_text(a, sizeof a, device), tt_device_text(b, sizeof b, own));
            return false;
        }
        device = own;
    }
    tt_device = device < 0 ? 0 : device;
    return true;
}

bool tt_ready_here(const tt_array *a) {
    __attribute__((cleanup(tt_leave_device), unused)) int before = tt_device;
    tt_device = 0;
    return tt_ready(a);
}

bool tt_same_device(const char *op, const tt_array *a) {
    char own[24], other[24];
    if (a->storage->device == tt_device) return true;
    tt_fail(TT_RUNTIME_ERROR,
            "%s: Expected all tensors to be on the same device, but found at least two devices, %s and %s!", op,
            tt_device_text(own, sizeof own, tt_device), tt_device_text(other, sizeof other, a->storage->device));
    return false;
}
