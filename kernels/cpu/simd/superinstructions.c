/* The steps of superinstructions: Note [Superinstructions] in superinstructions.h. */
#include "cpu/simd.h"
#include "cpu/superinstructions.h"

/* An x86 processor without AVX2 is rare, and this file takes longest to compile: there a superinstruction leaves every
 * element over, and the interpreter takes three times as long for cheap operators (superinstructions.c); compiled, as
 * ever. */
#if defined TT_X86 && !defined __AVX2__
void *const TT_LOCAL(tt_step_table)[TT_NUM_STEPS];

int64_t TT_LOCAL(tt_superinstruction_run)(const tt_step *s, char **p, int64_t from, int64_t end, bool twice) {
    (void)s, (void)p, (void)end, (void)twice;
    return from;
}
#else
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

typedef float vec __attribute__((vector_size(WIDTH)));
typedef int32_t mask __attribute__((vector_size(WIDTH)));
typedef float loose __attribute__((vector_size(WIDTH), aligned(4), may_alias));         /* in memory */
typedef uint8_t bools __attribute__((vector_size(LANES), aligned(1), may_alias));

/* A and B. A function takes eight vectors in registers. Where there are 32 of them, A takes those, and B has some that
 * the compiler leaves alone in this file: chunks of twice the size, so half as many jumps. */
#if defined __AVX512F__ && !defined __clang__
#include "cpu/simd/registers.h"
#define EACH(X, ...)                                                                                                   \
    X(0, __VA_ARGS__)                                                                                                  \
    X(1, __VA_ARGS__)                                                                                                  \
    X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__) X(7, __VA_ARGS__)
#define REGISTERS vec a0, vec a1, vec a2, vec a3, vec a4, vec a5, vec a6, vec a7
#define IN_PLACE a0, a1, a2, a3, a4, a5, a6, a7
#define CHUNK (8 * LANES)
#else
#define EACH(X, ...) X(0, __VA_ARGS__) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__)
#define REGISTERS vec a0, vec a1, vec a2, vec a3, vec b0, vec b1, vec b2, vec b3
#define IN_PLACE a0, a1, a2, a3, b0, b1, b2, b3
#define CHUNK (4 * LANES)
#endif

/* s: the step; p: the slots' places; at: the chunk's first element, of n. */
typedef void step_fn(const tt_step *s, char **p, int64_t at, int64_t n, REGISTERS);
#define STEP(name) static void name(const tt_step *s, char **p, int64_t at, int64_t n, REGISTERS)
#define GO_TO(step) ((step_fn *)(step)->run)(step, p, at, n, IN_PLACE)
#define NEXT GO_TO(s + 1)

#define FLOATS(slot) (loose *)(p[slot] + at * 4)
#define BOOLS(slot) (bools *)(p[slot] + at)
static inline vec number(char **p, int slot) { return *(const float *)p[slot] - (vec){0}; } /* - 0 keeps -0 */

/* What a comparison gives (cond), and a choice by it; the same of a mask, which is what a bool is in A and B. */
#if defined __AVX512F__
typedef __mmask16 cond;
#define COMPARE(a, op, b, code) _mm512_cmp_ps_mask((__m512)(a), (__m512)(b), code)
static inline vec either(cond m, vec a, vec b) { return (vec)_mm512_mask_blend_ps(m, (__m512)b, (__m512)a); }
static inline vec vec_of(cond m) { return (vec)_mm512_movm_epi32(m); }
static inline vec chosen(vec m, vec a, vec b) {
    return (vec)_mm512_ternarylogic_epi32((__m512i)m, (__m512i)a, (__m512i)b, 0xca);
}
#else
typedef mask cond;
#define COMPARE(a, op, b, code) ((a)op(b))
#if defined __AVX__
static inline vec either(cond m, vec a, vec b) { return (vec)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)m); }
#else
static inline vec either(cond m, vec a, vec b) { return (vec)(((mask)a & m) | ((mask)b & ~m)); }
#endif
static inline vec vec_of(cond m) { return (vec)m; }
static inline vec chosen(vec m, vec a, vec b) { return either((cond)m, a, b); }
#endif

/* Bools in memory, as a mask; a mask, as bools in memory. Of __builtin_convertvector gcc 12 makes element by
 * element. */
