/* Which way a product of float32 or float64 takes: Note [Products in strips]. */
#include "cpu/float_product.h"
#include "core/sizes.h"
#include "cpu/openblas.h"
#include "cpu/simd.h"

typedef tt_float_product_loops tt_float_product_table[2]; /* float32, float64 */
TT_ISA_TABLES(tt_float_product_table, tt_float_products)

#define SMALL ((int64_t)1 << 20) /* multiplications of a product that BLAS packs faster, or not at all */
#define NARROW 16 /* columns that leave most of a strip empty */
#define FEW 32    /* rows for which BLAS takes longer to pack than to multiply */

const tt_float_product_loops *tt_float_product_loops_of(int dtype) {
    return &(*tt_float_products[tt_isa_index])[dtype == TT_F64];
}

/* Without AVX2 a tile has no instruction that multiplies and adds; with it, it has half of the rows, and of many BLAS
 * makes 5 to 10 % more. If alpha is 0, what is not finite does not count. */
bool tt_suits_strips(const tt_float_product *p) {
    if (p->m == 1 || p->n < NARROW || !p->k || p->alpha == 0 || !tt_isa_index) return false;
    if (tt_isa_index < TT_ISAS - 1) return p->b.trans && p->m <= FEW;
    return p->b.trans || (double)p->m * (double)p->n * (double)p->k > SMALL;
}

int64_t tt_strips_memory(int dtype, int64_t n, int64_t k) {
    const tt_float_product_loops *loops = tt_float_product_loops_of(dtype);
    int64_t deep = tt_product_deep(k), wide = tt_product_wide(n, deep, loops->tile_columns);
    return (loops->tile_rows * (loops->tile_columns + TT_PRODUCT_GROUP * deep) + wide * deep) * tt_itemsizes[dtype];
}

void tt_multiply_strips(const tt_float_product *p, void *memory) {
    tt_float_product_loops_of(p->dtype)->multiply(p, memory);
}

#define BY_BLAS(s, T)                                                                                                  \
    static void by_blas_##s(const tt_float_product *p) {                                                               \
        const T *a = p->a.data, *b = p->b.data;                                                                        \
        T *c = p->c, alpha = (T)p->alpha, beta = (T)p->beta;                                                           \
        int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)p->a.ld, ldb = (int)p->b.ld;                       \
        int step_a = p->a.trans ? lda : 1, step_b = p->b.trans ? 1 : ldb;                                              \
        if (m == 1 && n == 1) {                                                                                        \
            T dot = alpha * tt_blas.s##dot(k, a, step_a, b, step_b);                                                   \
            *c = beta == 0 ? dot : dot + beta * *c;                                                                    \
        } else if (n == 1) {                                                                                           \
            if (p->a.trans) tt_blas.s##gemv(ROW_MAJOR, TRANS, k, m, alpha, a, lda, b, step_b, beta, c, (int)p->ldc);   \
            else tt_blas.s##gemv(ROW_MAJOR, NO_TRANS, m, k, alpha, a, lda, b, step_b, beta, c, (int)p->ldc);           \
        } else if (m == 1) {                                                                                           \
            if (p->b.trans) tt_blas.s##gemv(ROW_MAJOR, NO_TRANS, n, k, alpha, b, ldb, a, step_a, beta, c, 1);          \
            else tt_blas.s##gemv(ROW_MAJOR, TRANS, k, n, alpha, b, ldb, a, step_a, beta, c, 1);                        \
        } else                                                                                                         \
            tt_blas.s##gemm(ROW_MAJOR, p->a.trans ? TRANS : NO_TRANS, p->b.trans ? TRANS : NO_TRANS, m, n, k, alpha,   \
                            a, lda, b, ldb, beta, c, (int)p->ldc);                                                     \
    }
BY_BLAS(s, float)
BY_BLAS(d, double)

void tt_multiply_by_blas(const tt_float_product *p) { (p->dtype == TT_F64 ? by_blas_d : by_blas_s)(p); }
