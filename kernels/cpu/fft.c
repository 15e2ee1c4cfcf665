/* Fourier transforms on the CPU: of several rows of a power of two by loops of ours (Note [Rows side by side] in
 * fft.h), of others by the loops of NumPy's fft (pocketfft), and of long ones by both (Note [A long row]).
 *
 * Note [NumPy's loops]
 * The functions of numpy.fft are generalised ufuncs, and what such an object runs is a C function of a published type
 * (PyUFuncGenericFunction): it takes addresses, sizes and strides, and no Python object, so that it needs no GIL.
 * backends/fft.py hands us these functions. Rows are shared out over our threads; each row is one thread's, so that
 * bits do not depend on how many there are. A loop that finds no memory could only tell Python: so we look beforehand
 * whether there is enough. */
#include "cpu/fft.h"
#include "api/fft.h"
#include "cpu/cpu.h"
#include "cpu/simd.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

TT_ISA_TABLES(tt_fft_table, tt_fft_loops)

#define GRAIN 16384 /* numbers that are worth a thread */
#define FEW_ROWS 8 /* fewer leave most of a vector empty */

typedef void (*numpy_loop)(char **args, const intptr_t *sizes, const intptr_t *steps, void *data);

static struct {
    numpy_loop run;
    void *data;
} loops[TT_FFT_LOOPS][2];

void tt_fft_use(int loop, int is_double, void *function, void *data) {
    memcpy(&loops[loop][is_double].run, &function, sizeof function);
    loops[loop][is_double].data = data;
}

typedef struct {
    numpy_loop run;
    void *data;
    const tt_fft_work *w;
    int ndim; /* of the rows, the last of which `run` walks itself */
    int64_t shape[TT_MAX_NDIM], step_in[TT_MAX_NDIM], step_out[TT_MAX_NDIM]; /* in bytes */
    int64_t in, out, stride_in, stride_out; /* of one row: numbers, and bytes from one to the next */
    bool mirror; /* are all of a real row's numbers wanted? */
    const void *roots; /* of rows side by side */
    int64_t rows;
    bool failed;
} fft_job;

/* The numbers that `run` has not written are the conjugates of those that it has. */
#define MIRROR(T)                                                                                                      \
    for (int64_t k = j->out; k < j->w->size; k++) {                                                                    \
        const T *from = (const T *)(row + (j->w->size - k) * j->stride_out);                                           \
        T *to = (T *)(row + k * j->stride_out);                                                                        \
        to[0] = from[0];                                                                                               \
        to[1] = -from[1];                                                                                              \
    }

static void mirror_rows(const fft_job *j, char *row, int64_t rows) {
    for (int64_t step = j->step_out[j->ndim - 1]; rows-- > 0; row += step)
        if (j->w->out->dtype == TT_C64) MIRROR(float) else MIRROR(double)
}

/* cos and sin of -2 pi k / n, from an angle of at most pi / 4. */
static void root(int64_t k, int64_t n, double *re, double *im) {
    int64_t octant = 8 * k / n, rest = 8 * k - octant * n; /* the angle is (octant + rest / n) pi / 4 */
    double angle = 0.78539816339744830962 * (double)(octant % 2 ? n - rest : rest) / (double)n;
    double c = cos(angle), s = sin(angle), other = c;
    if (octant % 4 == 1 || octant % 4 == 2) c = s, s = other; /* past pi / 4 */
    *re = octant >= 2 && octant < 6 ? -c : c;
    *im = octant < 4 ? -s : s;
}

