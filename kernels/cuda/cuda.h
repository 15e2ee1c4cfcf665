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
 * The results of every kernel but matrix products have the bits of the CPU's: the same scalar functions, the same
 * reduction trees (Note [The tree of a reduction]; a block of TT_BLOCK elements is a warp's work, a lane is a thread), the
 * same Philox streams. NaNs are NaNs, but the device does not keep their payloads. */
#pragma once
#include "../cpu/tt.h"
#include "../cpu/api/cuda.h"
#include "args.h"
#include "sort_args.h"
#include "fault.h"

/* Families: the names of files here. Those of the first kind name an elementwise operator, of the second a reducer. */
#define TT_FAMILIES(X) X(elementwise, 1) X(copy, 0) X(index, 0) X(segments, 0) X(radix, 0) \
    X(join, 0) X(rearrange, 0) X(triangle, 0) X(rowsort, 0) X(sorted, 0) X(select, 0) \
    X(compact, 0) X(groups, 0) X(search, 0) X(counting, 0)

#define TT_FAMILY_ENUM(name, kind) TT_FAMILY_##name,
enum { TT_FAMILIES(TT_FAMILY_ENUM) TT_NUM_FAMILIES };

static inline int64_t tt_key(int family, int op, int variant, int d0, int d1, int d2, int d3, int d4) {
    return (int64_t)family | (int64_t)op << 8 | (int64_t)d0 << 16 | (int64_t)d1 << 20 | (int64_t)d2 << 24 |
           (int64_t)d3 << 28 | (int64_t)d4 << 32 | (int64_t)variant << 36;
}

/* Runs the kernel on this thread's device and current stream: `x` by `y` blocks of `threads`, with `shared` bytes of
 * dynamic shared memory. False and an error when it could not be launched. */
bool tt_launch(int64_t key, int64_t x, int64_t y, int threads, int64_t shared, const void *args, int nbytes);
#define TT_LAUNCH(key, x, y, threads, shared, args) tt_launch(key, x, y, threads, shared, &(args), (int)sizeof(args))

/* memory.c: a storage on tt_device. */
tt_storage *tt_cuda_storage(int64_t nbytes);
/* A contiguous array on tt_device for a function's own use; tt_free ends it. */
tt_array *tt_cuda_temporary(int dtype, int64_t n);

tt_divider tt_divider_of(int64_t size);

/* elementwise.c. False and an error when a kernel could not be launched. */
bool tt_cuda_elementwise(int op, int dtype, tt_array *out, int n, tt_array *const *in);
/* copy.c: out[...] = a with broadcasting and casting; either may be on the CPU. Operands are checked already. */
bool tt_cuda_copy_array(tt_array *out, const tt_array *a);
/* nbytes to host memory, all work of the stream before it done. */
bool tt_device_read(void *to, const void *from, int64_t nbytes);
bool tt_device_write(void *to, const void *from, int64_t nbytes);

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
