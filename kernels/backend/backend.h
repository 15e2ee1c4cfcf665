/* What a device's backend does: one table of functions for each kind of device.
 *
 * Note [Backends]
 * A front end (kernels/ops) checks operands, promotes, finds the result's shape and allocates it, and then calls the
 * function of tt_here(), the backend of this thread's device. What it hands over is valid and there: no function of a
 * table checks or flushes its operands, or looks at another device than tt_device, unless it says so here. All give
 * false (or NULL) and an error where they failed. An entry that is NULL declines: TT_WORK then says that the operator
 * has no implementation there. Entries marked as optional are shortcuts, which their front ends do without. The
 * families of work are described in the headers of this folder. */
#pragma once
#include "backend/attention.h"
#include "backend/batch_norm.h"
#include "backend/conv.h"
#include "backend/decompose.h"
#include "backend/fft.h"
#include "backend/grid_sample.h"
#include "backend/indexing.h"
#include "backend/kernel.h"
#include "backend/optim.h"
#include "backend/product.h"
#include "backend/random.h"
#include "backend/recurrent.h"
#include "backend/reduction.h"
#include "backend/resample.h"
#include "backend/rows.h"
#include "backend/scan.h"
#include "backend/sorting.h"
#include "backend/sparse.h"
#include "backend/windows.h"

