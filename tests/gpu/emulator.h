// CUDA's language on the CPU, for tests: a kernel's file is compiled by g++ after this header, and run block by block.
//
// The threads of a block are fibers, switched where they wait for each other: at a barrier or a warp's exchange. So they
// run in turns, each up to its next wait, and races between two waits show as wrong results only where the order matters.
#pragma once
#include <cassert>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#define __global__
#define __device__
#define __host__
#define __noinline__
#define __forceinline__ inline __attribute__((always_inline))
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define TT_DEVICE inline __attribute__((always_inline))
#define TT_DYNAMIC_SHARED(name) unsigned char *const name = tt_emulated::shared
#define TT_EMULATED 1

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };
struct int2 { int x, y; };
struct float4 { float x, y, z, w; };

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static const int warpSize = 32;

namespace tt_emulated {
// Dynamic shared memory: it ends where no memory is, so that what reaches beyond it is found.
enum { SHARED_ROOM = 57 * 4096 };
static unsigned char *shared;
static void give_shared(int64_t bytes) {
    static unsigned char *room;
    if (!room) {
        room = (unsigned char *)mmap(nullptr, SHARED_ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(room + SHARED_ROOM, 4096, PROT_NONE);
    }
    shared = room + SHARED_ROOM - (bytes + 15) / 16 * 16;
}
enum { RUNS, AT_BARRIER, AT_WARP, ENDED };
enum { STACK = 65536 };
// What a fiber goes on with. The C library's switch asks the kernel for a mask of signals each time.
#if defined(__x86_64__)
typedef void *context;
extern "C" void tt_switch(context *from, context *to) __attribute__((visibility("hidden")));
asm(R"(
    .text
    .type tt_switch, @function
    .hidden tt_switch
tt_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov (%rsi), %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
    .size tt_switch, .-tt_switch
)");
static void start(context *c, char *stack, void (*entry)()) {
    void **top = (void **)(stack + STACK) - 2; // as after a call
    top[0] = (void *)entry;
    *c = top - 6; // the registers
}
#else
typedef ucontext_t context;
static void tt_switch(context *from, context *to) { swapcontext(from, to); }
static void start(context *c, char *stack, void (*entry)()) {
    getcontext(c);
    c->uc_stack.ss_sp = stack;
    c->uc_stack.ss_size = STACK;
    c->uc_link = nullptr;
    makecontext(c, entry, 0);
}
#endif

struct fiber { context at; int state, predicate; char slot[16]; };
enum { MOST_THREADS = 1024 };
static fiber fibers[MOST_THREADS];
static char *stacks; // memory that is not touched takes none
static context scheduler;
static unsigned self;
static bool has_fibers;

static void wait(int state) {
    if (!has_fibers) {
        fprintf(stderr, "a kernel waits, but its file was not taken for one that does\n");
        abort();
    }
    unsigned me = self;
    fibers[me].state = state;
    tt_switch(&fibers[me].at, &scheduler);
    threadIdx.x = me;
    self = me;
}
// What a lane offers, and then what another offered. Two waits: nobody overwrites before all have read.
template <typename T> static T exchange(T value, int lane) {
    static_assert(sizeof(T) <= 16, "");
    unsigned warp = self / 32 * 32;
    memcpy(fibers[self].slot, &value, sizeof value);
    wait(AT_WARP);
    T got = value;
    if (lane >= 0 && lane < 32 && warp + (unsigned)lane < blockDim.x) memcpy(&got, fibers[warp + (unsigned)lane].slot, sizeof got);
    wait(AT_WARP);
    return got;
}
} // namespace tt_emulated

static inline void __syncthreads() { tt_emulated::wait(tt_emulated::AT_BARRIER); }
static inline void __syncwarp(unsigned = ~0u) { tt_emulated::wait(tt_emulated::AT_WARP); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
template <typename T> static inline T __shfl_sync(unsigned, T v, int lane, int = 32) { return tt_emulated::exchange(v, lane & 31); }
template <typename T> static inline T __shfl_down_sync(unsigned, T v, unsigned by, int = 32) {
    int lane = (int)(threadIdx.x & 31) + (int)by;
    return tt_emulated::exchange(v, lane < 32 ? lane : (int)(threadIdx.x & 31));
}
template <typename T> static inline T __shfl_up_sync(unsigned, T v, unsigned by, int = 32) {
    int lane = (int)(threadIdx.x & 31) - (int)by;
    return tt_emulated::exchange(v, lane >= 0 ? lane : (int)(threadIdx.x & 31));
}
template <typename T> static inline T __shfl_xor_sync(unsigned, T v, int by, int = 32) {
    return tt_emulated::exchange(v, (int)(threadIdx.x & 31) ^ by);
}
static inline unsigned __ballot_sync(unsigned, int p) {
    unsigned bits = 0, warp = threadIdx.x / 32 * 32, me = threadIdx.x;
    tt_emulated::fibers[me].predicate = p != 0;
    tt_emulated::wait(tt_emulated::AT_WARP);
    for (unsigned k = 0; k < 32 && warp + k < blockDim.x; k++)
        if (tt_emulated::fibers[warp + k].state != tt_emulated::ENDED && tt_emulated::fibers[warp + k].predicate) bits |= 1u << k;
    tt_emulated::wait(tt_emulated::AT_WARP);
    return bits;
}
static inline int __any_sync(unsigned m, int p) { return __ballot_sync(m, p) != 0; }
static inline int __all_sync(unsigned m, int p) { return __ballot_sync(m, !p) == 0; }
static inline int __syncthreads_count(int p) {
    tt_emulated::fibers[threadIdx.x].predicate = p != 0;
    __syncthreads();
    int n = 0;
    for (unsigned t = 0; t < blockDim.x; t++)
        n += tt_emulated::fibers[t].state != tt_emulated::ENDED && tt_emulated::fibers[t].predicate;
    __syncthreads();
    return n;
}
static inline int __syncthreads_or(int p) { return __syncthreads_count(p) != 0; }
static inline int __syncthreads_and(int p) { return __syncthreads_count(!p) == 0; }

#define TT_ATOMIC(name, expression)                                                    \
    template <typename T, typename U> static inline T name(T *at, U value) {           \
        T old = *at, v = (T)value;                                                     \
        *at = (expression);                                                            \
        return old;                                                                    \
    }
TT_ATOMIC(atomicAdd, (T)(old + v)) TT_ATOMIC(atomicMax, old > v ? old : v) TT_ATOMIC(atomicMin, old < v ? old : v)
TT_ATOMIC(atomicExch, v) TT_ATOMIC(atomicOr, (T)(old | v)) TT_ATOMIC(atomicAnd, (T)(old & v))
template <typename T> static inline T atomicCAS(T *at, T compare, T value) {
    T old = *at;
    if (old == compare) *at = value;
    return old;
}
static inline unsigned atomicInc(unsigned *at, unsigned most) {
    unsigned old = *at;
    *at = old >= most ? 0 : old + 1;
    return old;
}
template <typename T> static inline T __ldcg(const T *p) { return *p; }
template <typename T> static inline T __ldg(const T *p) { return *p; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline unsigned __activemask() { return ~0u; }
template <typename T> static inline T min(T a, T b) { return a < b ? a : b; }
template <typename T> static inline T max(T a, T b) { return a > b ? a : b; }

namespace tt_emulated {
static void (*body)(const void *);
static const void *arguments;
static bool backwards; // the last block and the last thread first: no result may depend on who is first
static unsigned nth(unsigned k, unsigned n) { return backwards ? n - 1 - k : k; }

static void run_fiber() {
    body(arguments);
    fibers[self].state = ENDED;
    tt_switch(&fibers[self].at, &scheduler);
}

static void run_block() {
    unsigned n = blockDim.x;
    for (unsigned t = 0; t < n; t++) {
        fiber &f = fibers[t];
        start(&f.at, stacks + (size_t)t * STACK, run_fiber);
        f.state = RUNS;
    }
    for (;;) {
        unsigned ended = 0, at_barrier = 0;
        bool ran = false;
        for (unsigned k = 0; k < n; k++) {
            unsigned t = nth(k, n);
            if (fibers[t].state != RUNS) continue;
            self = t;
            threadIdx = {t, 0, 0};
            ran = true;
            tt_switch(&scheduler, &fibers[t].at);
        }
        for (unsigned w = 0; w < n; w += 32) { // a warp goes on when all of it waits
            unsigned waiting = 0, live = 0;
            for (unsigned t = w; t < n && t < w + 32; t++) {
                waiting += fibers[t].state == AT_WARP;
                live += fibers[t].state != ENDED;
            }
            if (waiting && waiting == live)
                for (unsigned t = w; t < n && t < w + 32; t++)
                    if (fibers[t].state == AT_WARP) fibers[t].state = RUNS, ran = true;
        }
        for (unsigned t = 0; t < n; t++) {
            ended += fibers[t].state == ENDED;
            at_barrier += fibers[t].state == AT_BARRIER;
        }
        if (ended == n) return;
        if (at_barrier && at_barrier + ended == n) {
            for (unsigned t = 0; t < n; t++)
                if (fibers[t].state == AT_BARRIER) fibers[t].state = RUNS;
        } else if (!ran) {
            fprintf(stderr, "a block is stuck: its threads wait at different places\n");
            abort();
        }
    }
}

static int run(void (*kernel)(const void *), const void *args, bool waits, unsigned x, unsigned y, unsigned threads) {
    body = kernel;
    arguments = args;
    has_fibers = waits;
    blockDim = {threads, 1, 1};
    gridDim = {x, y, 1};
    if (waits && !stacks)
        stacks = (char *)mmap(nullptr, (size_t)MOST_THREADS * STACK, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (unsigned j = 0; j < y; j++)
        for (unsigned i = 0; i < x; i++) {
            blockIdx = {nth(i, x), nth(j, y), 0};
            if (waits) run_block();
            else
                for (unsigned t = 0; t < threads; t++) {
                    self = nth(t, threads);
                    threadIdx = {self, 0, 0};
                    kernel(args);
                }
        }
    return 0;
}
} // namespace tt_emulated

#define TT_EMULATED_ENTRY(waits)                                                                             \
    static void tt_call(const void *args) { tt_kernel(*(const TT_ARGS *)args); }                             \
    extern "C" int tt_run(const void *args, unsigned x, unsigned y, unsigned threads, int64_t bytes, int back) { \
        tt_emulated::give_shared(bytes);                                                                     \
        tt_emulated::backwards = back;                                                                       \
        return tt_emulated::run(tt_call, args, waits, x, y, threads);                                        \
    }
