/* The steps of chains: Note [Chains] in chain.h. */
#include "../simd.h"
#include "../chain.h"
#if defined __SSE__
#include <immintrin.h>
#endif

#if defined __AVX512F__
#define WIDTH 64
#elif defined __AVX__
#define WIDTH 32
#else
#define WIDTH 16
#endif
#define LANES (WIDTH / 4)
#define CHUNK (4 * LANES)

typedef float vec __attribute__((vector_size(WIDTH)));
typedef int32_t mask __attribute__((vector_size(WIDTH)));
typedef float loose __attribute__((vector_size(WIDTH), aligned(4), may_alias));         /* in memory */
typedef uint8_t bools __attribute__((vector_size(LANES), aligned(1), may_alias));

#define EACH(X, op) X(0, op) X(1, op) X(2, op) X(3, op)
#define REGISTERS vec a0, vec a1, vec a2, vec a3, vec b0, vec b1, vec b2, vec b3

/* s: the step; p: the slots' places; at: the chunk's first element. */
typedef void step_fn(const tt_step *s, char **p, int64_t at, REGISTERS);
#define STEP(name) static void name(const tt_step *s, char **p, int64_t at, REGISTERS)
#define NEXT ((step_fn *)s[1].run)(s + 1, p, at, a0, a1, a2, a3, b0, b1, b2, b3)

#define FLOATS(slot) (loose *)(p[slot] + at * 4)
#define BOOLS(slot) (bools *)(p[slot] + at)
static inline vec number(char **p, int slot) { return *(const float *)p[slot] - (vec){0}; } /* - 0 keeps -0 */

/* Operands in registers, in this order: of two NaNs x86 gives the first, and where one of the two comes from memory a
 * compiler likes to have that one second. */
#if defined __x86_64__ && defined __AVX512F__
#define IN_REGISTER(x) __asm__("" : "+v"(x))
#elif defined __x86_64__
#define IN_REGISTER(x) __asm__("" : "+x"(x))
#else
#define IN_REGISTER(x) (void)0
#endif

/* What a comparison gives, a choice by it, and the two kinds of bools: in the accumulator (a mask of lanes) and in memory. */
#if defined __AVX512F__
typedef __mmask16 cond;
#define COMPARE(a, op, b, code) _mm512_cmp_ps_mask((__m512)(a), (__m512)(b), code)
static inline vec either(cond m, vec a, vec b) { return (vec)_mm512_mask_blend_ps(m, (__m512)b, (__m512)a); }
static inline cond cond_of(vec m) { return _mm512_movepi32_mask((__m512i)m); }
static inline vec vec_of(cond m) { return (vec)_mm512_movm_epi32(m); }
static inline cond cond_of_bools(const bools *x) { return _mm_test_epi8_mask((__m128i)*x, (__m128i)*x); }
#else
typedef mask cond;
#define COMPARE(a, op, b, code) ((a) op (b))
#if defined __AVX__
static inline vec either(cond m, vec a, vec b) { return (vec)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)m); }
#else
static inline vec either(cond m, vec a, vec b) { return (vec)(((mask)a & m) | ((mask)b & ~m)); }
#endif
static inline cond cond_of(vec m) { return (cond)m; }
static inline vec vec_of(cond m) { return (vec)m; }
static inline cond cond_of_bools(const bools *x) { return __builtin_convertvector(*x, mask) != 0; }
#endif
/* a > b ? a : b, and a < b ? a : b: what x86's instructions say. */
#if defined __AVX512F__
static inline vec greater(vec a, vec b) { return (vec)_mm512_max_ps((__m512)a, (__m512)b); }
static inline vec less(vec a, vec b) { return (vec)_mm512_min_ps((__m512)a, (__m512)b); }
#elif defined __AVX__
static inline vec greater(vec a, vec b) { return (vec)_mm256_max_ps((__m256)a, (__m256)b); }
static inline vec less(vec a, vec b) { return (vec)_mm256_min_ps((__m256)a, (__m256)b); }
#elif defined __SSE__
static inline vec greater(vec a, vec b) { return (vec)_mm_max_ps((__m128)a, (__m128)b); }
static inline vec less(vec a, vec b) { return (vec)_mm_min_ps((__m128)a, (__m128)b); }
#else
static inline vec greater(vec a, vec b) { return either(a > b, a, b); }
static inline vec less(vec a, vec b) { return either(a < b, a, b); }
#endif
#define EQ(a, b) COMPARE(a, ==, b, _CMP_EQ_OQ)
#define NE(a, b) COMPARE(a, !=, b, _CMP_NEQ_UQ)
#define LT(a, b) COMPARE(a, <, b, _CMP_LT_OQ)
#define LE(a, b) COMPARE(a, <=, b, _CMP_LE_OQ)
#define GT(a, b) COMPARE(a, >, b, _CMP_GT_OQ)
#define GE(a, b) COMPARE(a, >=, b, _CMP_GE_OQ)