#if defined __AVX512F__
static inline vec mask_of(const bools *x) {
    return (vec) - (mask)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i_u *)x));
}
static inline void put_bools(bools *x, vec m) { *x = __builtin_convertvector((mask)m & 1, bools); }
#elif defined __AVX__
static inline vec mask_of(const bools *x) {
    return (vec) - (mask)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)x));
}
static inline void put_bools(bools *x, vec m) {
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)m), _mm256_extracti128_si256((__m256i)m, 1));
    _mm_storel_epi64((__m128i_u *)x, _mm_packs_epi16(words, words) & _mm_set1_epi8(1));
}
#elif defined __SSE2__
static inline vec mask_of(const bools *x) {
    int four;
    __builtin_memcpy(&four, x, 4);
    __m128i words = _mm_unpacklo_epi8(_mm_cvtsi32_si128(four), _mm_setzero_si128());
    return (vec) - (mask)_mm_unpacklo_epi16(words, _mm_setzero_si128());
}
static inline void put_bools(bools *x, vec m) {
    __m128i words = _mm_packs_epi32((__m128i)m, (__m128i)m);
    int four = _mm_cvtsi128_si32(_mm_packs_epi16(words, words)) & 0x01010101;
    __builtin_memcpy(x, &four, 4);
}
#else
static inline vec mask_of(const bools *x) { return (vec) - __builtin_convertvector(*x, mask); }
static inline void put_bools(bools *x, vec m) { *x = __builtin_convertvector((mask)m & 1, bools); }
#endif

/* a > b ? a : b, and a < b ? a : b: what x86's instructions say; and the square root. */
#if defined __AVX512F__
static inline vec greater(vec a, vec b) { return (vec)_mm512_max_ps((__m512)a, (__m512)b); }
static inline vec less(vec a, vec b) { return (vec)_mm512_min_ps((__m512)a, (__m512)b); }
static inline vec do_sqrt(vec a) { return (vec)_mm512_sqrt_ps((__m512)a); }
#elif defined __AVX__
static inline vec greater(vec a, vec b) { return (vec)_mm256_max_ps((__m256)a, (__m256)b); }
static inline vec less(vec a, vec b) { return (vec)_mm256_min_ps((__m256)a, (__m256)b); }
static inline vec do_sqrt(vec a) { return (vec)_mm256_sqrt_ps((__m256)a); }
#elif defined __SSE__
static inline vec greater(vec a, vec b) { return (vec)_mm_max_ps((__m128)a, (__m128)b); }
static inline vec less(vec a, vec b) { return (vec)_mm_min_ps((__m128)a, (__m128)b); }
static inline vec do_sqrt(vec a) { return (vec)_mm_sqrt_ps((__m128)a); }
#else
static inline vec greater(vec a, vec b) { return either(a > b, a, b); }
static inline vec less(vec a, vec b) { return either(a < b, a, b); }
static inline vec do_sqrt(vec a) {
    for (int i = 0; i < LANES; i++) a[i] = __builtin_sqrtf(a[i]);
    return a;
}
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
static inline vec do_rsqrt(vec a) { return 1.0f / do_sqrt(a); }
static inline vec do_add(vec a, vec b) { return a + b; }
static inline vec do_sub(vec a, vec b) { return a - b; }
static inline vec do_mul(vec a, vec b) { return a * b; }
static inline vec do_div(vec a, vec b) { return a / b; }
static inline vec do_maximum(vec a, vec b) { return either(NE(a, a), a, greater(a, b)); }
static inline vec do_minimum(vec a, vec b) { return either(NE(a, a), a, less(a, b)); }
static inline vec do_fmax(vec a, vec b) { return either(NE(a, a), b, either(NE(b, b), a, greater(a, b))); }
static inline vec do_fmin(vec a, vec b) { return either(NE(a, a), b, either(NE(b, b), a, less(a, b))); }
static inline vec do_relu_backward(vec g, vec out) { return either(LE(out, zero), zero, g); }
static inline vec do_sigmoid_backward(vec g, vec out) { return g * (1.0f - out) * out; }
static inline vec do_tanh_backward(vec g, vec out) { return g * (1.0f - out * out); }
static inline vec do_eq(vec a, vec b) { return vec_of(EQ(a, b)); }
static inline vec do_ne(vec a, vec b) { return vec_of(NE(a, b)); }
static inline vec do_lt(vec a, vec b) { return vec_of(LT(a, b)); }
static inline vec do_le(vec a, vec b) { return vec_of(LE(a, b)); }
static inline vec do_gt(vec a, vec b) { return vec_of(GT(a, b)); }
static inline vec do_ge(vec a, vec b) { return vec_of(GE(a, b)); }
static inline vec do_where(vec c, vec a, vec b) { return chosen(c, a, b); }
static inline vec do_clamp(vec a, vec lo, vec hi) {
    vec x = either(NE(lo, lo), lo, greater(lo, a));
    return either(NE(hi, hi), hi, less(hi, x));
}
static inline vec do_lerp(vec a, vec b, vec w) {
    vec d = b - a;
    return either(LT(do_abs(w), zero + 0.5f), a + w * d, b - d * (1.0f - w));
}
static inline vec do_addcmul(vec a, vec b, vec c) { return a + b * c; }
static inline vec do_addcdiv(vec a, vec b, vec c) { return a + b / c; }

