/* Products by tensor cores, 16 rows by 8 columns at a time with sums in float32: of such a block lane l has rows l / 4
 * and l / 4 + 8, and of each columns 2 (l % 4) and the next. That is also the layout of a left operand, so weights are
 * multiplied from where they are, half types rounded. A float32 is the sum of two numbers of 11 bits, large and small,
 * to
 * 2^-23 or so; of two such sums all products count but that of the small ones. Tiles of columns are copied to one place
 * in shared memory while those in the other one are multiplied. Included by attention_tile.cuh. */
#pragma once
#define TT_SCORES 2 /* neighbours of a thread's columns of scores, and of a result */
#define TT_PIECE 2
#define TT_DEPTH (2 * TT_PACK) /* of a product of two blocks */
#define TT_UNROLLED (TT_SPLIT ? 2 : 16)
typedef stored_type shared_type;
typedef tt_pack<uint32_t, 4> fragment; /* what a lane has of a left block, or of two right ones */

#ifdef __CUDACC_RTC__
#if TT_IS(TT_D0, f32)
#define TT_BLOCKS "m16n8k8.row.col.f32.tf32.tf32.f32"
#elif TT_IS(TT_D0, bf16)
#define TT_BLOCKS "m16n8k16.row.col.f32.bf16.bf16.f32"
#define TT_HALF "bf16"
#else
#define TT_BLOCKS "m16n8k16.row.col.f32.f16.f16.f32"
#define TT_HALF "f16"
#endif
static TT_DEVICE unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

/* 16 bytes to shared memory, as soon as may be; zeros, if `there` is false. */
static TT_DEVICE void copy_pack(void *to, const void *from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
}
static TT_DEVICE void await() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/* Four blocks of 8 by 8, of which lane l names row l % 8 of the (l / 8)-th; of each it gets two neighbours of its row,
 * or of its column. */
