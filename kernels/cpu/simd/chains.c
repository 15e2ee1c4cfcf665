/* The steps of chains: Note [Chains] in chain.h. */
#include "../simd.h"
#include "../chain.h"

#if defined __AVX512F__
#define WIDTH 64
#elif defined __AVX__
#define WIDTH 32
#else
#define WIDTH 16
#endif
#define LANES (WIDTH / 4)
#define CHUNK (8 * LANES)

typedef float vec __attribute__((vector_size(WIDTH)));
typedef int32_t mask __attribute__((vector_size(WIDTH)));
typedef float loose __attribute__((vector_size(WIDTH), aligned(4), may_alias));         /* in memory */
typedef uint8_t bools __attribute__((vector_size(LANES), aligned(1), may_alias));

#define EACH(X, op) X(0, op) X(1, op) X(2, op) X(3, op) X(4, op) X(5, op) X(6, op) X(7, op)
#define REGISTERS vec a0, vec a1, vec a2, vec a3, vec a4, vec a5, vec a6, vec a7
#define ACCUMULATOR a0, a1, a2, a3, a4, a5, a6, a7

/* s: the step; p: the slots' places; at: the chunk's first element. */
typedef void step_fn(const tt_step *s, char **p, int64_t at, REGISTERS);
static step_fn *const table[TT_STEP_OP + TT_NUM_OPS * TT_FORMS];

#define STEP(name) static void name(const tt_step *s, char **p, int64_t at, REGISTERS)
#define NEXT table[s[1].code](s + 1, p, at, ACCUMULATOR)

#define FLOATS(slot) ((const loose *)(p[slot] + at * 4))
#define BOOLS(slot) ((const bools *)(p[slot] + at))
static inline vec number(char **p, int slot) { return *(const float *)p[slot] - (vec){0}; } /* - 0 keeps -0 */
static inline vec vec_of_bools(const bools *x) { return (vec)(__builtin_convertvector(*x, mask) != 0); }

/* Operands in registers, in this order: of two NaNs x86 gives the first, and where one of the two comes from memory a
 * compiler likes to have that one second. */
#if defined __x86_64__ && defined __AVX512F__
#define IN_REGISTER(x) __asm__("" : "+v"(x))
#elif defined __x86_64__
#define IN_REGISTER(x) __asm__("" : "+x"(x))
#else
#define IN_REGISTER(x) (void)0
#endif

/* The scalar functions of the same names, on vectors: the same bits. */
#define EITHER(m, a, b) ((vec)(((mask)(a) & (m)) | ((mask)(b) & ~(m))))
static inline vec do_neg(vec a) { return -a; }
static inline vec do_abs(vec a) { return (vec)((mask)a & 0x7fffffff); }
static inline vec do_sign(vec a) { return __builtin_convertvector((a < 0) - (a > 0), vec); }
static inline vec do_square(vec a) { return a * a; }
static inline vec do_relu(vec a) { return (vec)((mask)a & ~(a <= 0)); }
static inline vec do_positive(vec a) { return a; }
static inline vec do_reciprocal(vec a) { return 1.0f / a; }
static inline vec do_add(vec a, vec b) { return a + b; }
static inline vec do_sub(vec a, vec b) { return a - b; }
static inline vec do_mul(vec a, vec b) { return a * b; }
static inline vec do_div(vec a, vec b) { return a / b; }
static inline vec do_maximum(vec a, vec b) { return EITHER((a != a) | (a > b), a, b); }
static inline vec do_minimum(vec a, vec b) { return EITHER((a != a) | (a < b), a, b); }
static inline vec do_fmax(vec a, vec b) { return EITHER(((b != b) & (a == a)) | (a > b), a, b); }
static inline vec do_fmin(vec a, vec b) { return EITHER(((b != b) & (a == a)) | (a < b), a, b); }
static inline vec do_copysign(vec a, vec b) { return EITHER((mask){0} + 0x7fffffff, a, b); }
static inline vec do_relu_backward(vec g, vec out) { return (vec)((mask)g & ~(out <= 0)); }
static inline vec do_sigmoid_backward(vec g, vec out) { return g * (1.0f - out) * out; }
static inline vec do_tanh_backward(vec g, vec out) { return g * (1.0f - out * out); }
static inline vec do_eq(vec a, vec b) { return (vec)(a == b); }
static inline vec do_ne(vec a, vec b) { return (vec)(a != b); }
static inline vec do_lt(vec a, vec b) { return (vec)(a < b); }
static inline vec do_le(vec a, vec b) { return (vec)(a <= b); }
static inline vec do_gt(vec a, vec b) { return (vec)(a > b); }
static inline vec do_ge(vec a, vec b) { return (vec)(a >= b); }
static inline vec do_where(vec c, vec a, vec b) { return EITHER((mask)c, a, b); }
static inline vec do_clamp(vec a, vec lo, vec hi) { return do_minimum(do_maximum(a, lo), hi); }
static inline vec do_lerp(vec a, vec b, vec w) {
    vec d = b - a;
    return EITHER(do_abs(w) < 0.5f, a + w * d, b - d * (1.0f - w));
}
static inline vec do_addcmul(vec a, vec b, vec c) { return a + b * c; }
static inline vec do_addcdiv(vec a, vec b, vec c) { return a + b / c; }