/* The last step goes to the next chunk. */
STEP(end) {
    at += CHUNK;
    if (at + CHUNK <= n) GO_TO(s - s->slot);
}

#define SIMPLE(name, prepare, work)                                                                                    \
    STEP(name) {                                                                                                       \
        prepare;                                                                                                       \
        EACH(work, _)                                                                                                  \
        NEXT;                                                                                                          \
    }
#define LOAD(i, _) a##i = m[i];
#define LOAD_BOOL(i, _) a##i = mask_of(m + i);
#define SAME(i, _) a##i = c;
#define STORE(i, _) m[i] = a##i;
#define STORE_KEPT(i, _) m[i] = b##i;
#define STORE_BOOL(i, _) put_bools(m + i, a##i);
#define STORE_KEPT_BOOL(i, _) put_bools(m + i, b##i);
#define KEEP(i, _) b##i = a##i;
#define RECALL(i, _) a##i = b##i;
#define ONE_OR_ZERO(i, _) a##i = (vec)((mask)a##i & (mask)c);
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

/* An operator's step in each of its endings: the result stays in A; also in B; also goes to memory. */
#define ENDINGS(name, prepare, work, op, x, y, z, STORED, PLACE)                                                       \
    STEP(name##_only) { prepare EACH(work, op, x, y, z) NEXT; }                                                        \
    STEP(name##_kept) { prepare EACH(work, op, x, y, z) EACH(KEEP, _) NEXT; }                                          \
    STEP(name##_stored) {                                                                                              \
        prepare EACH(work, op, x, y, z) PLACE(s->to);                                                                  \
        EACH(STORED, _)                                                                                                \
        NEXT;                                                                                                          \
    }
#define TO_FLOATS(slot) loose *m = FLOATS(slot)
#define TO_BOOLS(slot) bools *m = BOOLS(slot)
#define FLOAT_ENDINGS(name, prepare, work, op, x, y, z) ENDINGS(name, prepare, work, op, x, y, z, STORE, TO_FLOATS)
#define BOOL_ENDINGS(name, prepare, work, op, x, y, z) ENDINGS(name, prepare, work, op, x, y, z, STORE_BOOL, TO_BOOLS)

/* Where operands stand, as the names of forms have it. IF: the first of `where`. */
#define PREPARE_A(x, slot)
#define PREPARE_B(x, slot)
#define PREPARE_M(x, slot) const loose *x = FLOATS(slot);
#define PREPARE_C(x, slot) const vec x = number(p, slot);
#define GET_A(x, i) a##i
#define GET_B(x, i) b##i
#define GET_M(x, i) x[i]
#define GET_C(x, i) x
#define PREPARE_IF_A(x, slot)
#define PREPARE_IF_B(x, slot)
#define PREPARE_IF_M(x, slot) const bools *x = BOOLS(slot);
#define GET_IF_A(x, i) a##i
#define GET_IF_B(x, i) b##i
#define GET_IF_M(x, i) mask_of(x + i)

#define WORK_1(i, op, X, Y, Z) a##i = do_##op(GET_##X(x, i));
#define WORK_2(i, op, X, Y, Z) a##i = do_##op(GET_##X(x, i), GET_##Y(y, i));
#define WORK_3(i, op, X, Y, Z) a##i = do_##op(GET_##X(x, i), GET_##Y(y, i), GET_##Z(z, i));

#define STEP_1(op, X) FLOAT_ENDINGS(op##_##X, PREPARE_##X(x, s->slot), WORK_1, op, X, _, _)
#define STEPS_1(op) STEP_1(op, A) STEP_1(op, B) STEP_1(op, M)
#define STEP_2(op, X, Y, TO) TO(op##_##X##Y, PREPARE_##X(x, s->slot) PREPARE_##Y(y, s->more), WORK_2, op, X, Y, _)
/* clang-format off */
#define FORMS_2(op, TO)                                                                              \
    STEP_2(op, A, A, TO) STEP_2(op, A, B, TO) STEP_2(op, A, M, TO) STEP_2(op, A, C, TO)              \
    STEP_2(op, B, A, TO) STEP_2(op, B, B, TO) STEP_2(op, B, M, TO) STEP_2(op, B, C, TO)              \
    STEP_2(op, M, A, TO) STEP_2(op, M, B, TO) STEP_2(op, M, M, TO) STEP_2(op, M, C, TO)              \
    STEP_2(op, C, A, TO) STEP_2(op, C, B, TO) STEP_2(op, C, M, TO) STEP_2(op, C, C, TO)
/* clang-format on */
#define STEPS_2(op) FORMS_2(op, FLOAT_ENDINGS)
#define STEPS_2_BOOL(op) FORMS_2(op, BOOL_ENDINGS)
#define STEP_3(op, X, Y, Z, I)                                                                                         \
    FLOAT_ENDINGS(op##_##X##Y##Z, PREPARE_##I##X(x, s->slot) PREPARE_##Y(y, s->more) PREPARE_##Z(z, s->third), WORK_3, \
                  op, I##X, Y, Z)
/* clang-format off */
#define FORMS_3(op, I)                                                                               \
    STEP_3(op, A, A, A, I) STEP_3(op, A, A, B, I) STEP_3(op, A, A, M, I) STEP_3(op, A, B, A, I)      \
    STEP_3(op, A, B, B, I) STEP_3(op, A, B, M, I) STEP_3(op, A, M, A, I) STEP_3(op, A, M, B, I)      \
    STEP_3(op, A, M, M, I) STEP_3(op, A, C, C, I) STEP_3(op, B, A, A, I) STEP_3(op, B, A, B, I)      \
    STEP_3(op, B, A, M, I) STEP_3(op, B, B, A, I) STEP_3(op, B, M, A, I) STEP_3(op, M, A, A, I)      \
    STEP_3(op, M, A, B, I) STEP_3(op, M, A, M, I) STEP_3(op, M, B, A, I) STEP_3(op, M, M, A, I)
/* clang-format on */
#define STEPS_3(op) FORMS_3(op, )

TT_CHAIN_1(STEPS_1)
TT_CHAIN_2(STEPS_2)
TT_CHAIN_2_BOOL(STEPS_2_BOOL)
TT_CHAIN_3(STEPS_3)
FORMS_3(where, IF_)

/* A comparison with a number and the choice by it. */
#define COMPARED_gt GT
#define COMPARED_ge GE
#define COMPARED_lt LT
#define COMPARED_le LE
#define CHOOSE(i, op, X, Y, Z) a##i = either(COMPARED_##op(GET_##X(x, i), c), GET_##Y(y, i), GET_##Z(z, i));
#define STEP_CHOICE(op, X, Y, Z)                                                                                       \
    FLOAT_ENDINGS(choose_##op##_##X##Y##Z, const vec c = number(p, s->slot);                                           \
                  PREPARE_##Y(y, s->more) PREPARE_##Z(z, s->third), CHOOSE, op, X, Y, Z)
#define FORMS_CHOICE_2(op, X, Y)                                                                                       \
    STEP_CHOICE(op, X, Y, A) STEP_CHOICE(op, X, Y, B) STEP_CHOICE(op, X, Y, M) STEP_CHOICE(op, X, Y, C)
#define FORMS_CHOICE_1(op, X)                                                                                          \
    FORMS_CHOICE_2(op, X, A) FORMS_CHOICE_2(op, X, B) FORMS_CHOICE_2(op, X, M) FORMS_CHOICE_2(op, X, C)
#define STEPS_CHOICE(op) FORMS_CHOICE_1(op, A) FORMS_CHOICE_1(op, B)
TT_CHAIN_CHOICE(STEPS_CHOICE)

/* clang-format off */
#define ENTRY(op, form)                                                      \
    [TT_STEP_##op + TT_FORM_##form] = op##_##form##_only,                    \
    [TT_STEP_##op + TT_FORM_##form + TT_KEPT] = op##_##form##_kept,          \
    [TT_STEP_##op + TT_FORM_##form + TT_STORED] = op##_##form##_stored,
#define ENTRY_CHOICE(op, x, y, z)                                                              \
    [TT_STEP_choose_##op + TT_PLACES_3(x, y, z)] = choose_##op##_##x##y##z##_only,             \
    [TT_STEP_choose_##op + TT_PLACES_3(x, y, z) + TT_KEPT] = choose_##op##_##x##y##z##_kept,   \
    [TT_STEP_choose_##op + TT_PLACES_3(x, y, z) + TT_STORED] = choose_##op##_##x##y##z##_stored,
/* clang-format on */
#define ENTRIES_CHOICE_2(op, x, y)                                                                                     \
    ENTRY_CHOICE(op, x, y, A) ENTRY_CHOICE(op, x, y, B) ENTRY_CHOICE(op, x, y, M) ENTRY_CHOICE(op, x, y, C)
#define ENTRIES_CHOICE_1(op, x)                                                                                        \
    ENTRIES_CHOICE_2(op, x, A) ENTRIES_CHOICE_2(op, x, B) ENTRIES_CHOICE_2(op, x, M) ENTRIES_CHOICE_2(op, x, C)
#define ENTRIES_CHOICE(op) ENTRIES_CHOICE_1(op, A) ENTRIES_CHOICE_1(op, B)
#define ENTRIES_1(op) ENTRY(op, A) ENTRY(op, B) ENTRY(op, M)
#define ENTRIES_2(op)                                                                                                  \
    ENTRY(op, AA)                                                                                                      \
    ENTRY(op, AB)                                                                                                      \
    ENTRY(op, AM)                                                                                                      \
    ENTRY(op, AC)                                                                                                      \
    ENTRY(op, BA)                                                                                                      \
    ENTRY(op, BB)                                                                                                      \
    ENTRY(op, BM)                                                                                                      \
    ENTRY(op, BC)                                                                                                      \
    ENTRY(op, MA) ENTRY(op, MB) ENTRY(op, MM) ENTRY(op, MC) ENTRY(op, CA) ENTRY(op, CB) ENTRY(op, CM) ENTRY(op, CC)
/* clang-format off */
#define ENTRIES_3(op)                                                                                               \
    ENTRY(op, AAA) ENTRY(op, AAB) ENTRY(op, AAM) ENTRY(op, ABA) ENTRY(op, ABB) ENTRY(op, ABM) ENTRY(op, AMA)        \
    ENTRY(op, AMB) ENTRY(op, AMM) ENTRY(op, ACC) ENTRY(op, BAA) ENTRY(op, BAB) ENTRY(op, BAM) ENTRY(op, BBA)        \
    ENTRY(op, BMA) ENTRY(op, MAA) ENTRY(op, MAB) ENTRY(op, MAM) ENTRY(op, MBA) ENTRY(op, MMA)
/* clang-format on */
void *const TT_LOCAL(tt_step_table)[TT_NUM_STEPS] = {[TT_STEP_END] = end,
                                                     [TT_STEP_LOAD] = load,
                                                     [TT_STEP_LOAD_BOOL] = load_bool,
                                                     [TT_STEP_LOAD_NUMBER] = load_number,
                                                     [TT_STEP_STORE] = store,
                                                     [TT_STEP_STORE_BOOL] = store_bool,
                                                     [TT_STEP_STORE_KEPT] = store_kept,
                                                     [TT_STEP_STORE_KEPT_BOOL] = store_kept_bool,
                                                     [TT_STEP_KEEP] = keep,
                                                     [TT_STEP_RECALL] = recall,
                                                     [TT_STEP_BOOL_TO_FLOAT] = bool_to_float,
                                                     TT_CHAIN_1(ENTRIES_1) TT_CHAIN_2(ENTRIES_2)
                                                         TT_CHAIN_2_BOOL(ENTRIES_2) TT_CHAIN_3(ENTRIES_3)
                                                             ENTRIES_3(where) TT_CHAIN_CHOICE(ENTRIES_CHOICE)};

_Static_assert(CHUNK <= TT_MOST_LEFT, "a row's value is there for as many elements as a superinstruction leaves over");

int64_t TT_LOCAL(tt_superinstruction_run)(const tt_step *s, char **p, int64_t from, int64_t end, bool twice) {
    vec x = {0};
    if (end - from < CHUNK) return from;
    ((step_fn *)s->run)(s, p, from, end, x, x, x, x, x, x, x, x);
    int64_t left = (end - from) % CHUNK;
    if (!left || !twice) return end - left;
    ((step_fn *)s->run)(s, p, end - CHUNK, end, x, x, x, x, x, x, x, x);
    return end;
}
#endif
