/* Elementwise operators of few elements: what a program's small tensors cost is the way to the loop. */
#include "backend/backend.h"
#include "cpu/simd.h"
#include "fuse/fuse.h"
#include "ops/elementwise.h"
#include "ops/promote.h"
#include <string.h>

/* The commonest case: contiguous, all of one dtype and shape ... */
static inline bool plain(const tt_array *a) {
    return (a->flags & (TT_FLAG_CONTIGUOUS | TT_FLAG_VIEW | TT_FLAG_WEAK | TT_FLAG_INFERENCE | TT_SLOW)) ==
           TT_FLAG_CONTIGUOUS;
}
/* ... of so few elements that the loop runs on this thread, and already computed. */
static inline bool small(const tt_array *a) {
    return a->numel <= TT_SMALL && !tt_lazy_of(a->storage) && !tt_is_half(a->dtype);
}

static inline tt_array *like(const tt_array *a, int dtype) {
    tt_array *out = tt_array_new(a->ndim);
    if (!out) return NULL;
    out->dtype = (int16_t)dtype;
    out->ndim = a->ndim;
    out->numel = a->numel;
    int64_t step = 1, *sizes = out->shape, *steps = out->strides;
    const int64_t *from = a->shape;
    for (int d = a->ndim - 1; d >= 0; d--) {
        int64_t size = sizes[d] = from[d];
        steps[d] = step;
        step *= size ? size : 1;
    }
    out->flags |= TT_FLAG_CONTIGUOUS;
    tt_storage *s = tt_storage_new(a->numel * tt_itemsizes[dtype]);
    if (!s) {
        tt_array_recycle(out);
        return NULL;
    }
    out->storage = s;
    out->data = s->data;
    return out;
}

static inline bool same_shape(const tt_array *a, const tt_array *b) {
    if (a->ndim != b->ndim) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) return false;
    return true;
}

/* Of one dtype and shape as well? */
static inline bool alike(const tt_array *a, const tt_array *b) {
    return plain(b) && a->dtype == b->dtype && same_shape(a, b);
}

tt_array *tt_unary(int op, tt_array *a) {
    tt_loop loop = tt_isa->ops[op][a->dtype];
    bool record = TT_RECORDING;
    if (!plain(a) || !loop || !(record ? a->numel > 0 : small(a))) return tt_elementwise(op, 1, &a);
    if (record && small(a) && tt_leaves(op, a->dtype, 1, a->numel)) record = false;
    tt_array *out = like(a, tt_result_dtype(op, a->dtype));
    if (!out) return NULL;
    if (record && !tt_record_alike(op, a->dtype, out, 1, &a)) {
        tt_free(out);
        return tt_elementwise(op, 1, &a);
    }
    if (!record) loop((char *[]){out->data, a->data}, a->numel);
    out->stamp = (tt_version(a) & 0x3fffffff) << 4;
    return out;
}

tt_array *tt_binary(int op, tt_array *a, tt_array *b) {
    tt_loop loop = tt_isa->ops[op][a->dtype];
    bool record = TT_RECORDING;
    if (!plain(a) || !alike(a, b) || !loop || tt_is_integral(a->dtype) ||
        !(record ? a->numel > 0 : small(a) && !tt_lazy_of(b->storage)))
        return tt_elementwise(op, 2, (tt_array *[]){a, b});
    if (record && small(a) && !tt_lazy_of(b->storage) && tt_leaves(op, a->dtype, 2, a->numel)) record = false;
    tt_array *out = like(a, tt_result_dtype(op, a->dtype));
    if (!out) return NULL;
    if (record && !tt_record_alike(op, a->dtype, out, 2, (tt_array *[]){a, b})) {
        tt_free(out);
        return tt_elementwise(op, 2, (tt_array *[]){a, b});
    }
    if (!record) loop((char *[]){out->data, a->data, b->data}, a->numel);
    out->stamp = (tt_version(a) & 0x3fffffff) << 4 | (tt_version(b) & 0x3fffffff) << 34;
    return out;
}

