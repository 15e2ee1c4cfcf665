/* The host side of the CUDA kernels: what the C files of this folder offer to those of kernels/cpu. Not seen by Python.
 *
 * Note [Launching]
 * The C side plans: it checks operands, allocates results, chooses the kernel and its grid, and packs the kernel's
 * arguments into one structure (args.h). Python launches: tt_launch calls tt_cuda_launch in tinytorch/backends/cuda, which
 * finds the kernel by its key, compiling it with NVRTC if it is new, and hands the packed structure to PyCUDA. So there is
 * one path from an operator to a kernel for the CPU and for CUDA, and everything above the loop (promotion, broadcasting,
 * views, errors, version counters) is the same code.
 *
 * A kernel's key is its family (the file kernels/cuda/<family>.cuh), an operator, up to five dtypes, and a variant whose
 * bits the family defines. A file has one kernel, tt_kernel, of one argument, TT_ARGS; what is chosen by the key reaches it
 * as macros (tinytorch/backends/cuda/source.py). No lock is held around a launch: Python may run anything meanwhile.
 *
 * The setting "approximate" changes the scalar functions of all kernels (approximate.cuh); Python keeps those compiled
 * with it apart. Without it the results of every kernel but matrix products have the bits of the CPU's: the same scalar
 * functions, the same reduction trees (Note [The tree of a reduction]; a block of TT_BLOCK elements is a warp's work, a lane
 * is a thread), the same Philox streams. NaNs are NaNs, but the device does not keep their payloads. */
#pragma once
#include "core/tt.h"
#include "api/cuda.h"
#include "cpu/optim.h"
#include "cpu/random.h"
#include "cuda/device/args.h"
#include "cuda/device/sort_args.h"
#include "cuda/device/fault.h"
#include "cuda/device/random_args.h"
#include "cuda/device/rows_args.h"
#include "cuda/device/scan_args.h"

#define TT_FAMILIES(X) X(elementwise, 1) X(copy, 0) X(transpose, 0) X(reduce, 2) X(softmax, 0) X(softmax_columns, 0) X(index, 0) \
    X(segments, 0) X(radix, 0) X(join, 0) X(rearrange, 0) X(triangle, 0) X(matmul_int, 0) X(optim, 3) \
    X(optim_count, 3) X(random, 4) X(dropout, 0) X(range, 0) X(multinomial, 0) X(permutation, 0) X(norm, 0) X(norm_weight, 0) X(statistics, 0) X(class_loss, 0) \
    X(class_total, 0) X(rowsort, 0) X(sorted, 0) X(select, 0) X(scan, 0) X(compact, 0) X(groups, 0) X(search, 0) \
    X(counting, 0) X(norms, 2) X(scale, 0) X(mul_backward, 0) X(fused, 0)

#define TT_FAMILY_ENUM(name, kind) TT_FAMILY_##name,
enum { TT_FAMILIES(TT_FAMILY_ENUM) TT_NUM_FAMILIES };

/* To the end of the block, around calls of Python's functions: those may come upon any code (a finalizer, the handler of a
 * signal), for which this thread's device is the CPU, as outside of calls. */
#define TT_LEAVE_TO_PYTHON __attribute__((cleanup(tt_leave_device), unused)) int tt_device_here = tt_device; tt_device = 0

#define TT_CUDA_KIND 1 /* of device: Note [Devices] */
#define TT_CUDA_ENOUGH 264 /* thread blocks: with fewer, some processors have nothing to do */

static inline int64_t tt_key(int family, int op, int variant, int d0, int d1, int d2, int d3, int d4) {
    return (int64_t)family | (int64_t)op << 8 | (int64_t)d0 << 16 | (int64_t)d1 << 20 | (int64_t)d2 << 24 |
           (int64_t)d3 << 28 | (int64_t)d4 << 32 | (int64_t)variant << 36;
}

/* Runs the kernel on this thread's device and current stream: `x` by `y` blocks of `threads`, with `shared` bytes of
 * dynamic shared memory. False and an error when it could not be launched. */
bool tt_launch(int64_t key, int64_t x, int64_t y, int threads, int64_t shared, const void *args, int nbytes);
#define TT_LAUNCH(key, x, y, threads, shared, args) tt_launch(key, x, y, threads, shared, &(args), (int)sizeof(args))