/* The scalar functions of the same names, on vectors: the same bits. */
static const vec zero;
static inline vec do_neg(vec a) { return -a; }
static inline vec do_abs(vec a) { return (vec)((mask)a & 0x7fffffff); }
static inline vec do_sign(vec a) { return either(GT(a, zero), zero + 1.0f, either(LT(a, zero), zero - 1.0f, zero)); }
static inline vec do_square(vec a) { return a * a; }
static inline vec do_relu(vec a) { return either(LE(a, zero), zero, a); }
static inline vec do_positive(vec a) { return a; }
static inline vec do_reciprocal(vec a) { return 1.0f / a; }
static inline vec do_add(vec a, vec b) { return a + b; }
static inline vec do_sub(vec a, vec b) { return a - b; }
static inline vec do_mul(vec a, vec b) { return a * b; }
static inline vec do_div(vec a, vec b) { return a / b; }
static inline vec do_maximum(vec a, vec b) { return either(NE(a, a), a, greater(a, b)); }
static inline vec do_minimum(vec a, vec b) { return either(NE(a, a), a, less(a, b)); }
static inline vec do_fmax(vec a, vec b) { return either(NE(a, a), b, either(NE(b, b), a, greater(a, b))); }
static inline vec do_fmin(vec a, vec b) { return either(NE(a, a), b, either(NE(b, b), a, less(a, b))); }
static inline vec do_copysign(vec a, vec b) { return (vec)(((mask)a & 0x7fffffff) | ((mask)b & ~0x7fffffff)); }
static inline vec do_relu_backward(vec g, vec out) { return either(LE(out, zero), zero, g); }
static inline vec do_sigmoid_backward(vec g, vec out) { return g * (1.0f - out) * out; }
static inline vec do_tanh_backward(vec g, vec out) { return g * (1.0f - out * out); }
static inline vec do_eq(vec a, vec b) { return vec_of(EQ(a, b)); }
static inline vec do_ne(vec a, vec b) { return vec_of(NE(a, b)); }
static inline vec do_lt(vec a, vec b) { return vec_of(LT(a, b)); }
static inline vec do_le(vec a, vec b) { return vec_of(LE(a, b)); }
static inline vec do_gt(vec a, vec b) { return vec_of(GT(a, b)); }
static inline vec do_ge(vec a, vec b) { return vec_of(GE(a, b)); }
static inline vec do_where(cond c, vec a, vec b) { return either(c, a, b); }
static inline vec do_clamp(vec a, vec lo, vec hi) { return do_minimum(do_maximum(a, lo), hi); }
static inline vec do_lerp(vec a, vec b, vec w) {
    vec d = b - a;
    return either(LT(do_abs(w), zero + 0.5f), a + w * d, b - d * (1.0f - w));
}
static inline vec do_addcmul(vec a, vec b, vec c) { return a + b * c; }
static inline vec do_addcdiv(vec a, vec b, vec c) { return a + b / c; }

STEP(end) {
    (void)s, (void)p, (void)at;
#define IGNORE(i, op) (void)a##i, (void)b##i;
    EACH(IGNORE, )
}

#define SIMPLE(name, prepare, work)                       \
    STEP(name) {                                          \
        prepare;                                          \
        EACH(work, )                                      \
        NEXT;                                             \
    }