/* e^(-2 pi i k / n) for k < n. Made once for each n, of which there are few, and kept. */
static const void *roots_of(int64_t n, bool wide) {
    static void *made[2][16];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void **place = &made[wide][__builtin_ctzll((uint64_t)n)], *roots = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (roots) return roots;
    pthread_mutex_lock(&lock);
    if (!*place && (roots = malloc((size_t)n * (wide ? 16 : 8)))) {
        for (int64_t k = 0; k < n; k++) {
            double re, im;
            root(k, n, &re, &im);
            if (wide) ((double *)roots)[2 * k] = re, ((double *)roots)[2 * k + 1] = im;
            else ((float *)roots)[2 * k] = (float)re, ((float *)roots)[2 * k + 1] = (float)im;
        }
        __atomic_store_n(place, roots, __ATOMIC_RELEASE);
    }
    roots = *place;
    pthread_mutex_unlock(&lock);
    return roots;
}

static void row_at(const fft_job *j, int64_t row, char **in, char **out) {
    *in = j->w->a->data;
    *out = j->w->out->data;
    for (int d = j->ndim - 1; d >= 0; row /= j->shape[d--]) {
        *in += row % j->shape[d] * j->step_in[d];
        *out += row % j->shape[d] * j->step_out[d];
    }
}

/* Rows [begin, end) of as many as a vector has lanes. */
static void run_together(void *context, int64_t begin, int64_t end) {
    fft_job *j = context;
    const tt_fft_work *w = j->w;
    bool wide = tt_real_dtype(w->out->dtype) == TT_F64;
    const tt_fft_table *table = tt_fft_loops[tt_isa_index];
    int lanes = table->types[wide].lanes;
    char *memory = tt_scratch(TT_FFT_ROOM(w->size, lanes, wide ? 8 : 4) + 64);
    if (!memory) {
        __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
        return;
    }
    tt_fft_rows r = {.stride_in = j->stride_in,
                     .stride_out = j->stride_out,
                     .size = w->size,
                     .count_in = j->in,
                     .count_out = j->out,
                     .from_real = !tt_is_complex(w->a->dtype),
                     .to_real = !tt_is_complex(w->out->dtype),
                     .forward = w->forward,
                     .scale = w->scale,
                     .roots = j->roots,
                     .room = memory + (64 - (uintptr_t)memory % 64) % 64};
    for (; begin < end; begin++) {
        int64_t first = begin * lanes;
        r.rows = j->rows - first < lanes ? j->rows - first : lanes;
        for (int k = 0; k < lanes; k++) row_at(j, first + (k < r.rows ? k : r.rows - 1), &r.in[k], &r.out[k]);
        table->types[wide].run(&r);
        for (int k = 0; k < r.rows && j->mirror; k++) mirror_rows(j, r.out[k], 1);
    }
    tt_scratch_free(memory);
}

/* Does a vector's worth of rows fit? By the size and the rows alone, so that bits are those of any machine. */
static bool goes_together(fft_job *j) {
    int64_t n = j->w->size;
    if (n < TT_FFT_LEAST || n > TT_FFT_MOST || (n & (n - 1)) || j->rows < FEW_ROWS) return false;
    return (j->roots = roots_of(n, tt_real_dtype(j->w->out->dtype) == TT_F64)) != NULL;
}

static void run_rows(void *context, int64_t begin, int64_t end) {
    const fft_job *j = context;
    int last = j->ndim - 1;
    float scale_f32 = (float)j->w->scale;
    double scale_f64 = j->w->scale;
    bool wide = tt_real_dtype(j->w->out->dtype) == TT_F64;
    while (begin < end) {
        int64_t rest = begin, first = rest % j->shape[last], count = j->shape[last] - first;
        char *in = j->w->a->data + first * j->step_in[last], *out = j->w->out->data + first * j->step_out[last];
        rest /= j->shape[last];
        for (int d = last - 1; d >= 0; rest /= j->shape[d--]) {
            in += rest % j->shape[d] * j->step_in[d];
            out += rest % j->shape[d] * j->step_out[d];
        }
        if (count > end - begin) count = end - begin;
        char *args[3] = {in, wide ? (char *)&scale_f64 : (char *)&scale_f32, out};
        const intptr_t sizes[3] = {count, j->in, j->out};
        const intptr_t steps[5] = {j->step_in[last], 0, j->step_out[last], j->stride_in, j->stride_out};
        j->run(args, sizes, steps, j->data);
        if (j->mirror) mirror_rows(j, out, count);
        begin += count;
    }
}

