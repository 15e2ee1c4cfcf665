/* Devices of NVIDIA's: see Note [Devices] in kernels/core/devices.h and Note [Launching] in
 * kernels/cuda/host/launch.h. */
#pragma once
#include "api/core.h"
#include <stddef.h>

/* Where this thread's functions allocate when no operand says it (0: the CPU, k + 1: cuda:k); the device before. To be
 * set back when the call that it was for returns. */
int tt_device_set(int device);

/* A kernel's key, bit by bit: family 8, operator 8, five dtypes of 4, variant 28. Its parts, in that order, into
 * out[8]; and the family's name, which is that of its file in kernels/cuda. */
void tt_key_parts(int64_t key, int32_t *out);
const char *tt_family_name(int family); /* NULL: no such */
const char *tt_operator_name(int family, int op); /* of families over elementwise operators or reducers; "" else */
int tt_compute_of(int op, int operand, int dtype); /* what the loop of `op` wants: operand 0 is the result */

/* What a kernel may have of shared memory, on a device counted from 0. */
int tt_cuda_processor(int device, int capability, int64_t shared);

/* `a` on another device, at once for the CPU's readers; itself is never returned. */
tt_array *tt_to_device(tt_array *a, int device);

/* A product of matrices, c = alpha a b + beta c: all that the choice of an algorithm depends on, without gaps between
 * the fields. Matrices are row-major; one that is transposed lies as its transpose. */
typedef struct tt_gemm {
    int64_t m, n, k;
    int64_t lda, ldb; /* from row to row as stored, in elements; of the result it is n */
    int64_t count, step_a, step_b; /* of a stack: how many, and from one to the next (0: the same); of the result m n */
    int32_t dtype, trans; /* trans: 1 for a, 2 for b */
    int32_t bias; /* n numbers are added to each row */
    int32_t align; /* binary logarithms of the alignment of a, b, c, bias in bytes, 4 bits each */
    int64_t layer; /* of a recurrent layer: float32's operands may be rounded where cuDNN's may */
} tt_gemm;

/* A Fourier transform of each row, without a scale: all that the choice of a plan depends on, without gaps between the
 * fields. From real numbers, or to them, the other side has the first half. */
typedef struct tt_transform {
    int64_t size, rows; /* of the transform */
    int64_t in_stride, in_step, out_stride, out_step; /* in elements: from number to number, and from row to row */
    int32_t in_dtype, out_dtype;
    int32_t forward, unused; /* is the exponent's sign -? */
} tt_transform;

/* A routine of cuSOLVER's or cuBLAS's on each of `count` stacked problems. Matrices are column-major; steps are in
 * bytes, from one to the next.
 *   potrf    a (n x n) becomes its Cholesky factor
 *   getrf    a (m x n) becomes its factors, with pivots
 *   getrs    b (n x k) becomes the solution, from factors a and their pivots
 *   trsm     b (m x k) becomes the solution with the triangle a
 *   geqrf    a (m x n) becomes R and the reflectors, with c, their factors
 *   orgqr    a (m x n), k reflectors with c, becomes Q
 *   ormqr    b (m x n) is multiplied by Q of k reflectors, a and c, or by its adjoint
 *   syevd    a (n x n) becomes its eigenvectors, c their values
 *   gesvdj   c: the singular values of a (m x n), b and d: the vectors U and V; a is lost
 *   gesvd    likewise, of m >= n, with V^H for V
 *   geev     c: the eigenvalues of a (n x n), complex, b: the vectors, of real matrices as LAPACK packs them; a is lost
 */