#define LOAD(i, op) a##i = m[i];
#define LOAD_BOOL(i, op) a##i = vec_of(cond_of_bools(m + i));
#define SAME(i, op) a##i = c;
#define STORE(i, op) m[i] = a##i;
#define STORE_KEPT(i, op) m[i] = b##i;
#define STORE_BOOL(i, op) m[i] = __builtin_convertvector((mask)a##i & 1, bools);
#define STORE_KEPT_BOOL(i, op) m[i] = __builtin_convertvector((mask)b##i & 1, bools);
#define KEEP(i, op) b##i = a##i;
#define RECALL(i, op) a##i = b##i;
#define ONE_OR_ZERO(i, op) a##i = (vec)((mask)a##i & (mask)c);
SIMPLE(load, loose *m = FLOATS(s->slot), LOAD)
SIMPLE(load_bool, bools *m = BOOLS(s->slot), LOAD_BOOL)
SIMPLE(load_number, vec c = number(p, s->slot), SAME)
SIMPLE(store, loose *m = FLOATS(s->slot), STORE)
SIMPLE(store_bool, bools *m = BOOLS(s->slot), STORE_BOOL)
SIMPLE(store_kept, loose *m = FLOATS(s->slot), STORE_KEPT)
SIMPLE(store_kept_bool, bools *m = BOOLS(s->slot), STORE_KEPT_BOOL)
SIMPLE(keep, , KEEP)
SIMPLE(recall, , RECALL)
SIMPLE(bool_to_float, vec c = zero + 1.0f, ONE_OR_ZERO)

#define OP_A(i, op) a##i = do_##op(a##i);
#define OP_AM(i, op) a##i = do_##op(a##i, m[i]);
#define OP_MA(i, op) { vec x = m[i]; IN_REGISTER(x); a##i = do_##op(x, a##i); }
#define OP_AC(i, op) a##i = do_##op(a##i, c);
#define OP_CA(i, op) a##i = do_##op(c, a##i);
#define OP_AA(i, op) a##i = do_##op(a##i, a##i);
#define OP_AB(i, op) a##i = do_##op(a##i, b##i);
#define OP_BA(i, op) a##i = do_##op(b##i, a##i);
#define STEP_OF(op, form, prepare, work)                  \
    STEP(op##_##form) {                                   \
        prepare;                                          \
        EACH(work, op)                                    \
        NEXT;                                             \
    }
#define STEPS_1(op) STEP_OF(op, A, , OP_A)
#define STEPS_2(op)                                       \
    STEP_OF(op, AM, loose *m = FLOATS(s->slot), OP_AM)    \
    STEP_OF(op, MA, loose *m = FLOATS(s->slot), OP_MA)    \
    STEP_OF(op, AC, vec c = number(p, s->slot), OP_AC)    \
    STEP_OF(op, CA, vec c = number(p, s->slot), OP_CA)    \
    STEP_OF(op, AA, , OP_AA)                              \
    STEP_OF(op, AB, , OP_AB)                              \
    STEP_OF(op, BA, , OP_BA)

/* Of three operands the first one that is in memory stands in s->slot, the second in s->more. */
#define IN_A(i) a##i
#define IN_B(i) b##i
#define IN_M(i) m[i]
#define IN_N(i) n[i]
#define IN_C(i) c
#define IN_D(i) d
#define IF_A(i) cond_of(a##i)
#define IF_B(i) cond_of(b##i)
#define IF_M(i) cond_of_bools(m + i)
#define STEP_3(op, form, prepare, x, y, z)                \
    STEP(op##_##form) {                                   \
        prepare;                                          \
        a0 = do_##op(x(0), y(0), z(0));                   \
        a1 = do_##op(x(1), y(1), z(1));                   \
        a2 = do_##op(x(2), y(2), z(2));                   \
        a3 = do_##op(x(3), y(3), z(3));                   \
        NEXT;                                             \
    }
