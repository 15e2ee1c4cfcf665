/* Which device an array is on, and which one this thread works on.
 *
 * Note [Devices]
 * A storage is on one device: 0 is the CPU, others are numbered from 1 on, TT_DEVICES_OF_KIND for each kind of device;
 * so the kind of device d is tt_device_kind(d), and kind 1 is CUDA: cuda:k is k + 1. tt_device is where this thread
 * allocates and works; it is the CPU outside of calls. A function that knows other devices begins with TT_ON_DEVICE,
 * which makes its operands' device that of the thread until the function returns; its descriptors, shapes, views and
 * allocations are then those of any device, and its work is done by the device's backend: tt_here() in
 * backend/backend.h. For a function without TT_ON_DEVICE an array of another device is never current: it declines, and
 * no code that would look at the elements is reached. Only the device's backend looks at memory of a device. */
#pragma once
#include "api/core.h"
#include <stdbool.h>
#include <stddef.h>

#define TT_DEVICES_OF_KIND 64
#define TT_DEVICE_KINDS 2

extern __thread int tt_device;
extern const char *tt_device_kinds[TT_DEVICE_KINDS]; /* their names; NULL: there is no such backend */

static inline int tt_device_kind(int device) {
    return (int)(((unsigned)device + TT_DEVICES_OF_KIND - 1) / TT_DEVICES_OF_KIND);
}

const char *tt_device_text(char *text, size_t size, int device); /* "cpu" or "cuda:0" into text, of at least 16 bytes */
/* Is it on tt_device? If not, an error. */
bool tt_same_device(const char *op, const tt_array *a);
/* tt_ready for an array on the CPU, while this thread's device is another. */
bool tt_ready_here(const tt_array *a);

static inline void tt_leave_device(int *before) { tt_device = *before; }
/* False and an error where the operands are on several devices; `numbers`: arrays without dimensions on the CPU do not
 * count. NULL operands are skipped. */
bool tt_enter_device(const char *op, bool numbers, int n, tt_array *const *in);
#define TT_ON_DEVICE_IF(fails, op, numbers, n, in)                                                                     \
    __attribute__((cleanup(tt_leave_device), unused)) int tt_device_before = tt_device;                                \
    if (tt_elsewhere(n, in) && !tt_enter_device(op, numbers, n, in)) return fails
#define TT_ON_DEVICE(fails, op, n, in) TT_ON_DEVICE_IF(fails, op, false, n, in)