STEP(end) {
    (void)s, (void)p, (void)at;
#define IGNORE(i, op) (void)a##i;
    EACH(IGNORE, )
}

#define LOAD(i, op) a##i = from[i];
STEP(load) {
    const loose *from = FLOATS(s->slot);
    EACH(LOAD, )
    NEXT;
}

#define SAME(i, op) a##i = x;
STEP(load_number) {
    vec x = number(p, s->slot);
    EACH(SAME, )
    NEXT;
}

#define LOAD_BOOL(i, op) a##i = vec_of_bools(from + i);
STEP(load_bool) {
    const bools *from = BOOLS(s->slot);
    EACH(LOAD_BOOL, )
    NEXT;
}

#define STORE(i, op) to[i] = a##i;
STEP(store) {
    loose *to = (loose *)(p[s->slot] + at * 4);
    EACH(STORE, )
    NEXT;
}

#define STORE_BOOL(i, op) to[i] = __builtin_convertvector((mask)a##i & 1, bools);
STEP(store_bool) {
    bools *to = (bools *)(p[s->slot] + at);
    EACH(STORE_BOOL, )
    NEXT;
}

#define ONE_OR_ZERO(i, op) a##i = (vec)((mask)a##i & (mask)one);
STEP(bool_to_float) {
    vec one = (vec){0} + 1.0f;
    EACH(ONE_OR_ZERO, )
    NEXT;
}

#define OP_A(i, op) a##i = do_##op(a##i);
#define OP_AM(i, op) a##i = do_##op(a##i, b[i]);
#define OP_MA(i, op) { vec x = b[i]; IN_REGISTER(x); a##i = do_##op(x, a##i); }
#define OP_AC(i, op) a##i = do_##op(a##i, b);
#define OP_CA(i, op) a##i = do_##op(b, a##i);
#define OP_AA(i, op) a##i = do_##op(a##i, a##i);
#define STEPS_1(op)                                       \
    STEP(op##_a) {                                        \
        EACH(OP_A, op)                                    \
        NEXT;                                             \
    }
#define STEPS_2(op)                                       \
    STEP(op##_am) {                                       \
        const loose *b = FLOATS(s->slot);                 \
        EACH(OP_AM, op)                                   \
        NEXT;                                             \
    }                                                     \
    STEP(op##_ma) {                                       \
        const loose *b = FLOATS(s->slot);                 \
        EACH(OP_MA, op)                                   \
        NEXT;                                             \
    }                                                     \
    STEP(op##_ac) {                                       \
        vec b = number(p, s->slot);                       \
        EACH(OP_AC, op)                                   \
        NEXT;                                             \
    }                                                     \
    STEP(op##_ca) {                                       \
        vec b = number(p, s->slot);                       \
        EACH(OP_CA, op)                                   \
        NEXT;                                             \
    }                                                     \
    STEP(op##_aa) {                                       \
        EACH(OP_AA, op)                                   \
        NEXT;                                             \
    }