#define NOTHING
#define ONE loose *m = FLOATS(s->slot)
#define TWO loose *m = FLOATS(s->slot); loose *n = FLOATS(s->more)
#define BOOL_ONE bools *m = BOOLS(s->slot)
#define BOOL_TWO bools *m = BOOLS(s->slot); loose *n = FLOATS(s->more)
#define NUMBERS vec c = number(p, s->slot); vec d = number(p, s->more)
#define FORMS_3(op, A, B, M, first, first_two)                                                                 \
    STEP_3(op, AAA, NOTHING, A, IN_A, IN_A) STEP_3(op, AAB, NOTHING, A, IN_A, IN_B)                            \
    STEP_3(op, AAM, ONE, A, IN_A, IN_M) STEP_3(op, ABA, NOTHING, A, IN_B, IN_A)                                \
    STEP_3(op, ABB, NOTHING, A, IN_B, IN_B) STEP_3(op, ABM, ONE, A, IN_B, IN_M)                                \
    STEP_3(op, AMA, ONE, A, IN_M, IN_A) STEP_3(op, AMB, ONE, A, IN_M, IN_B)                                    \
    STEP_3(op, AMM, TWO, A, IN_M, IN_N) STEP_3(op, ACC, NUMBERS, A, IN_C, IN_D)                                \
    STEP_3(op, BAA, NOTHING, B, IN_A, IN_A) STEP_3(op, BAB, NOTHING, B, IN_A, IN_B)                            \
    STEP_3(op, BAM, ONE, B, IN_A, IN_M) STEP_3(op, BBA, NOTHING, B, IN_B, IN_A)                                \
    STEP_3(op, BMA, ONE, B, IN_M, IN_A) STEP_3(op, MAA, first, M, IN_A, IN_A)                                  \
    STEP_3(op, MAB, first, M, IN_A, IN_B) STEP_3(op, MAM, first_two, M, IN_A, IN_N)                            \
    STEP_3(op, MBA, first, M, IN_B, IN_A) STEP_3(op, MMA, first_two, M, IN_N, IN_A)
#define STEPS_3(op) FORMS_3(op, IN_A, IN_B, IN_M, ONE, TWO)

TT_CHAIN_1(STEPS_1)
TT_CHAIN_2(STEPS_2)
TT_CHAIN_3(STEPS_3)
FORMS_3(where, IF_A, IF_B, IF_M, BOOL_ONE, BOOL_TWO)

#define ENTRY(op, form) [TT_STEP_##op + TT_FORM_##form] = op##_##form,
#define ENTRIES_1(op) ENTRY(op, A)
#define ENTRIES_2(op) ENTRY(op, AM) ENTRY(op, MA) ENTRY(op, AC) ENTRY(op, CA) ENTRY(op, AA) ENTRY(op, AB) ENTRY(op, BA)
#define ENTRIES_3(op)                                                                                           \
    ENTRY(op, AAA) ENTRY(op, AAB) ENTRY(op, AAM) ENTRY(op, ABA) ENTRY(op, ABB) ENTRY(op, ABM) ENTRY(op, AMA)    \
    ENTRY(op, AMB) ENTRY(op, AMM) ENTRY(op, ACC) ENTRY(op, BAA) ENTRY(op, BAB) ENTRY(op, BAM) ENTRY(op, BBA)    \
    ENTRY(op, BMA) ENTRY(op, MAA) ENTRY(op, MAB) ENTRY(op, MAM) ENTRY(op, MBA) ENTRY(op, MMA)
void *const TT_LOCAL(tt_step_table)[TT_NUM_STEPS] = {
    [TT_STEP_END] = end, [TT_STEP_LOAD] = load, [TT_STEP_LOAD_BOOL] = load_bool, [TT_STEP_LOAD_NUMBER] = load_number,
    [TT_STEP_STORE] = store, [TT_STEP_STORE_BOOL] = store_bool, [TT_STEP_STORE_KEPT] = store_kept,
    [TT_STEP_STORE_KEPT_BOOL] = store_kept_bool, [TT_STEP_KEEP] = keep, [TT_STEP_RECALL] = recall,
    [TT_STEP_BOOL_TO_FLOAT] = bool_to_float, TT_CHAIN_1(ENTRIES_1) TT_CHAIN_2(ENTRIES_2) TT_CHAIN_3(ENTRIES_3) ENTRIES_3(where)
};

int64_t TT_LOCAL(tt_chain_run)(const tt_step *s, char **p, int64_t n) {
    int64_t at = 0;
    for (vec x = {0}; at + CHUNK <= n; at += CHUNK) ((step_fn *)s->run)(s, p, at, x, x, x, x, x, x, x, x);
    return at;
}
