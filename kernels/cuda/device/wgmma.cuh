/* Hopper's matrix unit (PTX ISA, "Asynchronous warpgroup level matrix instructions"): a group of four warps multiplies
 * 64 rows at a time, in the background, by blocks that the unit reads from shared memory; and what it is fed by: copies
 * in the background, and barriers in shared memory, on which some warps tell others.
 *
 * A tile in shared memory has rows of 64 half numbers. Pack c of row r lies in place c ^ (r & 7) of the row's eight: so
 * the packs of a column, as those of a row, lie in different banks ("128-byte swizzle"). It starts at a multiple of
 * 1024 bytes.
 *
 * Of the 64 rows warp w of the group has those from 16 w on, and of a block with 64 columns lane l has in c[4 j + 2 i +
 * h] row l / 4 + 8 i and column 8 j + 2 (l % 4) + h. That is also the layout of a left operand. */
#pragma once
#define TT_GROUP_THREADS 128
#define TT_TILE_ROW 128 /* bytes */
#define TT_TILE_ALIGN 1024

/* 16 columns of a left operand: in at[2 h + i] two neighbours of the i-th row, from column 8 h on. */
typedef tt_pack<uint32_t, 4> fragment;
static TT_DEVICE float half_of(uint32_t both, int which) {
    return TT_CONVERT(TT_D0, TT_D1, (stored_type)(both >> 16 * which));
}

#ifdef __CUDACC_RTC__
#if TT_IS(TT_D0, bf16)
#define TT_HALF "bf16"
#else
#define TT_HALF "f16"
#endif
typedef uint32_t address; /* in shared memory */
static TT_DEVICE address address_of(const void *p) { return (address)__cvta_generic_to_shared(p); }

/* 16 bytes, or 8; zeros, if `there` is false. */
static TT_DEVICE void copy_pack(address to, const void *from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}
static TT_DEVICE void copy_pair(address to, const void *from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(there ? 8 : 0) : "memory");
}
/* A thread's copies since the last commit are a group; all groups but the last n are to be done, and seen by the
 * unit. */
static TT_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int n> static TT_DEVICE void await_copies() {
    asm volatile("cp.async.wait_group %0;\nfence.proxy.async.shared::cta;" ::"n"(n) : "memory");
}
static TT_DEVICE float4 loaded_pack(address from) {
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(from)
                 : "memory");
    return x;
}

/* A barrier has 8 bytes. A phase ends with the n-th arrival; await() is passed when one of this parity has, the first
 * is 0. */
static TT_DEVICE void init_barrier(address b, int n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n) : "memory");
}
static TT_DEVICE void arrive(address b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
}
static TT_DEVICE void await(address b, int parity) {
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(b),
                 "r"(parity)
                 : "memory");
}

/* Between them the unit's registers, those of sums and left operands, may not be touched; await_products<n>() leaves
 * the last n groups of products in the background. hold(): the compiler is to think that they change here. */
static TT_DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static TT_DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int n> static TT_DEVICE void await_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory");
}
template <int n> static TT_DEVICE void hold(float (&x)[n]) {
#pragma unroll
    for (int i = 0; i < n; i++) asm volatile("" : "+f"(x[i])::"memory");
}
template <int n> static TT_DEVICE void hold(fragment (&x)[n]) {
#pragma unroll
    for (int i = 0; i < n; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) asm volatile("" : "+r"(x[i].at[j])::"memory");
}

#define TT_EIGHT(c, i)                                                                                                 \
    "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]),        \
        "+f"(c[i + 7])
/* c = a b, or with `add` c += a b: a has 16 columns. `by_row`: b has in row n, column 16 k + d of the tile the number
 * for column n of c and column d of a; else it has it in row 16 k + d, column n. */
template <bool by_row>
static TT_DEVICE void multiply(float (&c)[32], const fragment &a, address tile, int k, bool add) {
    /* of the tile: its address, and 1024 bytes to the next 8 rows, both in packs; the swizzle */
    const uint64_t block = (uint64_t)(tile >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32." TT_HALF "." TT_HALF " "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, add, 1, 1, %38;\n}"
                 : TT_EIGHT(c, 0), TT_EIGHT(c, 8), TT_EIGHT(c, 16), TT_EIGHT(c, 24)
                 : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "l"(block + (by_row ? 2 : 128) * k),
                   "r"((int)add), "n"(!by_row));
}
static TT_DEVICE uint32_t two(float first, float second) {
    uint32_t both;
    asm("cvt.rn." TT_HALF "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}
#else /* the same on the CPU, for tests: nothing is in the background */
typedef uintptr_t address;
static address address_of(const void *p) { return (address)p; }
static void copy_pack(address to, const void *from, bool there) {
    if (there) memcpy((void *)to, from, 16);
    else memset((void *)to, 0, 16);
}
static void copy_pair(address to, const void *from, bool there) {
    if (there) memcpy((void *)to, from, 8);
    else memset((void *)to, 0, 8);
}
static void commit_copies() {}
template <int n> static void await_copies() {}
static float4 loaded_pack(address from) { return *(const float4 *)from; }
struct barrier {
    int16_t count, missing, phase;
};
static void init_barrier(address b, int n) { *(barrier *)b = {(int16_t)n, (int16_t)n, 0}; }
static void arrive(address at) {
    barrier *b = (barrier *)at;
    if (!--b->missing) b->missing = b->count, b->phase ^= 1;
}
static void await(address b, int parity) {
    while (!__all_sync(~0u, ((volatile barrier *)b)->phase != parity)) {}
}
static void begin_products() {}
static void commit_products() {}
template <int n> static void await_products() {}
template <typename T> static void hold(T &) {}
template <bool by_row> static void multiply(float (&c)[32], const fragment &a, address tile, int k, bool add) {
    const int lane = threadIdx.x & 31;
    float left[2][16];
    for (int l = 0; l < 4; l++) { /* the lanes that have the rows */
        const fragment x = __shfl_sync(~0u, a, lane / 4 * 4 + l);
        for (int j = 0; j < 4; j++)
            for (int h = 0; h < 2; h++) left[j % 2][j / 2 * 8 + 2 * l + h] = half_of(x.at[j], h);
    }
    for (int e = 0; e < 32; e++) {
        const int column = e / 4 * 8 + lane % 4 * 2 + e % 2;
        float sum = add ? c[e] : 0;
        for (int d = 0; d < 16; d++) {
            const int r = by_row ? column : 16 * k + d, col = by_row ? 16 * k + d : column;
            const address row = tile + r * TT_TILE_ROW + ((col / 8 ^ (r & 7)) * 8 + col % 8) * sizeof(stored_type);
            sum += left[e / 2 % 2][d] * TT_CONVERT(TT_D0, TT_D1, *(const stored_type *)row);
        }
        c[e] = sum;
    }
}
static uint32_t two(float first, float second) {
    return (uint16_t)(stored_type)TT_CONVERT(TT_D1, TT_D0, first) |
           (uint32_t)(uint16_t)(stored_type)TT_CONVERT(TT_D1, TT_D0, second) << 16;
}
#endif