/* This thread's stream of the device has been told to read or write `a`; false: what it does cannot be awaited. */
bool tt_pinned_used(const tt_array *a, int device);
/* A contiguous array on tt_device for a function's own use; tt_free ends it. */
tt_array *tt_cuda_temporary(int dtype, int64_t n);

tt_divider tt_divider_of(int64_t size);

/* elementwise.c. False and an error when a kernel could not be launched. */
bool tt_cuda_elementwise(int op, int dtype, tt_array *out, int n, tt_array *const *in);
bool tt_cuda_mul_backward(const tt_array *g, const tt_array *a, const tt_array *b, tt_array *of_a, tt_array *of_b);
/* vectors of 16 bytes of each operand that a thread takes; weight: an element's, tt_op_weight */
int tt_cuda_vectors(int weight, int operands, int largest);
bool tt_divides_integers(int op, int dtype); /* ops/elementwise.c: must the divisor not be 0? */
/* copy.c: out[...] = a with broadcasting and casting; either may be on the CPU. Operands are checked already. */
bool tt_cuda_copy_array(tt_array *out, const tt_array *a);
/* gemm.c: out = alpha a b + beta bias, where bias (NULL: none) broadcasts to out; out is contiguous. */
bool tt_cuda_product(tt_gemm *g, const char *a, const char *b, tt_array *out, tt_array *bias, double alpha, double beta);
const char *tt_rule_name(int rule);
const char *tt_random_name(int op);
/* random.c: whole arrays, contiguous, from their first element on. chance: NULL, or of each element. */
bool tt_cuda_random(const tt_draw *draw, tt_array *out, int compute, const double *chance);
bool tt_cuda_dropout(const tt_draw *d, const tt_array *a, tt_array *out, tt_array *kept);
/* The samples of each row, int64; false and an error where a row has no distribution. */
bool tt_cuda_multinomial(const tt_draw *draw, const tt_array *weights, tt_array *out, int64_t rows, int replacement);
bool tt_cuda_permutation(const tt_draw *draw, tt_array *out);
/* range: TT_RANGE_...; what is not filled in is 0. */
bool tt_cuda_range(int range, tt_array *out, tt_range_args *p);
/* optim.c: those of the items that are on devices, by a rule of kernels/scalar/optim.h. */
bool tt_cuda_update(int rule, const tt_schedule *schedule, int n, const tt_update_item *items);
/* nbytes to host memory, all work of the stream before it done. */
bool tt_device_read(void *to, const void *from, int64_t nbytes);
/* From memory of the CPU's own caches or the stack, which may be overwritten at once. */
bool tt_device_write(void *to, const void *from, int64_t nbytes);
/* All of a contiguous array of the CPU's. These wait for the copy, unless the memory is page-locked and the thread wants
 * it so (tt_cuda_non_blocking). */
bool tt_upload(void *to, const tt_array *from);
bool tt_download(const tt_array *to, const void *from);
bool tt_is_non_blocking(void);
bool tt_is_capturing(void); /* what this thread launches becomes part of a graph */

/* foreach.c: contiguous arrays of one dtype; `out` has room for as many norms. then: TT_RED_ALONE ... of reduce_args.h */
bool tt_cuda_norms(int reducer, int then, int n, tt_array *const *in, tt_array *out);
bool tt_cuda_scale(int n, tt_array *const *arrays, const tt_array *by);

/* reduce.c: the plan's results, in its order, as `dtype` to `out` (contiguous, or NULL); `index`: of extremes, where the
 * first such is, or NULL. then: TT_RED_ALONE ... of reduce_args.h; acc: the accumulators' dtype, `param` likewise. */
struct tt_reduction;
bool tt_cuda_reduction(struct tt_reduction *g, int reducer, int acc, int then, double by, const tt_array *param, int dtype,
                       char *out, int64_t *index);

/* the tree over `count` accumulators of blocks, for each of `inner` neighbours */
bool tt_cuda_join_parts(int reducer, int acc, tt_array *parts, int64_t count, int64_t outer, int64_t inner,
                        int dtype, char *out);
int64_t tt_cuda_shared_room(void); /* bytes that a thread block on the present device can have */