enum { TT_POTRF, TT_GETRF, TT_GETRS, TT_TRSM, TT_GEQRF, TT_ORGQR, TT_ORMQR, TT_SYEVD, TT_GESVDJ, TT_GESVD, TT_GEEV };
/* Its options. TT_FULL: U and V are square. */
enum { TT_UPPER = 1, TT_RIGHT = 2, TT_UNIT = 4, TT_TRANSPOSED = 8, TT_ADJOINT = 16, TT_VECTORS = 32, TT_FULL = 64 };
typedef struct tt_solver {
    int32_t routine, dtype, options, m, n, k;
    int64_t count;
    const int64_t *at; /* which a, with its pivots, belongs to each b; NULL: that of its number */
    void *a, *b, *c, *d;
    int64_t step_a, step_b, step_c, step_d;
    int32_t lda, ldb;
    int32_t *pivots, *info; /* as many pivots to a matrix as the smaller of m and n */
} tt_solver;

/* A convolution: all that the choice of a plan depends on, without gaps between the fields; backend/conv.h says what
 * the sizes are. */
typedef struct tt_convolution {
    int64_t batch, groups, in, out;
    int64_t size[3], taps[3], places[3], stride[3], padding[3], dilation[3];
    int32_t dims; /* 2 or 3: of these the last */
    int32_t dtype;
    int32_t computed; /* which of input, weight and result */
    int32_t channels_last, align; /* align: binary logarithm of that of all three in bytes, 4 at most */
    int32_t unused;
} tt_convolution;

/* Attention, of arrays whose columns are neighbours; likewise. backend/attention.h says what the sizes are. */
typedef struct tt_attend {
    int64_t batch, heads, of_keys, rows, keys, width, out_width;
    int64_t
        steps[8][3]; /* of query, key, value, result, its gradient, and their gradients: to the next batch, head, row */
    double scale;
    int32_t dtype, causal, backward;
    int32_t align; /* binary logarithm of that of all addresses, 4 at most */
} tt_attend;

/* What tt_cuda_copy's `wait` says of the CPU's memory: it may change when the call returns (it is pageable, and the
 * driver has taken the values by then), when the copy is done, which is to be waited for, or whenever: the caller sees
 * to it. */
enum { TT_TAKEN = 0, TT_WAIT, TT_LEFT };

/* What tt_cuda_copy moves. */
enum { TT_COPY_TO_DEVICE = 1, TT_COPY_TO_HOST };

/* Memory: Note [Memory of devices] in kernels/cuda/host/pool.h. Devices count from 0 here, TT_HOST_MEMORY is
 * page-locked memory of the CPU's. Streams are numbered by Python for each device; 0 is the default one. */
enum { TT_CUDA_DEVICES = 64, TT_CUDA_STREAMS = 64, TT_HOST_MEMORY = -1 };
void tt_cuda_set_stream(int device, int stream); /* this thread's current one */
int tt_cuda_stream(int device);
void tt_cuda_keep_launches(int on); /* those kept are forgotten */
/* Of the launch of this number, which Python is being told of: the driver's handles of the kernel and the stream. From
 * now on C launches it itself, by the driver's functions that tt_cuda_launcher was told: cuLaunchKernel and
 * cuCtxGetCurrent. */
void tt_cuda_keep_handles(int number, void *function, void *stream);
void tt_cuda_launcher(void *launch, void *get_current);
/* The device's context. Where there are several devices, what is current in a thread may be another's, as another
 * library may have made it so: then C leaves it to Python. NULL: there is one device. */
void tt_cuda_context(int device, void *context);
/* How cuBLASLt solves a problem: its functions cublasLtMatmul and cublasLtMatmulDescSetAttribute, its handle, the
 * description, the operands' layouts, the algorithm, and the bytes that this needs. */
typedef struct tt_product_plan {
    void *multiply, *set, *handle, *desc, *a, *b, *c, *algo;
    int64_t workspace;
} tt_product_plan;
/* Carries out a plan, on operands as tt_cuda_gemm has them: the library's status. */
int tt_cublas_multiply(const tt_product_plan *plan, const void *alpha, const void *a, const void *b, const void *beta,
                       const void *c, void *out, const void *bias, void *space, void *stream);
/* cuDNN: its functions cudnnBackend... each, cudnnSetStream, a handle, and the stream that this has. Then a plan of a
 * graph, and the bytes that it needs; and this is executed with the tensors of n uids at these addresses: the library's
 * status. */