static TT_DEVICE fragment blocks(const stored_type *row) {
    fragment f;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.at[0]), "=r"(f.at[1]), "=r"(f.at[2]), "=r"(f.at[3])
                 : "r"(shared_address(row))
                 : "memory");
    return f;
}
#if !TT_SPLIT
static TT_DEVICE fragment turned_blocks(const stored_type *row) {
    fragment f;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.at[0]), "=r"(f.at[1]), "=r"(f.at[2]), "=r"(f.at[3])
                 : "r"(shared_address(row))
                 : "memory");
    return f;
}
#endif
/* Adds the product of a left block and a right one, which is given by two registers. */
static TT_DEVICE void multiply(float &c0, float &c1, float &c2, float &c3, const fragment &a, uint32_t b0,
                               uint32_t b1) {
    asm volatile("mma.sync.aligned." TT_BLOCKS " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
                 : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "r"(b0), "r"(b1));
}
#if !TT_SPLIT
static TT_DEVICE uint32_t two(float first, float second) {
    uint32_t both;
    asm("cvt.rn." TT_HALF "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}
#endif
#else /* the same on the CPU, for tests */
static void copy_pack(void *to, const void *from, bool there) {
    if (there) memcpy(to, from, 16);
    else memset(to, 0, 16);
}
static void await() {}
static fragment blocks(const stored_type *row) {
    fragment f;
    const int lane = threadIdx.x & 31;
    for (int k = 0; k < 4; k++) f.at[k] = ((const uint32_t *)__shfl_sync(~0u, row, 8 * k + lane / 4))[lane % 4];
    return f;
}
#if TT_SPLIT
static float part_of(uint32_t bits, int) { return tt_float_bits(bits & 0xffffe000u); }
#else
static uint32_t two_of(stored_type first, stored_type second) {
    return (uint16_t)first | (uint32_t)(uint16_t)second << 16;
}
static fragment turned_blocks(const stored_type *row) {
    fragment f;
    const int lane = threadIdx.x & 31;
    for (int k = 0; k < 4; k++) {
        const stored_type *const first = __shfl_sync(~0u, row, 8 * k + lane % 4 * 2);
        const stored_type *const second = __shfl_sync(~0u, row, 8 * k + lane % 4 * 2 + 1);
        f.at[k] = two_of(first[lane / 4], second[lane / 4]);
    }
    return f;
}
static float part_of(uint32_t both, int which) { return TT_CONVERT(TT_D0, TT_D1, (stored_type)(both >> 16 * which)); }
static uint32_t two(float first, float second) {
    return two_of((stored_type)TT_CONVERT(TT_D1, TT_D0, first), (stored_type)TT_CONVERT(TT_D1, TT_D0, second));
}
#endif
static void multiply(float &c0, float &c1, float &c2, float &c3, const fragment &a, uint32_t b0, uint32_t b1) {
    const int lane = threadIdx.x & 31;
    float sums[4] = {0, 0, 0, 0};
    for (int k = 0; k < 4; k++) { /* the lanes that have the rows, and those of the columns */
        const fragment x = __shfl_sync(~0u, a, lane / 4 * 4 + k);
        for (int c = 0; c < 2; c++) {
            const int from = (lane % 4 * 2 + c) * 4 + k;
            const uint32_t y[2] = {__shfl_sync(~0u, b0, from), __shfl_sync(~0u, b1, from)};
            for (int r = 0; r < 2; r++)
                for (int h = 0; h < TT_PACK / 4; h++)
                    for (int i = 0; i < 2; i++) sums[2 * i + c] += part_of(x.at[2 * r + i], h) * part_of(y[r], h);
        }
    }
    c0 += sums[0], c1 += sums[1], c2 += sums[2], c3 += sums[3];
}
#endif

#if TT_SPLIT
struct operand {
    fragment large, small;
};
/* Rounded to 11 bits; the unit passes over the bits behind them. */
static TT_DEVICE uint32_t rounded(float x) { return tt_bits_f32(x) + 0x1000u; }
static TT_DEVICE operand split(const fragment &f) {
    operand o;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float x = tt_float_bits(f.at[k]);
        o.large.at[k] = rounded(x) & 0xffffe000u;
        o.small.at[k] = rounded(x - tt_float_bits(o.large.at[k]));
    }
    return o;
}
/* Weights as a left block: of the depth the order is another one, */
static TT_DEVICE operand left(const number (&s)[TT_R][TT_C], int m, int k) {
    fragment f;
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < 2; i++) f.at[2 * h + i] = tt_bits_f32(s[2 * m + i][k + h]);
    return split(f);
}
/* and of what they are multiplied by, two right blocks, too. */
template <int stride> static TT_DEVICE operand right(const stored_type *x) {
    const int lane = threadIdx.x & 31;
    fragment f;
    x += lane % 4 * 2 * stride + lane / 4;
#pragma unroll
    for (int k = 0; k < 4; k++) f.at[k] = tt_bits_f32(x[k % 2 * stride + k / 2 * 8]);
    return split(f);
}
#else
typedef fragment operand;
static TT_DEVICE fragment split(const fragment &f) { return f; }
/* Weights as a left block, and two right blocks of what they are multiplied by. */
static TT_DEVICE fragment left(const number (&s)[TT_R][TT_C], int m, int k) {
    fragment f;
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < 2; i++) f.at[2 * h + i] = two(s[2 * m + i][k + 2 * h], s[2 * m + i][k + 2 * h + 1]);
    return f;
}
template <int stride> static TT_DEVICE fragment right(const stored_type *x) {
    const int lane = threadIdx.x & 31;
    return turned_blocks(x + (lane & 15) * stride + lane / 16 * 8);
}
#endif

/* Rows from `first` on to shared memory; zeros beyond `end` and `width`. They are there after await(). */
template <int rows, int padded>
static TT_DEVICE void load(stored_type *to, const stored_type *from, int64_t step, int first, int end, int width) {
    const int packs = padded / TT_PACK;
#pragma unroll
    for (int u = 0; u < (rows * packs + TT_THREADS - 1) / TT_THREADS; u++) {
        const int at = u * TT_THREADS + threadIdx.x, r = at / packs, c = at % packs * TT_PACK;
        if (rows * packs % TT_THREADS && r >= rows) break;
        stored_type *const place = to + r * TT_STRIDE(padded) + c;
        const bool inside = first + r < end;
        const stored_type *const x = from + (inside ? (first + r) * step + c : 0);
#if TT_VARIANT & TT_ATTENTION_PACKS
        copy_pack(place, c < width ? x : from, inside && c < width);
#else
        stored_pack y;
#pragma unroll
        for (int i = 0; i < TT_PACK; i++) y.at[i] = inside && c + i < width ? x[i] : (stored_type)0;
        *(stored_pack *)place = y;
#endif
    }
}

