/* The thread's last error. Note [Declining] in api/core.h. */
#include "core/thread_exit.h"
#include "core/tt.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT 1024

static __thread int kind;
static __thread char *text; /* not in the thread's own memory, of which there is little: build.py */

static void thread_ends(void *p) {
    text = NULL;
    free(p);
}

TT_AT_THREAD_EXIT(free_at_exit, thread_ends)

static char *room(void) {
    if (!text && (text = malloc(TEXT))) free_at_exit(text);
    return text;
}

void *tt_fail(int error_kind, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (room()) vsnprintf(text, TEXT, format, args);
    va_end(args);
    kind = error_kind;
    return NULL;
}

void *tt_decline(void) {
    if (tt_flush_failed) { /* the error stands already: an operand's program could not run */
        tt_flush_failed = false;
        return NULL;
    }
    kind = TT_DECLINED;
    return NULL;
}

int tt_error_kind(void) { return kind; }
void tt_error_clear(void) { kind = TT_DECLINED; }
const char *tt_error_text(void) { return kind == TT_DECLINED ? "" : text ? text : "out of memory"; }

const char *tt_shape_text(char *buf, int ndim, const int64_t *shape) {
    char *p = buf;
    *p++ = '(';
    for (int d = 0; d < ndim; d++) {
        if (p - buf > TT_SHAPE_TEXT - 32) {
            p += snprintf(p, 24, "..."); /* no room for the rest */
            break;
        }
        p += snprintf(p, 24, d + 1 < ndim ? "%lld, " : ndim == 1 ? "%lld," : "%lld", (long long)shape[d]);
    }
    *p++ = ')';
    *p = 0;
    return buf;
}

bool tt_is_real(const char *op, int dtype) {
    if (!tt_is_complex(dtype)) return true;
    tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for '%s'", op, tt_dtype_names[dtype]);
    return false;
}

bool tt_has_order(const char *op, int dtype) {
    if (!tt_is_complex(dtype) && !tt_is_wide_unsigned(dtype)) return true;
    tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for '%s'", op, tt_dtype_names[dtype]);
    return false;
}
