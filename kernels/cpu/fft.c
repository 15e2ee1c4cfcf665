/* Fourier transforms on the CPU: of rows of a power of two by loops of ours (Note [Rows of a power of two] in
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
#include "core/sizes.h"
#include "cpu/cpu.h"
#include "cpu/simd.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

TT_ISA_TABLES(tt_fft_table, tt_fft_loops)

#define GRAIN 16384 /* numbers that are worth a thread */
#define FEW_ROWS 8 /* fewer long rows than these are cut into parts */
#define VECTOR_OF_ROWS 4 /* which NumPy transforms together; of a line of the cache they read a quarter */

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
    tt_fft_roots roots; /* of rows of a power of two */
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

/* The roots of a transform of m numbers, as tt_fft_roots has them, in one table. */
#define PLACES(m) ((m) / 8 < TT_FFT_LANES ? TT_FFT_LANES : (m) / 8)
#define ROOTS_OF(m) (14 * PLACES(m) + 2 * (m) + 2 * ((m) / 8) + 2 * ((m) + 2) + (m))
static tt_fft_roots within(const char *table, int64_t m, int64_t itemsize) {
    const char *second = table + 14 * PLACES(m) * itemsize, *later = second + 2 * m * itemsize;
    const char *real = later + 2 * (m / 8) * itemsize;
    return (tt_fft_roots){table, second, later, real, real + 2 * (m + 2) * itemsize};
}

static void fill_roots(double *table, int64_t m, bool forward) {
    double *second = table + 14 * PLACES(m), *later = second + 2 * m, *real = later + 2 * (m / 8);
    double *apart = real + 2 * (m + 2), re, im;
    int64_t n = m / 8, radix = tt_fft_radix(n), places = 8 * (n / radix);
    for (int64_t power = 1; power < 8; power++, table += 2 * PLACES(m))
        for (int64_t q = 0; q < PLACES(m); q++) root(q % n * power, m, &table[q], &table[PLACES(m) + q]);
    for (int64_t power = 1; power < radix; power++, second += 2 * places)
        for (int64_t k = 0; k < places; k++) root(k / 8 * power, n, &second[k], &second[places + k]);
    for (int64_t k = 0; k < n; k++) root(k, n, &later[2 * k], &later[2 * k + 1]);
    for (int64_t k = 0; k <= m / 2; k++, real += 2) {
        root(k, 2 * m, &re, &im);
        real[0] = forward ? re / 2 : -re;
        real[1] = -real[0];
        real[m + 2] = real[m + 3] = forward ? im / 2 : im;
        if (k == m / 2) continue;
        apart[k] = real[0];
        apart[m / 2 + k] = real[m + 2];
    }
}

/* In whole cache lines. */
static void *room_for_roots(int64_t m, int64_t itemsize) {
    return aligned_alloc(64, (size_t)(pieces(ROOTS_OF(m) * itemsize, 64) * 64));
}

static void *make_roots(int64_t m, bool wide, bool forward) {
    double *table = room_for_roots(m, 8);
    if (table) fill_roots(table, m, forward);
    if (wide || !table) return table;
    float *narrow = room_for_roots(m, 4);
    for (int64_t k = 0; narrow && k < ROOTS_OF(m); k++) narrow[k] = (float)table[k];
    free(table);
    return narrow;
}

/* Made once for each m, of which there are few, and kept. */
static bool find_roots(int64_t m, bool wide, bool forward, tt_fft_roots *roots) {
    static void *made[2][2][16];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void **place = &made[wide][forward][__builtin_ctzll((uint64_t)m)];
    void *table = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (!table) {
        pthread_mutex_lock(&lock);
        if (!(table = *place) && (table = make_roots(m, wide, forward)))
            __atomic_store_n(place, table, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&lock);
    }
    if (table) *roots = within(table, m, wide ? 8 : 4);
    return table != NULL;
}

static void row_at(const fft_job *j, int64_t row, char **in, char **out) {
    *in = j->w->a->data;
    *out = j->w->out->data;
    for (int d = j->ndim - 1; d >= 0; row /= j->shape[d--]) {
        *in += row % j->shape[d] * j->step_in[d];
        *out += row % j->shape[d] * j->step_out[d];
    }
}

/* `count` rows, and the last of them again up to TT_FFT_TOGETHER. */
static void rows_at(const fft_job *j, int64_t first, int64_t count, char **in, char **out) {
    int last = j->ndim - 1;
    int64_t left = 0; /* where one step leads from row to row */
    for (int k = 0; k < TT_FFT_TOGETHER; k++) {
        if (k >= count) {
            in[k] = in[count - 1];
            out[k] = out[count - 1];
        } else if (left-- > 0) {
            in[k] = in[k - 1] + j->step_in[last];
            out[k] = out[k - 1] + j->step_out[last];
        } else {
            row_at(j, first + k, &in[k], &out[k]);
            left = j->shape[last] - (first + k) % j->shape[last] - 1;
        }
    }
}