static TT_DEVICE number loaded(const stored_type *x) { return TT_CONVERT(TT_D0, TT_D1, *x); }

/* Of the thread's rows and the columns from the j-th on: c += a b, where b are n pairs of right blocks. Of float32 the
 * small parts come first. With `apart` the unit, which rounds towards 0, adds up the parts of one product alone: that
 * is for sums of many. */
template <bool apart, int n, int columns>
static TT_DEVICE void add_products(number (&c)[TT_R][columns], int j, const operand (&a)[TT_R / 2],
                                   const operand (&b)[n]) {
#if TT_SPLIT
    float s[TT_R / 2][2 * n][4];
#pragma unroll
    for (int part = 0; part < 3; part++)
#pragma unroll
        for (int m = 0; m < TT_R / 2; m++)
#pragma unroll
            for (int h = 0; h < 2 * n; h++) {
                const fragment &left = part == 0 ? a[m].small : a[m].large;
                const fragment &right = part == 1 ? b[h / 2].small : b[h / 2].large;
                float(&to)[4] = s[m][h];
                if (part == 0)
#pragma unroll
                    for (int k = 0; k < 4; k++) to[k] = apart ? 0 : c[2 * m + k / 2][j + 2 * h + k % 2];
                multiply(to[0], to[1], to[2], to[3], left, right.at[h % 2 * 2], right.at[h % 2 * 2 + 1]);
                if (part == 2)
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        number &sum = c[2 * m + k / 2][j + 2 * h + k % 2];
                        sum = apart ? sum + to[k] : to[k];
                    }
            }
#else
#pragma unroll
    for (int m = 0; m < TT_R / 2; m++)
#pragma unroll
        for (int h = 0; h < 2 * n; h++)
            multiply(c[2 * m][j + 2 * h], c[2 * m][j + 2 * h + 1], c[2 * m + 1][j + 2 * h], c[2 * m + 1][j + 2 * h + 1],
                     a[m], b[h / 2].at[h % 2 * 2], b[h / 2].at[h % 2 * 2 + 1]);
#endif
}

/* s = the products of the warp's rows of a and the rows of b */
template <int padded>
static TT_DEVICE void scores(const place &t, const stored_type *a, const stored_type *b, number (&s)[TT_R][TT_C]) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    a += (warp * 8 * TT_R + (lane & 15)) * TT_STRIDE(padded) + lane / 16 * TT_PACK;
    b += ((lane & 7) + lane / 16 * 8) * TT_STRIDE(padded) + (lane / 8 & 1) * TT_PACK;
    clear(s);
#pragma unroll TT_UNROLLED
    for (int d = 0; d < padded; d += TT_DEPTH) {
        operand x[TT_R / 2], y[2];
#pragma unroll
        for (int m = 0; m < TT_R / 2; m++) x[m] = split(blocks(a + 16 * m * TT_STRIDE(padded) + d));
#pragma unroll
        for (int j = 0; j < TT_C; j += 8) { /* 32 columns */
#pragma unroll
            for (int k = 0; k < 2; k++) y[k] = split(blocks(b + 4 * (j + 4 * k) * TT_STRIDE(padded) + d));
            add_products<false>(s, j, x, y);
        }
    }
}

/* to += s x; x has TT_COLS rows */
template <int padded>
static TT_DEVICE void product(const place &t, stored_type *, const number (&s)[TT_R][TT_C], const stored_type *x,
                              number (&to)[TT_R][padded / TT_GROUP]) {
#pragma unroll
    for (int j = 0; j < TT_C; j += TT_DEPTH / TT_GROUP) {
        operand w[TT_R / 2], y[2];
#pragma unroll
        for (int m = 0; m < TT_R / 2; m++) w[m] = left(s, m, j);
#pragma unroll
        for (int c = 0; c < padded / 4; c += 8) { /* 32 columns */
#pragma unroll
            for (int k = 0; k < 2; k++)
                y[k] = right<TT_STRIDE(padded)>(x + 4 * j * TT_STRIDE(padded) + 4 * (c + 4 * k));
            add_products<true>(to, c, w, y);
        }
    }
}