/* float32 and float64 keep their dtype when combined with a real Python scalar. */
static inline bool takes_numbers(const tt_array *a) { return a->dtype == TT_F32 || a->dtype == TT_F64; }

/* The loop over operands of which some are Python numbers, in a dtype that takes_numbers. */
static inline void run(tt_loop loop, int dtype, tt_array *out, int n, tt_array *const *in) {
    enum { ROOM = 256 };
    union {
        float f32[ROOM];
        double f64[ROOM];
        char bytes[1];
    } same[2];
    char *at[4] = {out->data};
    int64_t step[4] = {tt_itemsizes[out->dtype]}, filled = out->numel < ROOM ? out->numel : ROOM;
    int numbers = 0;
    for (int k = 0; k < n; k++) {
        step[k + 1] = in[k]->flags & TT_FLAG_WEAK ? 0 : tt_itemsizes[in[k]->dtype];
        at[k + 1] = step[k + 1] ? in[k]->data : same[numbers].bytes;
        if (step[k + 1]) continue;
        tt_isa->casts[in[k]->dtype][dtype](at[k + 1], in[k]->data, 1);
        if (dtype == TT_F32)
            for (int64_t i = 1; i < filled; i++) same[numbers].f32[i] = same[numbers].f32[0];
        else
            for (int64_t i = 1; i < filled; i++) same[numbers].f64[i] = same[numbers].f64[0];
        numbers++;
    }
    int64_t left = out->numel;
    for (int64_t part = numbers ? ROOM : left; left > part; left -= part) {
        loop(at, part);
        for (int k = 0; k <= n; k++) at[k] += part * step[k];
    }
    loop(at, left);
}

/* May the operand k stand beside `like`, which takes numbers? */
static inline bool goes_with(int op, int k, const tt_array *a, const tt_array *like) {
    if (a->flags & TT_FLAG_WEAK)
        return k > 0 && op != TT_OP_pow && a->dtype != TT_BOOL && !tt_is_complex(a->dtype) &&
               (!tt_must_fit(op, like->dtype, k) || tt_number_fits(a, like->dtype));
    if (tt_lazy_of(a->storage)) return false;
    if (k == 0 && tt_ops[op].rule == TT_SELECT) return plain(a) && a->dtype == TT_BOOL && same_shape(a, like);
    return alike(like, a);
}

/* The first tensor that promotion asks, where the operands are plain, few, and like it, or numbers; else NULL. */
static inline const tt_array *simple(int op, int n, tt_array *const *in) {
    const tt_array *like = in[tt_ops[op].rule == TT_SELECT]; /* it does not ask a condition */
    if (like->flags & TT_FLAG_WEAK) like = in[n - 1];
    if (!plain(like) || !takes_numbers(like) || !small(like)) return NULL;
    for (int k = 0; k < n; k++)
        if (in[k] != like && !goes_with(op, k, in[k], like)) return NULL;
    return like;
}

tt_array *tt_elementwise_small(int op, int n, tt_array *const *in) {
    const tt_array *first = TT_RECORDING ? NULL : simple(op, n, in);
    tt_loop loop = first ? tt_isa->ops[op][first->dtype] : NULL;
    tt_array *out = loop ? like(first, tt_result_dtype(op, first->dtype)) : NULL;
    if (!out) return NULL;
    run(loop, first->dtype, out, n, in);
    out->stamp = tt_operands_stamp(out, n, in);
    return out;
}

bool tt_elementwise_small_into(int op, tt_array *out, int n, tt_array *const *in) {
    const tt_array *first = TT_RECORDING || tt_ops[op].arity != n ? NULL : simple(op, n, in);
    tt_loop loop = first ? tt_isa->ops[op][first->dtype] : NULL;
    if (!loop || !plain(out) || out->dtype != tt_result_dtype(op, first->dtype) || !same_shape(out, first) ||
        tt_lazy_of(out->storage) || tt_jobs_of(out->storage))
        return false;
    for (int k = 0; k < n; k++) /* an element may lie where another one's result goes */
        if (in[k]->storage == out->storage && (in[k]->data != out->data || in[k]->dtype != out->dtype)) return false;
    if (!tt_may_write(tt_ops[op].name, out)) return false; /* said once more by the general path */
    run(loop, first->dtype, out, n, in);
    return true;
}

