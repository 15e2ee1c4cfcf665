/* How kernels are launched on a device, and bytes moved. Not seen by Python.
 *
 * Note [Launching]
 * The C side plans: it checks operands, allocates results, chooses the kernel and its grid, and packs the kernel's
 * arguments into one structure (args.h). Python launches: tt_launch calls tt_cuda_launch in tinytorch/backends/cuda,
 * which finds the kernel by its key, compiling it with NVRTC if it is new, and hands the packed structure to PyCUDA.
 * So there is one path from an operator to a kernel for the CPU and for CUDA, and everything above the loop
 * (promotion, broadcasting, views, errors, version counters) is the same code.
 *
 * A kernel's key is its family (the file cuda/device/<family>.cuh), an operator, up to five dtypes, and a variant
 * whose bits the family defines. A file has one kernel, tt_kernel, of one argument, TT_ARGS; what is chosen by the key
 * reaches it as macros (tinytorch/backends/cuda/source.py). No lock is held around a launch: Python may run anything
 * meanwhile.
 *
 * The setting "approximate" changes the scalar functions of all kernels (approximate.cuh); Python keeps those compiled
 * with it apart. Without it the results of every kernel but matrix products, what NVIDIA's libraries do, attention, and
 * grid_sample's gradients have the bits of the CPU's: the same scalar functions, the same reduction trees (Note [The
 * tree of a reduction]; a block of TT_BLOCK elements is a warp's
 * work, a lane is a thread), the same Philox streams. NaNs are NaNs, but the device does not keep their payloads. */
#pragma once
#include "api/cuda.h"
#include "backend/backend.h"
#include "cuda/device/args.h"
#include "cuda/device/fault.h"

/* clang-format off */
#define TT_FAMILIES(X) \
    X(elementwise, 1) X(copy, 0) X(transpose, 0) X(reduce, 2) X(softmax, 0) X(softmax_columns, 0) X(index, 0) \
    X(segments, 0) X(radix, 0) X(join, 0) X(rearrange, 0) X(triangle, 0) X(matmul_int, 0) X(optim, 3) \
    X(optim_count, 3) X(random, 4) X(dropout, 0) X(range, 0) X(multinomial, 0) X(variates, 0) X(permutation, 0) \
    X(norm, 0) X(norm_weight, 0) X(statistics, 0) X(class_loss, 0) X(class_total, 0) X(rowsort, 0) X(sorted, 0) \
    X(select, 0) X(scan, 0) X(compact, 0) X(groups, 0) X(search, 0) X(counting, 0) X(norms, 2) X(scale, 0) \
    X(mul_backward, 0) X(pool, 0) X(resample_taps, 0) X(resample, 0) X(conv, 0) X(recurrent, 0) X(attention, 0) \
    X(attention_query, 0) X(attention_key, 0) X(attention_wgmma, 0) X(distinct, 0) X(unfold, 0) X(batch_norm, 0) \
    X(batch_running, 0) X(batch_sums, 0) X(sparse, 0) X(stack, 0) X(ldl, 0) X(small, 0) X(tiny, 0) X(jacobi, 0) \
    X(grid_sample, 0) X(fused, 0)
/* clang-format on */

#define TT_FAMILY_ENUM(name, kind) TT_FAMILY_##name,
enum { TT_FAMILIES(TT_FAMILY_ENUM) TT_NUM_FAMILIES };

/* To the end of the block, around calls of Python's functions: those may come upon any code (a finalizer, the handler
 * of a signal), for which this thread's device is the CPU, as outside of calls. */
#define TT_LEAVE_TO_PYTHON                                                                                             \
    __attribute__((cleanup(tt_leave_device), unused)) int tt_device_here = tt_device;                                  \
    tt_device = 0

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

/* Is odd while launches are kept, and another number each time that they are forgotten: Note [Launching again]. */
int tt_cuda_kept_generation(void);
/* plans.c. Does what Python did before in this thread. 1: it did not, or it cannot be done so, and Python is to be
 * asked; -1: an exception. */
int tt_convolve_again(const tt_convolution *c, const int64_t addresses[3]);
int tt_multiply_again(const tt_gemm *g, const void *alpha, const char *a, const char *b, const void *beta,
                      const char *c, char *out, const char *bias);

/* memory.c. This thread's stream of the device has been told to read or write `a`; false: what it does cannot be
 * awaited. */
bool tt_pinned_used(const tt_array *a, int device);
/* A contiguous array on tt_device for a function's own use; tt_free ends it. */
tt_array *tt_cuda_temporary(int dtype, int64_t n);

tt_divider tt_divider_of(int64_t size);

/* nbytes to host memory, all work of the stream before it done. */
bool tt_device_read(void *to, const void *from, int64_t nbytes);
/* From memory of the CPU's own caches or the stack, which may be overwritten at once. */
bool tt_device_write(void *to, const void *from, int64_t nbytes);
/* All of a contiguous array of the CPU's. These wait for the copy, unless the memory is page-locked and the thread
 * wants it so (tt_cuda_non_blocking). */
bool tt_upload(void *to, const tt_array *from);
bool tt_download(const tt_array *to, const void *from);
bool tt_is_non_blocking(void);
bool tt_is_capturing(void);        /* what this thread launches becomes part of a graph */
int tt_cuda_capability(void);      /* of the present device: 90 is 9.0 */
int64_t tt_cuda_shared_room(void); /* bytes that a thread block on it can have */
tt_fault *tt_cuda_fault(void);     /* where the kernels of tt_device write what they find wrong: Note [Faults] */
const char *tt_rule_name(int rule);
const char *tt_random_name(int op);