/* Of three operands those that are not in the accumulator stand in s->slot and s->more, in this order. */
#define OP_AMM(i, op) a##i = do_##op(a##i, b[i], c[i]);
#define OP_MAM(i, op) { vec x = b[i]; IN_REGISTER(x); a##i = do_##op(x, a##i, c[i]); }
#define OP_MMA(i, op) { vec x = b[i]; IN_REGISTER(x); a##i = do_##op(x, c[i], a##i); }
#define OP_ACC(i, op) a##i = do_##op(a##i, b, c);
#define OP_BAM(i, op) a##i = do_##op(vec_of_bools(b + i), a##i, c[i]);
#define OP_BMA(i, op) a##i = do_##op(vec_of_bools(b + i), c[i], a##i);
#define STEP_3(op, name, form, B, at_b, C, at_c)          \
    STEP(op##_##name) {                                   \
        B b = at_b(s->slot);                              \
        C c = at_c(s->more);                              \
        EACH(form, op)                                    \
        NEXT;                                             \
    }
#define NUMBER(slot) number(p, slot)
#define STEPS_3(op)                                                                      \
    STEP_3(op, amm, OP_AMM, const loose *, FLOATS, const loose *, FLOATS)                \
    STEP_3(op, mam, OP_MAM, const loose *, FLOATS, const loose *, FLOATS)                \
    STEP_3(op, mma, OP_MMA, const loose *, FLOATS, const loose *, FLOATS)                \
    STEP_3(op, acc, OP_ACC, vec, NUMBER, vec, NUMBER)
#define STEPS_WHERE(op)                                                                  \
    STEP_3(op, amm, OP_AMM, const loose *, FLOATS, const loose *, FLOATS)                \
    STEP_3(op, mam, OP_BAM, const bools *, BOOLS, const loose *, FLOATS)                 \
    STEP_3(op, mma, OP_BMA, const bools *, BOOLS, const loose *, FLOATS)                 \
    STEP_3(op, acc, OP_ACC, vec, NUMBER, vec, NUMBER)

TT_CHAIN_1(STEPS_1)
TT_CHAIN_2(STEPS_2)
TT_CHAIN_3(STEPS_3)
STEPS_WHERE(where)

#define CODE(op, form) [TT_STEP_OP + TT_OP_##op * TT_FORMS + TT_FORM_##form]
#define ENTRY_1(op) CODE(op, A) = op##_a,
#define ENTRY_2(op) CODE(op, AM) = op##_am, CODE(op, MA) = op##_ma, CODE(op, AC) = op##_ac, CODE(op, CA) = op##_ca, \
                    CODE(op, AA) = op##_aa,
#define ENTRY_3(op) CODE(op, AMM) = op##_amm, CODE(op, MAM) = op##_mam, CODE(op, MMA) = op##_mma, CODE(op, ACC) = op##_acc,
static step_fn *const table[TT_STEP_OP + TT_NUM_OPS * TT_FORMS] = {
    [TT_STEP_END] = end, [TT_STEP_LOAD] = load, [TT_STEP_LOAD_NUMBER] = load_number, [TT_STEP_LOAD_BOOL] = load_bool,
    [TT_STEP_STORE] = store, [TT_STEP_STORE_BOOL] = store_bool, [TT_STEP_BOOL_TO_FLOAT] = bool_to_float,
    TT_CHAIN_1(ENTRY_1) TT_CHAIN_2(ENTRY_2) TT_CHAIN_3(ENTRY_3) ENTRY_3(where)
};

int64_t TT_LOCAL(tt_chain_run)(const tt_step *s, char **p, int64_t n) {
    int64_t at = 0;
    for (vec a = {0}; at + CHUNK <= n; at += CHUNK) table[s->code](s, p, at, a, a, a, a, a, a, a, a);
    return at;
}