/* Rows [begin, end) of TT_FFT_TOGETHER. */
static void run_together(void *context, int64_t begin, int64_t end) {
    fft_job *j = context;
    const tt_fft_work *w = j->w;
    bool wide = tt_real_dtype(w->out->dtype) == TT_F64, from_real = !tt_is_complex(w->a->dtype);
    bool to_real = !tt_is_complex(w->out->dtype);
    tt_fft_rows r = {.stride_in = j->stride_in,
                     .stride_out = j->stride_out,
                     .size = w->size,
                     .from_real = from_real,
                     .to_real = to_real,
                     .forward = w->forward,
                     .scale = w->scale,
                     .roots = j->roots,
                     .room = tt_scratch(TT_FFT_ROOM(w->size) * (wide ? 8 : 4))};
    if (!r.room) {
        __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
        return;
    }
    for (; begin < end; begin++) {
        int64_t first = begin * TT_FFT_TOGETHER;
        r.rows = least(TT_FFT_TOGETHER, j->rows - first);
        rows_at(j, first, r.rows, r.in, r.out);
        tt_fft_loops[tt_isa_index]->types[wide].run(&r);
        for (int k = 0; k < r.rows && j->mirror; k++) mirror_rows(j, r.out[k], 1);
    }
    tt_scratch_free(r.room);
}

static bool is_long(const fft_job *j) {
    int64_t n = j->w->size;
    return n >= TT_FFT_LONG && n <= TT_FFT_LONGEST && !(n & (n - 1)) && j->rows < FEW_ROWS && j->in >= n &&
           !(tt_is_complex(j->w->a->dtype) && !tt_is_complex(j->w->out->dtype));
}

/* Is it a row of a power of two that the caches hold? */
static bool goes_together(fft_job *j) {
    int64_t n = j->w->size;
    bool from_real = !tt_is_complex(j->w->a->dtype), to_real = !tt_is_complex(j->w->out->dtype);
    int64_t m = from_real || to_real ? n / 2 : n;
    if (m < TT_FFT_LEAST || n > TT_FFT_MOST || (n & (n - 1)) || is_long(j)) return false;
    if (j->in < (to_real ? m + 1 : n)) return false; /* the rest are zeros, which NumPy's loops put in */
    return find_roots(m, tt_real_dtype(j->w->out->dtype) == TT_F64, from_real || (j->w->forward && !to_real),
                      &j->roots);
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

static bool run_long(const fft_job *j) {
    const tt_fft_work *w = j->w;
    bool wide = tt_real_dtype(w->out->dtype) == TT_F64, from_real = !tt_is_complex(w->a->dtype);
    int64_t part = w->size / TT_FFT_PARTS, count = from_real ? part / 2 + 1 : part, size = wide ? 16 : 8;
    int64_t pitch = (count + TT_FFT_LANES + 7) / 8 * 8 + 8; /* not a power of two */
    const tt_fft_table *table = tt_fft_loops[tt_isa_index];
    const char *roots = long_roots_of(w->size, pitch, count, wide);
    tt_fft_roots few;
    bool made = roots && find_roots(8 * TT_FFT_PARTS, wide, true, &few);
    char *parts = made ? tt_scratch((TT_FFT_PARTS * pitch + TT_FFT_LANES) * size) : NULL;
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
        tt_parallel(TT_FFT_PARTS, tt_get_num_threads() > 2 ? VECTOR_OF_ROWS : 2 * VECTOR_OF_ROWS, run_rows, &each);
        long_job join = {{parts, to, j->stride_out, w->size, pitch, count, from_real, w->forward || from_real, w->scale,
                          roots, roots + TT_FFT_PARTS * pitch * size / 2, few.later},
                         table->types[wide].join};
        int lanes = table->types[wide].lanes;
        tt_parallel(pieces(count, lanes), GRAIN / (TT_FFT_PARTS * lanes) + 1, join_range, &join);
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
        tt_parallel(pieces(rows, TT_FFT_TOGETHER), GRAIN / (w->size * TT_FFT_TOGETHER) + 1, run_together, &j);
        return !j.failed || (tt_fail(TT_OUT_OF_MEMORY, "out of memory for the rows of a Fourier transform"), false);
    }
    void *enough = tt_scratch(16 * w->size * (wide ? 16 : 8)); /* Note [NumPy's loops] */
    if (!enough) return false;
    tt_scratch_free(enough);
    if (is_long(&j)) return run_long(&j);
    tt_parallel(rows, GRAIN / w->size + 1, run_rows, &j);
    return true;
}