/* rows.c: contiguous rows of n elements; out is of their dtype. Rows that do not fit are for reductions. */
bool tt_cuda_rows_fit(int64_t rows, int64_t n);
bool tt_cuda_softmax(tt_array *out, const tt_array *x, const tt_array *y, int64_t n, bool log);
bool tt_cuda_softmax_columns(tt_array *out, const tt_array *x, const tt_array *y, int64_t n, int64_t inner, bool log);
/* scan.c: what TT_SCAN_ ... of scan_args.h says; p: sizes and operands, row-major */
bool tt_cuda_scan(int op, int dtype, int acc, bool reverse, tt_scan_args *p);
/* Normalisation (g: its derivative); weight, bias and mean may be NULL. */
bool tt_cuda_norm(tt_array *out, const tt_array *x, const tt_array *g, const tt_array *weight, const tt_array *bias,
                  const tt_array *mean, const tt_array *rstd, int64_t n, double eps);
/* what: TT_STATISTIC_ ... of rows_args.h */
bool tt_cuda_statistics(int what, tt_array *out, const tt_array *x, int64_t n, double by);
bool tt_cuda_norm_weight(tt_array *out, const tt_array *g, const tt_array *x, const tt_array *mean,
                         const tt_array *rstd, int64_t n);
/* what: TT_CLASS_ ... of rows_args.h */
bool tt_cuda_class_loss(int what, tt_class_args *p, int dtype, int compute);
bool tt_cuda_class_total(const tt_array *sums, tt_array *out, char *divisor, int compute, bool mean);

/* fault.c: where the kernels of tt_device write what they find wrong */
tt_fault *tt_cuda_fault(void);

/* index.c: the moves `j` (without offsets) on tt_device. n index tensors, on it or on the CPU, whose values count through
 * the dimensions of the TT_INDEX parts of `view`; their common shape, of j->m positions; `steps` (or NULL): of the table
 * along that shape, in elements. */
struct tt_indexed;
struct tt_moves;
typedef struct {
    int rule, n, ndim;
    const int64_t *shape, *steps;
    tt_array *const *indices;
    const struct tt_indexed *view;
} tt_index_where;
bool tt_cuda_move_indexed(struct tt_moves *j, const tt_index_where *w, int dtype, int rows_dtype, int how);

/* arrange.c. Do the arrays go into `out` by one kernel? Then it does that. */
bool tt_cuda_joins(const tt_array *out, int n, tt_array *const *in);
bool tt_cuda_join(tt_array *out, int n, tt_array *const *in, int dim, bool stack);
/* `out`, dense in any order: a with dimensions flipped, and rolled by `shift` (0 <= shift < size); either may be NULL */
bool tt_cuda_rearrange(tt_array *out, const tt_array *a, const bool *flipped, const int64_t *shift);
bool tt_cuda_zero_triangle(tt_array *a, int64_t diagonal, bool below);

/* sort.c: rows sorted or selected from, as the arguments say (all but the keys, `order`, `first` and `padded`). */
bool tt_cuda_sort_along(int what, int dtype, bool descending, tt_sort_args *p);

/* counting.c. What they are given is contiguous, on tt_device. NULL or false, and an error. */
tt_array *tt_cuda_nonzero(const uint8_t *set, const tt_array *a, bool flat);
tt_array *tt_cuda_repeat_positions(const int64_t *times, int64_t n);
/* n rows of `width` elements: the number of the first of each group, in order */
tt_array *tt_cuda_groups(const tt_array *x, int64_t n, int64_t width, bool consecutive, tt_array **inverse,
                         tt_array **counts);
bool tt_cuda_search(const void *sorted, const void *values, const int64_t *order, int64_t n, int64_t per_row, bool right,
                    int dtype, tt_array *out);
bool tt_cuda_isin(const tt_array *among, const void *values, bool invert, tt_array *out);
/* the least and the largest of int64 or float64 (NaN is both, where there is one); n > 0 */
bool tt_cuda_extremes(const void *x, int dtype, int64_t n, void *least, void *largest);
/* how many of the int64 are each number below out->numel; of the float64 are in each of as many intervals */
bool tt_cuda_histogram(const void *x, int dtype, int64_t n, double lo, double hi, tt_array *out);
bool tt_cuda_one_hot(const int64_t *classes, int64_t n, tt_array *out);
/* adds the weights, one after the other, to the elements of `out` that x names */
bool tt_cuda_add_at(tt_array *out, tt_array *x, tt_array *weights);

/* fuse.c: a kernel of fused mode, on tt_device. base: of each storage. */
struct tt_kernel;
struct tt_number;
bool tt_cuda_run_kernel(const struct tt_kernel *k, char *const *base, const struct tt_number *numbers);