bool tt_record_update(int op, tt_array *out, tt_array *b) {
    tt_array *in[] = {out, b};
    const int n = 1 + (b != NULL);
    const bool number = b && b->flags & TT_FLAG_WEAK;
    if (!plain(out) || !tt_isa->ops[op][out->dtype] || tt_ops[op].rule == TT_BOOL_RESULT || tt_ops[op].arity != n ||
        !takes_numbers(out) || !out->numel)
        return false;
    if (number && (tt_is_complex(b->dtype) || b->dtype == TT_BOOL)) return false;
    if (b && !number && (!alike(out, b) || (b->storage == out->storage && b->data != out->data))) return false;
    if (!tt_may_write(tt_ops[op].name, out)) return false; /* said once more by the general path */
    if (!(small(out) && !tt_jobs_of(out->storage) && (!b || number || !tt_lazy_of(b->storage)) &&
          tt_leaves(op, out->dtype, n, out->numel)))
        return tt_record_alike(op, out->dtype, out, n, in);
    run(tt_isa->ops[op][out->dtype], out->dtype, out, n, in);
    return true;
}

tt_array *tt_weak_operand(tt_weak *number, int kind, const double *f, const int64_t *i) {
    char *element = number->element;
    number->storage = (tt_storage){.data = element, .refs = 1};
    number->array = (tt_array){.storage = &number->storage,
                               .data = element,
                               .numel = 1,
                               .dtype = (int16_t)tt_dtype_of_kind(kind),
                               .flags = TT_FLAG_WEAK | TT_FLAG_CONTIGUOUS,
                               .shape = tt_no_dims,
                               .strides = tt_no_dims};
    if (kind == TT_KIND_FLOAT || kind == TT_KIND_COMPLEX) memcpy(element, f, 8);
    if (kind == TT_KIND_COMPLEX) memcpy(element + 8, i, 8);
    else if (kind == TT_KIND_INT) memcpy(element, i, 8);
    else if (kind == TT_KIND_BOOL) *element = *i != 0;
    return &number->array;
}

tt_array *tt_binary_scalar(int op, tt_array *a, int kind, double f, int64_t i, int reflected) {
    tt_weak number;
    tt_array *b = tt_weak_operand(&number, kind, &f, &i), *in[] = {reflected ? b : a, reflected ? a : b};
    int alone = op == TT_OP_pow && !reflected ? tt_power(a, b) : -1;
    if (alone >= 0) return tt_unary(alone, a);
    tt_loop loop = tt_isa->ops[op][a->dtype];
    bool record = TT_RECORDING;
    tt_array *out = NULL;
    if (plain(a) && takes_numbers(a) && loop && (record ? a->numel > 0 : small(a))) {
        if (record && small(a) && tt_leaves(op, a->dtype, 2, a->numel)) record = false;
        if (!(out = like(a, tt_result_dtype(op, a->dtype)))) return NULL;
        if (!record) run(loop, a->dtype, out, 2, in);
        if (!record || tt_record_alike(op, a->dtype, out, 2, in)) {
            out->stamp = (tt_version(a) & 0x3fffffff) << (reflected ? 34 : 4);
            return out;
        }
        tt_free(out);
    }
    out = tt_elementwise(op, 2, in);
    if (out && reflected) out->stamp &= ~(int64_t)1; /* a number has no gradient to bring back */
    else if (out) out->stamp &= ~(int64_t)2;
    return out;
}

tt_array *tt_ternary(int op, tt_array *a, tt_array *b, tt_array *c) {
    tt_array *in[] = {a, b, c}, *out = tt_elementwise_small(op, 3, in);
    return out ? out : tt_elementwise(op, 3, in);
}

tt_array *tt_ternary_number(int op, tt_array *a, tt_array *b, double c) {
    tt_weak number;
    return tt_ternary(op, a, b, tt_weak_operand(&number, TT_KIND_FLOAT, &c, NULL));
}