/* The roots of Note [A long row], `pitch` numbers to a row: real parts, then imaginary ones. Kept, as those above. */
static const void *long_roots_of(int64_t n, int64_t pitch, int64_t count, bool wide) {
    static void *made[2][2][32]; /* by whether all numbers of a part are wanted */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void **place = &made[wide][count == n / TT_FFT_PARTS][__builtin_ctzll((uint64_t)n)];
    void *roots = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (roots) return roots;
    pthread_mutex_lock(&lock);
    int64_t all = TT_FFT_PARTS * pitch;
    if (!*place && (roots = calloc((size_t)(2 * all), wide ? 8 : 4))) {
        for (int64_t r = 0; r < TT_FFT_PARTS; r++)
            for (int64_t k = 0; k < count; k++) {
                int64_t at = r * pitch + k;
                double re, im;
                root(r * k, n, &re, &im);
                if (wide) ((double *)roots)[at] = re, ((double *)roots)[all + at] = im;
                else ((float *)roots)[at] = (float)re, ((float *)roots)[all + at] = (float)im;
            }
        __atomic_store_n(place, roots, __ATOMIC_RELEASE);
    }
    roots = *place;
    pthread_mutex_unlock(&lock);
    return roots;
}

typedef struct {
    tt_fft_long of;
    void (*join)(const tt_fft_long *, int64_t begin, int64_t end);
} long_job;

static void join_range(void *context, int64_t begin, int64_t end) {
    const long_job *j = context;
    j->join(&j->of, begin, end);
}

/* Parts of a long row: always as many to a call, so that NumPy does the same with each. */
static void run_parts(void *context, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) run_rows(context, k * FEW_ROWS, (k + 1) * FEW_ROWS);
}

static bool is_long(const fft_job *j) {
    int64_t n = j->w->size;
    return n >= TT_FFT_LONG && n <= TT_FFT_LONGEST && !(n & (n - 1)) && j->rows < FEW_ROWS && j->in >= n &&
           !(tt_is_complex(j->w->a->dtype) && !tt_is_complex(j->w->out->dtype));
}

static bool run_long(const fft_job *j) {
    const tt_fft_work *w = j->w;
    bool wide = tt_real_dtype(w->out->dtype) == TT_F64, from_real = !tt_is_complex(w->a->dtype);
    int64_t part = w->size / TT_FFT_PARTS, count = from_real ? part / 2 + 1 : part, size = wide ? 16 : 8;
    int64_t pitch = (count + TT_FFT_LANES + 7) / 8 * 8 + 8; /* not a power of two */
    const tt_fft_table *table = tt_fft_loops[tt_isa_index];
    const char *roots = long_roots_of(w->size, pitch, count, wide);
    const void *few = roots_of(TT_FFT_PARTS, wide);
    char *parts = roots && few ? tt_scratch((TT_FFT_PARTS * pitch + TT_FFT_LANES) * size) : NULL;
    if (!parts) return tt_fail(TT_OUT_OF_MEMORY, "out of memory for a row of a Fourier transform"), false;
    for (int64_t row = 0; row < j->rows; row++) {
        tt_array a = *w->a, out = *w->out;
        char *to;
        row_at(j, row, &a.data, &to);
        out.data = parts;
        tt_fft_work inner = *w;
        inner.a = &a;
        inner.out = &out;
        inner.size = part;
        inner.scale = 1;
        fft_job each = {.run = j->run, .data = j->data, .w = &inner, .ndim = 1, .rows = TT_FFT_PARTS};
        each.shape[0] = TT_FFT_PARTS;
        each.step_in[0] = j->stride_in;
        each.step_out[0] = pitch * size;
        each.in = part;
        each.out = count;
        each.stride_in = TT_FFT_PARTS * j->stride_in;
        each.stride_out = size;
        tt_parallel(TT_FFT_PARTS / FEW_ROWS, 1, run_parts, &each);
        long_job join = {{parts, to, j->stride_out, w->size, pitch, count, from_real, w->forward || from_real, w->scale,
                          roots, roots + TT_FFT_PARTS * pitch * size / 2, few},
                         table->types[wide].join};
        int lanes = table->types[wide].lanes;
        tt_parallel((count + lanes - 1) / lanes, GRAIN / (TT_FFT_PARTS * lanes) + 1, join_range, &join);
        if (j->mirror) mirror_rows(j, to, 1);
    }
    tt_scratch_free(parts);
    return true;
}