typedef struct tt_cudnn {
    void *create, *set, *finalize, *execute, *destroy, *set_stream, *handle, *stream;
} tt_cudnn;
typedef struct tt_graph_plan {
    tt_cudnn *library;
    void *plan;
    int64_t workspace;
} tt_graph_plan;
int tt_cudnn_execute(const tt_graph_plan *plan, int n, const int64_t *uids, const int64_t *addresses, void *space,
                     void *stream);
/* Of the problem (tt_gemm, tt_convolution) that this thread's Python is being told of: the plan (tt_product_plan,
 * tt_graph_plan), and the driver's handle of the stream. From now on C carries it out itself in this thread, until
 * tt_cuda_forget_plans, which a changed setting calls; so long must the plan last. `age` is what tt_cuda_plans_age said
 * before the settings were looked at, which another thread may change meanwhile. */
void tt_cuda_keep_plan(int age, int device, const void *problem, int size, const void *plan, void *stream);
int tt_cuda_plans_age(void);
void tt_cuda_forget_plans(void);
extern int tt_cuda_approximate; /* the setting */
extern int tt_cuda_caching; /* the setting */
/* the most rows and columns of matrices that our own kernels decompose; others are cuSOLVER's */
extern int tt_cuda_small_side;
/* log of the columns that a thread block takes, of `inner` of elements of that size */
int tt_cuda_columns(int64_t inner, int size, int64_t others);
int tt_record_stream(tt_array *a, int stream); /* another stream uses `a`, a tensor of the same device */
tt_array *tt_to_pinned(tt_array *a); /* a copy in page-locked memory of the CPU's */
int tt_is_pinned(tt_array *a);
int tt_cuda_empty_cache(int device); /* -1 and an error when memory could not be given back */
int tt_cuda_memory_limit(int device, int64_t bytes); /* of what is reserved; 0: none */
/* Nine figures (TT_ALLOCATION ... in pool.h), each for all segments, small ones and large ones: the present value, the
 * peak, all that was added and all that was taken away; then retries after an empty cache, and failures. */
enum { TT_CUDA_STATS = 9 * 3 * 4 + 2 };
int tt_cuda_memory_stats(int device, int64_t *out);
int tt_cuda_reset_stats(int device, int peaks); /* the peaks, or the sums */
/* Rows of 8: segment, its bytes, small, stream, private pool; block, its bytes, state. The number of rows there are. */
int64_t tt_cuda_snapshot(int device, int64_t *out, int64_t rows);
/* What this thread allocates comes from the private pool, 0: from the usual one; the pool before. */
int tt_cuda_use_pool(int pool);
int tt_cuda_retire_pool(int pool); /* its free segments may be given back from now on */
void tt_cuda_stop(void); /* the interpreter ends: Python is not called any more */
int tt_cuda_non_blocking(
    int on); /* this thread's copies from and to page-locked memory do not wait; as it was before */

/* What tt_cuda_event does. */
enum { TT_EVENT_RECORD = 1, TT_EVENT_QUERY, TT_EVENT_WAIT };
/* Where the kernels of a device, when it is opened, are to write what they find wrong (Note [Faults] in kernels/cuda):
 * so many bytes, by their address here and there. tt_device_check: an error, once, if a kernel found something; to be
 * asked after every wait for the device. */
int64_t tt_fault_bytes(void);
int tt_fault_record(int device, int64_t here, int64_t there);
int tt_device_check(int device);

/* What CUPTI calls for buffers (its CUpti_BuffersCallbackRequestFunc and ...CompleteFunc), and who reads them: the
 * oldest that is filled, NULL: none, to be given back by tt_activity_free. */
void tt_activity_requested(uint8_t **buffer, size_t *size, size_t *max_records);
void tt_activity_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
void *tt_activity_next(int64_t *bytes);
void tt_activity_free(void *buffer);
