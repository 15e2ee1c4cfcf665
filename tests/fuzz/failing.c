/* Preloaded: the n-th allocation that one library makes fails, so that each of its allocations can be made to. glibc. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static uintptr_t low, high; /* the library's code */
static long first, last; /* those that fail; 0: none */
static long seen;
static uintptr_t place; /* where the last one failed, from the beginning of the code */

/* From now on allocations `from` to `to` fail, counted from 1, of the library whose code lies at [begin, end). */
void failing_set(uintptr_t begin, uintptr_t end, long from, long to) {
    low = begin, high = end;
    first = from, last = to;
    __atomic_store_n(&seen, 0, __ATOMIC_SEQ_CST);
}

uintptr_t failing_place(void) { return place; }
long failing_seen(void) { return __atomic_load_n(&seen, __ATOMIC_SEQ_CST); }

static int fails(void *caller) {
    if ((uintptr_t)caller < low || (uintptr_t)caller >= high) return 0;
    long n = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
    if (!first || n < first || n > last) return 0;
    place = (uintptr_t)caller - low;
    return 1;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t n) {
    if (fails(CALLER)) return errno = ENOMEM, NULL;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size) {
    if (fails(CALLER)) return errno = ENOMEM, NULL;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n) {
    if (fails(CALLER)) return errno = ENOMEM, NULL;
    return __libc_realloc(p, n);
}

int posix_memalign(void **p, size_t alignment, size_t n) {
    if (fails(CALLER)) return ENOMEM;
    return (*p = __libc_memalign(alignment, n)) ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t n) {
    if (fails(CALLER)) return errno = ENOMEM, NULL;
    return __libc_memalign(alignment, n);
}

void *mmap(void *at, size_t n, int protection, int flags, int file, off_t offset) {
    if (fails(CALLER)) return errno = ENOMEM, MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, n, protection, flags, file, offset);
}