typedef struct tt_backend {
    const char *name;     /* of its kind of device */
    bool on_host;         /* its memory is the CPU's: front ends look at elements, to find what is wrong with them */
    int64_t longest_row;  /* elements of a row that norm and class_loss take */

    /* memory; storages are allocated by `storage`, and say themselves how they are freed */
    tt_storage *(*storage)(int64_t nbytes); /* NULL: the CPU's own */
    /* out[...] = a, broadcast and cast; one of them is on a device of this kind, the other one there or on the CPU */
    bool (*copy)(tt_array *out, const tt_array *a);
    /* optional: all of a contiguous array, from one element of its dtype in the CPU's memory */
    void (*fill)(tt_array *out, const void *element);
    /* to the CPU's memory, all work before it done */
    bool (*read)(void *to, const void *from, int64_t nbytes);
    /* a number in the CPU's memory; the CPU's alone */
    void (*convert)(void *to, int to_dtype, const void *from, int from_dtype);

    /* elementwise: `dtype` is computed in; operands broadcast to `out`; some may be numbers on the CPU */
    bool (*elementwise)(int op, int dtype, tt_array *out, int n, tt_array *const *in);
    /* optional: g * b and g * a of contiguous arrays that are alike */
    bool (*mul_backward)(const tt_array *g, const tt_array *a, const tt_array *b, tt_array *of_a, tt_array *of_b);

    /* reductions over the dimensions of `mask`; read: the dtype the reducer reads, acc: its accumulator's */
    bool (*reduce)(tt_array *out, const tt_array *a, int64_t mask, int reducer, int read, int acc, int then);
    /* where the extreme values are; best: these values, or NULL */
    bool (*reduce_index)(tt_array *out, tt_array *best, const tt_array *a, int64_t mask, bool largest);
    bool (*reduce_var)(tt_array *out, const tt_array *a, int64_t mask, double correction, bool root);
    bool (*reduce_logsumexp)(tt_array *out, const tt_array *a, int64_t mask);

    /* rows: operands of any layout; statistics have the dtype computed in */
    bool (*rows_fit)(int64_t rows, int64_t n); /* optional: is that for softmax, and not for reductions? */
    /* y: the result, of whose derivative x is the gradient; else NULL */
    bool (*softmax)(tt_array *out, tt_array *x, tt_array *y, int64_t n, int64_t inner, bool log);
    /* g: of its derivative, else NULL; mean: NULL for rms_norm */
    bool (*norm)(tt_array *out, tt_array *x, tt_array *g, tt_array *weight, tt_array *bias, tt_array *mean,
                 tt_array *rstd, int64_t n, double eps);
    bool (*norm_weight)(tt_array *out, tt_array *g, tt_array *x, tt_array *mean, tt_array *rstd, int64_t n);
    /* optional, all three: normalisation of channels; w->stats and w->running; w->out, of_weight and of_bias;
     * w->sums */
    bool (*batch_statistics)(const tt_batch_norm_work *of, const tt_batch_statistics_work *w);
    bool (*batch_norm)(const tt_batch_norm_work *w);
    bool (*batch_norm_sums)(const tt_batch_norm_work *w);
    /* optional: groups of so many channels share mean and rstd, which it writes; or, with w->g, the gradients, those
     * of weight and bias for each sample */
    bool (*group_norm)(const tt_batch_norm_work *w, int64_t together, double eps);
    bool (*class_loss)(tt_array *out, const tt_class_work *w);
    bool (*class_loss_backward)(tt_array *out, const tt_class_work *w, tt_array *g, tt_array *weight_sum);
    bool (*class_targets)(tt_array *out, const tt_class_work *w);

    bool (*scan)(const tt_scan_work *w);
    bool (*sort)(const char *op, tt_sorting *s);

    /* indexing: `j` without offsets; values are checked before the first move */
    bool (*move_indexed)(tt_moves *j, const tt_index_where *w, int dtype, int rows_dtype, int how);
    bool updates_halves; /* ... with sums of half types rounded once */

    /* counting and searching; operands are contiguous. groups: n rows of `width` elements, the number of the first of
     * each group, in order */
    tt_array *(*nonzero)(const uint8_t *set, const tt_array *a, bool flat);
    tt_array *(*repeat_positions)(const int64_t *times, int64_t n);
    tt_array *(*groups)(const tt_array *x, int64_t n, int64_t width, bool consecutive, tt_array **inverse,
                        tt_array **counts);
    tt_array *(*distinct)(const tt_array *x, bool consecutive); /* the first of each group of elements */
    bool (*search)(const void *sorted, const void *values, const int64_t *order, int64_t n, int64_t per_row, bool right,
                   int dtype, tt_array *out);
    bool (*isin)(tt_array *among, const void *values, bool invert, tt_array *out); /* `among` may be changed */
    /* the least and the largest of int64 or float64 (NaN is both, where there is one); n > 0 */
    bool (*extremes)(const void *x, int dtype, int64_t n, void *least, void *largest);
    /* how many of the int64 are each number below out->numel; of the float64 are in each of as many intervals */
    bool (*histogram)(const void *x, int dtype, int64_t n, double lo, double hi, tt_array *out);
    bool (*one_hot)(const int64_t *classes, int64_t n, tt_array *out);
    bool (*add_at)(tt_array *out, tt_array *x, tt_array *weights); /* in order, to the elements that x names */

    /* the same elements in other places. join: optional; 1: done, 0: not by one kernel, -1: an error. rearrange: to
     * `out`, dense in any order, with dimensions flipped, or rolled by 0 <= shift < size; either may be NULL */
    int (*join)(tt_array *out, int n, tt_array *const *in, int dim, bool stack);
    bool (*rearrange)(tt_array *out, const tt_array *a, const bool *flipped, const int64_t *shift);
    bool (*zero_triangle)(tt_array *a, int64_t diagonal, bool below);

    /* numbers: whole contiguous arrays, from their first element on. chance: NULL, or of each element */
    bool (*random)(const tt_draw *draw, tt_array *out, int compute, const double *chance);
    bool (*dropout)(const tt_draw *draw, const tt_array *a, tt_array *out, tt_array *kept);
    bool (*multinomial)(const tt_draw *draw, const tt_array *weights, tt_array *out, int64_t rows, int replacement);
    /* of a and b, of out's dtype; b may be NULL. draw->kind: one of scalar/variates.h; draw->a: the least result */
    bool (*variates)(const tt_draw *draw, const tt_array *a, const tt_array *b, tt_array *out);
    bool (*permutation)(const tt_draw *draw, tt_array *out);
    bool (*range)(tt_array *out, const tt_range *r);

    /* many arrays at once. norms, scale: optional; of contiguous arrays of one dtype */
    bool (*norms)(int reducer, int then, int n, tt_array *const *in, tt_array *out);
    bool (*scale)(int n, tt_array *const *arrays, const tt_array *by);
    /* the items of its devices */
    bool (*update)(int rule, const tt_schedule *schedule, int n, const tt_update_item *items);

    /* products: into a fresh contiguous array */
    bool (*product)(tt_product *p, tt_array *out, const tt_array *a, const tt_array *b, tt_array *bias);

    /* convolutions: w->computed, a fresh array, from the other two */
    bool (*conv)(const tt_conv_work *w);
    bool (*unfold)(const tt_unfold_work *w); /* a fresh contiguous array */

    /* attention: w->out and w->lse; w->grads from these. No elements of lse: not called; of the others there may be
     * none */
    bool (*attention)(const tt_attention_work *w);
    bool (*attention_backward)(const tt_attention_work *w);
    /* pooling: w->to, dense in the order of w->from; operands of any layout */
    bool (*pool)(const tt_pool_work *w);
    /* images: w->to, likewise; floating dtypes */
    bool (*resample)(const tt_resample_work *w);
    bool (*grid_sample)(const tt_grid_work *w); /* optional */

    /* layers of recurrent networks: w->y, w->c and w->saved; the gradients from these */
    bool (*recurrent)(const tt_recurrent_work *w);
    bool (*recurrent_backward)(const tt_recurrent_work *w);

    /* decompositions: one of TT_DECOMPOSITIONS, of each matrix */
    bool (*decompose)(int decomposition, tt_stack *s);
    /* optional: the same with operands that were not copied yet. 1: done, 0: they are to be copied, -1: an error */
    int (*decompose_as_given)(int decomposition, const tt_stack *s, const tt_array *a, const tt_array *b);

    /* Fourier transforms of float32, float64 and their complex dtypes: from real numbers to complex ones (the first
     * half of the conjugate pairs, or all), between complex ones, or from that half to real ones */
    bool (*fft)(const tt_fft_work *w);

    /* products with sparse matrices: into w->a, or into w->values */
    bool (*sparse_product)(const tt_sparse_work *w);
    bool (*sparse_dots)(const tt_sparse_work *w);

    /* n kernels of a fused program, which may run side by side. base: of each storage; compiled: where they are */
    bool (*run_kernels)(const tt_kernel *k, int n, char *const *base, const tt_number *numbers, bool compiled);
} tt_backend;
#define TT_ENTRY_TYPE(entry) __typeof__(*((tt_backend *)0)->entry) /* of the function itself */

extern tt_backend *tt_backends[TT_DEVICE_KINDS];
void tt_register_backend(int kind, tt_backend *backend);

static inline tt_backend *tt_backend_of(int device) { return tt_backends[tt_device_kind(device)]; }
static inline tt_backend *tt_here(void) { return tt_backend_of(tt_device); }
/* Calls the function of this thread's device, or says that there is none. */
#define TT_WORK(name, entry, ...) (tt_here()->entry ? tt_here()->entry(__VA_ARGS__) : (tt_no_kernel(name), false))
#define TT_WORK_ARRAY(name, entry, ...) (tt_here()->entry ? tt_here()->entry(__VA_ARGS__) : tt_no_kernel(name))
void *tt_no_kernel(const char *op);