/* The rows: all dimensions but one, neighbours taken together where one step walks both. */
static int64_t lay_out(fft_job *j) {
    const tt_array *a = j->w->a, *out = j->w->out;
    int64_t of_a = tt_itemsizes[a->dtype], of_out = tt_itemsizes[out->dtype], rows = 1;
    for (int d = 0; d < a->ndim; d++) {
        int64_t n = a->shape[d], step_in = a->strides[d] * of_a, step_out = out->strides[d] * of_out;
        int k = j->ndim - 1;
        if (d == j->w->dim || n == 1) continue;
        rows *= n;
        if (k >= 0 && j->step_in[k] == n * step_in && j->step_out[k] == n * step_out) j->shape[k] *= n;
        else j->shape[k = j->ndim++] = n;
        j->step_in[k] = step_in;
        j->step_out[k] = step_out;
    }
    if (!j->ndim) {
        j->ndim = 1;
        j->shape[0] = 1;
        j->step_in[0] = j->step_out[0] = 0;
    }
    return rows;
}

bool tt_cpu_fft(const tt_fft_work *w) {
    bool from_real = !tt_is_complex(w->a->dtype), to_real = !tt_is_complex(w->out->dtype);
    int loop = from_real    ? (w->size % 2 ? TT_FFT_REAL_ODD : TT_FFT_REAL_EVEN)
               : to_real    ? TT_FFT_TO_REAL
               : w->forward ? TT_FFT_FORWARD
                            : TT_FFT_INVERSE;
    bool wide = tt_real_dtype(w->out->dtype) == TT_F64;
    fft_job j = {.run = loops[loop][wide].run, .data = loops[loop][wide].data, .w = w};
    if (!j.run) {
        tt_fail(TT_NOT_IMPLEMENTED, "Fourier transforms on the CPU are those of NumPy 2, which is not installed");
        return false;
    }
    int64_t rows = j.rows = lay_out(&j);
    j.in = w->a->shape[w->dim];
    j.out = from_real ? w->size / 2 + 1 : w->size;
    j.mirror = from_real && w->out->shape[w->dim] > j.out;
    j.stride_in = w->a->strides[w->dim] * tt_itemsizes[w->a->dtype];
    j.stride_out = w->out->strides[w->dim] * tt_itemsizes[w->out->dtype];
    if (goes_together(&j)) {
        int lanes = tt_fft_loops[tt_isa_index]->types[wide].lanes;
        tt_parallel((rows + lanes - 1) / lanes, GRAIN / (w->size * lanes) + 1, run_together, &j);
        return !j.failed || (tt_fail(TT_OUT_OF_MEMORY, "out of memory for the rows of a Fourier transform"), false);
    }
    void *enough = tt_scratch(16 * w->size * (wide ? 16 : 8)); /* Note [NumPy's loops] */
    if (!enough) return false;
    tt_scratch_free(enough);
    if (is_long(&j)) return run_long(&j);
    tt_parallel(rows, GRAIN / w->size + 1, run_rows, &j);
    return true;
}
