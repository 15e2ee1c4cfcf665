/* Exhaustive check of the float32 scalar functions against float64 (or wider) references.

     ulp [name ...] [--stride N] [--threads T] [--pairs N]   accuracy, nonzero exit on a miss
     ulp [name ...] --bits [--stride N]                      hash of the results' bits
     ulp [name ...] --time                                   ns per element, 16K elements
     ulp [name ...] --far                                    do results that are 0, of arguments
                                                             far away, underflow on their way?

   Unary functions are walked over all 2^32 bit patterns (every N-th with --stride), binary ones
   over every pair of a list of special values and --pairs random pairs.  The functions run
   block by block in a loop that the compiler may vectorise, so that what is tested is the
   code that runs.  The hashes of builds for different instruction sets and compilers must be
   equal; NaNs count as one value there, since IEEE leaves their payload open.

   gcc -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math \
       -I kernels tests/scalar/ulp.c -o ulp -lm -lpthread */
#define _GNU_SOURCE
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scalar/arith.h"
#include "scalar/math_f32.h"
#include "scalar/math_f64.h"
#include "scalar/ops.h"

enum { BLOCK = 4096, TIMED = 16384, MAX_THREADS = 256 };

/* ---- References.  Those not in libm are composed so that no step loses relative accuracy. */

static double ref_log1pexp(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double ref_sigmoid(double x) {
  double e = exp(-fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
static double ref_logsigmoid(double x) { return -ref_log1pexp(-x); }
static double ref_silu(double x) { return x * ref_sigmoid(x); }
static double ref_gelu(double x) { return 0.5 * x * erfc(-x * M_SQRT1_2); }
static double ref_gelu_tanh(double x) {
  return x * ref_sigmoid(2 * sqrt(M_2_PI) * (x + 0.044715 * x * x * x));
}
static double ref_lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

/* Newton in long double on erf, or on erfc of the exact complement. */
static double ref_erfinv(double x) {
  double a = fabs(x);
  if (!(a < 1)) return a == 1 ? copysign(INFINITY, x) : NAN;
  if (a < 1e-9) return x * 0.88622692545275801365;
  long double y = tt_erfinv_f64(a);
  for (int i = 0; i < 2; i++) {
    long double miss = a < 0.5 ? erfl(y) - a : (1 - (long double)a) - erfcl(y);
    y -= miss / (1.12837916709551257390L * expl(-y * y));
  }
  return copysign((double)y, x);
}

/* In long double: recurrence to z >= 20, asymptotic series, reflection on the left. */
static double ref_digamma(double x) {
  const long double pi = 3.14159265358979323846264L;
  if (x == 0) return copysign(INFINITY, -x);
  if (isinf(x)) return x > 0 ? x : NAN;
  if (x < 0 && x == floor(x)) return NAN;
  long double z = x < 0 ? 1 - (long double)x : x, sum = 0;
  for (; z < 20; z += 1) sum -= 1 / z;
  long double i2 = 1 / (z * z);
  sum += logl(z) - 0.5L / z -
         i2 * (1.0L / 12 - i2 * (1.0L / 120 - i2 * (1.0L / 252 - i2 * (1.0L / 240 -
         i2 * (1.0L / 132 - i2 * (691.0L / 32760 - i2 / 12))))));
  if (x < 0) {
    long double f = x - rint(x);
    sum -= fabsl(f) == 0.5L ? 0 : pi / tanl(pi * f);
  }
  return (double)sum;
}

static double ref_logaddexp(double x, double y) {
  if (isnan(x) || isnan(y)) return NAN;
  if (x == y && isinf(x)) return x;
  long double m = fmax(x, y);
  return (double)(m + log1pl(expl(-fabsl((long double)x - y))));
}
static double ref_logaddexp2(double x, double y) {
  if (isnan(x) || isnan(y)) return NAN;
  if (x == y && isinf(x)) return x;
  long double m = fmax(x, y);
  return (double)(m + log1pl(exp2l(-fabsl((long double)x - y))) * 1.44269504088896340736L);
}
static double ref_remainder(double x, double y) {
  double r = fmod(x, y);
  return r != 0 && (y < 0) != (r < 0) ? r + y : r;
}
static double ref_floor_divide(double x, double y) { return tt_floor_divide_f64(x, y); }
static double ref_nextafter(double x, double y) { return nextafterf((float)x, (float)y); }

/* ---- The functions under test: the common ones of ops.h with one floating operand, and tt_cbrt_f32. Their reference is the
   float64 function, the bound 2 ulp and the range of --time -10 to 10, but for what this table says of some. */
#define EXCEPTIONS(X)                                                                        \
  X(log, 0, 2, 0, 10)                    X(log2, 0, 2, 0, 10)                                \
  X(log10, 0, 2, 0, 10)                  X(log1p, 0, 2, -1, 10)                              \
  X(sin, 0, 2, -100, 100)                X(cos, 0, 2, -100, 100)                             \
  X(tan, 0, 2, -100, 100)                X(asin, 0, 2, -1, 1)                                \
  X(acos, 0, 2, -1, 1)                   X(acosh, 0, 2, 1, 10)                               \
  X(atanh, 0, 2, -1, 1)                  X(erfinv, ref_erfinv, 2, -1, 1)                     \
  X(sigmoid, ref_sigmoid, 2, -10, 10)    X(softplus, ref_log1pexp, 2, -10, 10)               \
  X(silu, ref_silu, 2, -10, 10)          X(gelu, ref_gelu, 2, -5, 5)                         \
  X(gelu_tanh, ref_gelu_tanh, 2, -5, 5)  X(logsigmoid, ref_logsigmoid, 2, -10, 10)           \
  X(lgamma, ref_lgamma, 2, -5, 20)       X(digamma, ref_digamma, 2, -5, 20)                  \
  X(rsqrt, 0, 2, 0, 10)                  X(reciprocal, 0, 0.5, 1, 10)                        \
  X(sqrt, 0, 0.5, 0, 10)

/* M(name) for the rows of ops.h with one operand of domain FLT. */
#define OF_1_FLT(M, name) M(name)
#define OF_1_REAL(M, name)
#define OF_1_NUM(M, name)
#define OF_1_ALL(M, name)
#define OF_1_INT(M, name)
#define OF_1_NONE(M, name)
#define OF_1(M, name, domain) OF_1_##domain(M, name)
#define OF_2(M, name, domain)
#define OF_3(M, name, domain)
#define UNARY_LOOP(name, arity, domain, ...) OF_##arity(LOOP1, name, domain)
#define UNARY_ROW(name, arity, domain, ...) OF_##arity(ROW1, name, domain)

/* The short reductions agree with the full functions bit for bit inside their bound. */
#define SMALL(X) X(sin) X(cos)

#define BINARY(X)                                                                            \
  X(pow, pow, 2, 0)                       X(atan2, atan2, 2, 0)                              \
  X(hypot, hypot, 2, 0)                   X(logaddexp, ref_logaddexp, 2, 1e-15)              \
  X(logaddexp2, ref_logaddexp2, 2, 1e-15) X(ldexp, tt_ldexp_f64, 2, 0)                       \
  X(fmod, fmod, 0, 0)                     X(remainder, ref_remainder, 0.5, 0)                \
  X(floor_divide, ref_floor_divide, 2, 0) X(copysign, copysign, 0, 0)                        \
  X(nextafter, ref_nextafter, 0, 0)

#define LOOP1(name, ...)                                                                     \
  __attribute__((noinline)) static void run_##name(const float *restrict x,                  \
                                                   float *restrict y, int n) {               \
    for (int i = 0; i < n; i++) y[i] = tt_##name##_f32(x[i]);                                \
  }
#define LOOP2(name, ...)                                                                     \
  __attribute__((noinline)) static void run_##name(const float *restrict x,                  \
                                                   const float *restrict z,                  \
                                                   float *restrict y, int n) {               \
    for (int i = 0; i < n; i++) y[i] = tt_##name##_f32(x[i], z[i]);                          \
  }
#define LOOP_SMALL(name) LOOP1(name##_small)
TT_COMMON_OPS(UNARY_LOOP)
LOOP1(cbrt)
BINARY(LOOP2)
SMALL(LOOP_SMALL)

typedef struct {
  const char *name;
  void (*run)(const float *restrict, float *restrict, int);
  void (*run2)(const float *restrict, const float *restrict, float *restrict, int);
  double (*ref)(double), (*ref2)(double, double);
  double bound, abs_bound;
  float time_low, time_high;
} Function;

#define ROW1(name) {#name, run_##name, 0, tt_##name##_f64, 0, 2, 0, -10, 10},
#define ROW2(name, ref, bound, abs_bound) {#name, 0, run_##name, 0, ref, bound, abs_bound, 0.5f, 10},
static Function functions[] = {TT_COMMON_OPS(UNARY_ROW) ROW1(cbrt) BINARY(ROW2)};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

#define EXCEPTION(name, ref, bound, low, high) {#name, 0, 0, ref, 0, bound, 0, low, high},
static const Function exceptions[] = {EXCEPTIONS(EXCEPTION)};

static void apply_exceptions(void) {
  for (int i = 0; i < FUNCTIONS; i++)
    for (size_t k = 0; k < sizeof exceptions / sizeof *exceptions; k++) {
      const Function *e = &exceptions[k];
      if (!functions[i].run || strcmp(functions[i].name, e->name)) continue;
      if (e->ref) functions[i].ref = e->ref;
      functions[i].bound = e->bound;
      functions[i].time_low = e->time_low, functions[i].time_high = e->time_high;
    }
}

#define ROW_SMALL(name) {#name "_small", run_##name##_small, 0, 0, 0, 0, 0, -100, 100}, \
                        {#name, run_##name, 0, 0, 0, 0, 0, -100, 100},
static const Function small[] = {SMALL(ROW_SMALL)};
enum { SMALLS = sizeof small / sizeof *small / 2 };

/* ---- Comparing. */

typedef struct {
  double ulp;
  float x, z, y;
  double want;
  uint64_t rounded, special, misses, hash;
} Worst;

/* Error in units of the last place of the reference's binade.  Overflow counts as 2^128, where
   the next float would be. */
static double ulp_error(float got, double want) {
  double y = isinf(got) ? copysign(0x1p128, got) : got;
  double r = fabs(want) > 0x1p128 ? copysign(0x1p128, want) : want;
  int e = (int)(tt_bits_f64(r) >> 52 & 0x7ff) - 1023;
  e = e < -126 ? -126 : e > 127 ? 127 : e;
  return fabs(y - r) / tt_double_bits((uint64_t)(e - 23 + 1023) << 52);
}

static void compare(Worst *w, const Function *f, float x, float z, float y) {
  double want = f->ref ? f->ref(x) : f->ref2(x, z);
  if ((float)want == y && y != 0) {
    w->rounded++;
    return;
  }
  double ulp = 0;
  int special;
  if (isnan(want) || isnan(y)) {
    special = !isnan(want) != !isnan(y);
  } else {
    special = !signbit(y) != !signbit(want) && (want == 0 || y == 0);
    special |= isinf(want) && (float)want != y;
    ulp = isinf(want) ? 0 : ulp_error(y, want);
  }
  if (ulp > f->bound && fabs(y - want) > f->abs_bound) w->misses++;
  if (special) w->special++;
  if (ulp > w->ulp || (special && w->special == 1 && w->ulp == 0)) {
    w->ulp = ulp;
    w->x = x, w->z = z, w->y = y, w->want = want;
  }
}

static uint64_t mix(uint64_t h) {
  h = (h ^ (h >> 31)) * 0x9e3779b97f4a7c15ull;
  h = (h ^ (h >> 29)) * 0xd6e8feb86659fd93ull;
  return h ^ (h >> 32);
}

static uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return isnan(x) ? 0x7fc00000u : u;
}
static float float_of(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}

/* ---- Inputs: the i-th input of a sweep. */

static const float special_values[] = {
    0.0f, -0.0f, 0x1p-149f, -0x1p-149f, FLT_MIN, -FLT_MIN, 0x1p-60f, 0.1f, -0.1f, 0.5f, -0.5f,
    0x1.fffffep-1f, -0x1.fffffep-1f, 1.0f, -1.0f, 0x1.000002p0f, -0x1.000002p0f, 1.5f, -1.5f,
    2.0f, -2.0f, 3.0f, -3.0f, 4.0f, 7.0f, -7.0f, 10.0f, -10.0f, 127.0f, 128.0f, -149.0f, -150.0f,
    0x1.fffffep22f, -0x1.fffffep22f, 0x1.fffffep23f, -0x1.fffffep23f, 0x1p24f, -0x1p24f, 1e10f,
    -1e10f, -0x1.3a7fcap1f, -0x1.0b2f02p6f, 0x1p105f, -0x1p105f, 0x1p106f, -0x1p106f,
    FLT_MAX, -FLT_MAX, INFINITY, -INFINITY, NAN};
enum { SPECIALS = sizeof special_values / sizeof *special_values };

/* The special values, then every stride-th bit pattern. */
static float single(uint64_t i, uint64_t stride) {
  return i < SPECIALS ? special_values[i] : float_of((uint32_t)((i - SPECIALS) * stride));
}

/* Three pairs in four have moderate magnitudes (a third of them whole numbers), the fourth is
   any two bit patterns. */
static void pair(uint64_t i, float *x, float *z) {
  if (i < SPECIALS * SPECIALS) {
    *x = special_values[i / SPECIALS], *z = special_values[i % SPECIALS];
    return;
  }
  uint64_t h = mix(i), g = mix(h);
  *x = float_of((uint32_t)h), *z = float_of((uint32_t)(h >> 32));
  switch (g & 3) {
    case 0: break;
    case 1:
      *x = (float)(int32_t)(h & 0xff) - 128, *z = (float)(int32_t)(h >> 40 & 0x3f) - 32;
      break;
    case 2:
      *x = (float)((int32_t)h * 0x1p-24), *z = (float)((int32_t)(h >> 32) * 0x1p-26);
      break;
    default:
      *x = (float)exp2((int32_t)h * 0x1p-30), *z = (float)((int32_t)(h >> 32) * 0x1p-24);
  }
}

/* ---- Sweeping. */

typedef struct {
  const Function *f;
  uint64_t count, stride;
  int id, threads, bits;
  Worst worst;
} Job;

static void *sweep(void *argument) {
  Job *job = argument;
  Worst w = {0};
  float x[BLOCK], z[BLOCK], y[BLOCK];
  for (uint64_t start = (uint64_t)job->id * BLOCK; start < job->count;
       start += (uint64_t)job->threads * BLOCK) {
    int n = job->count - start < BLOCK ? (int)(job->count - start) : BLOCK;
    for (int i = 0; i < n; i++) {
      if (job->f->run) x[i] = single(start + i, job->stride), z[i] = 0;
      else pair(start + i, x + i, z + i);
    }
    if (job->f->run) job->f->run(x, y, n);
    else job->f->run2(x, z, y, n);
    for (int i = 0; i < n; i++) {
      if (job->bits) w.hash += mix(mix(start + i) ^ bits_of(y[i]));
      else compare(&w, job->f, x[i], z[i], y[i]);
    }
  }
  job->worst = w;
  return 0;
}

static Worst sweep_all(const Function *f, uint64_t count, uint64_t stride, int threads, int bits) {
  static Job jobs[MAX_THREADS];
  pthread_t ids[MAX_THREADS];
  for (int t = 0; t < threads; t++) {
    jobs[t] = (Job){.f = f, .count = count, .stride = stride, .id = t, .threads = threads,
                    .bits = bits};
    if (pthread_create(&ids[t], 0, sweep, &jobs[t])) exit(2);
  }
  Worst all = {0};
  for (int t = 0; t < threads; t++) {
    pthread_join(ids[t], 0);
    Worst w = jobs[t].worst;
    w.special += all.special, w.misses += all.misses;
    w.hash += all.hash, w.rounded += all.rounded;
    if (w.ulp > all.ulp || (all.ulp == 0 && w.special > all.special)) all = w;
    all.special = w.special, all.misses = w.misses;
    all.hash = w.hash, all.rounded = w.rounded;
  }
  return all;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* The best of many repetitions of 16K elements. */
static double time_one(const Function *f) {
  static float x[TIMED], z[TIMED], y[TIMED];
  for (int i = 0; i < TIMED; i++) {
    float u = (float)(mix(i) >> 40) * 0x1p-24f;
    x[i] = f->time_low + (f->time_high - f->time_low) * u;
    z[i] = x[TIMED - 1 - i];
  }
  double best = 1e9;
  for (int k = 0; k < 300; k++) {
    double t = now();
    if (f->run) f->run(x, y, TIMED);
    else f->run2(x, z, y, TIMED);
    t = now() - t;
    if (t < best) best = t;
  }
  return best / TIMED * 1e9;
}

/* The *_small variants against the full functions over every float within their bound. */
static int check_small(const Function *pair_of, uint64_t stride) {
  static float x[BLOCK], a[BLOCK], b[BLOCK];
  uint64_t differ = 0, last = bits_of(TT_TRIG_SMALL_F32);
  for (uint64_t start = 0; start <= last; start += BLOCK / 2 * stride) {
    for (int i = 0; i < BLOCK; i++) { /* both signs of each */
      uint64_t u = start + (uint64_t)(i / 2) * stride;
      x[i] = float_of((uint32_t)(u > last ? last : u) | (i & 1u) << 31);
    }
    pair_of[0].run(x, a, BLOCK);
    pair_of[1].run(x, b, BLOCK);
    for (int i = 0; i < BLOCK; i++) differ += bits_of(a[i]) != bits_of(b[i]);
  }
  printf("%-12s %llu results differ from %s\n", pair_of[0].name, (unsigned long long)differ,
         pair_of[1].name);
  return differ != 0;
}

/* An Intel CPU takes a hundred cycles for each operation that makes or takes a denormal number: of
   arguments from 200 to 2^20 in size, none may. */
static int underflows_far(const Function *f) {
  static float x[BLOCK], y[BLOCK];
  for (int i = 0; i < BLOCK; i++) {
    x[i] = (float)(200 * exp2(i * 12.0 / BLOCK));
    if (i & 1) x[i] = -x[i];
  }
#ifdef __SSE2__ /* whose bit 1 tells that an operand was denormal, bit 4 of underflow */
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x3fu);
  f->run(x, y, BLOCK);
  int raised = (__builtin_ia32_stmxcsr() & 0x12) != 0;
#else
  feclearexcept(FE_ALL_EXCEPT);
  f->run(x, y, BLOCK);
  int raised = fetestexcept(FE_UNDERFLOW) != 0;
#endif
  printf("%-12s %s\n", f->name, raised ? "underflows  FAIL" : "does not underflow");
  return raised;
}

static int asked(const char *name, int names, char **list) {
  for (int i = 0; i < names; i++)
    if (!strcmp(name, list[i])) return 1;
  return names == 0;
}

int main(int argc, char **argv) {
  uint64_t stride = 1, pairs = 1 << 26;
  int threads = 2, bits = 0, timing = 0, far = 0, names = 0, failed = 0;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--stride") && i + 1 < argc) stride = strtoull(argv[++i], 0, 0);
    else if (!strcmp(argv[i], "--threads") && i + 1 < argc) threads = atoi(argv[++i]);
    else if (!strcmp(argv[i], "--pairs") && i + 1 < argc) pairs = strtoull(argv[++i], 0, 0);
    else if (!strcmp(argv[i], "--bits")) bits = 1;
    else if (!strcmp(argv[i], "--time")) timing = 1;
    else if (!strcmp(argv[i], "--far")) far = 1;
    else if (argv[i][0] != '-') argv[names++] = argv[i];
    else stride = 0;
  }
  if (stride == 0 || threads < 1 || threads > MAX_THREADS) {
    fprintf(stderr, "usage: ulp [name ...] [--stride N] [--threads T] [--pairs N] [--bits] [--time] [--far]\n");
    return 2;
  }
  apply_exceptions();
  for (int i = 0; i < FUNCTIONS; i++) {
    const Function *f = &functions[i];
    if (!asked(f->name, names, argv)) continue;
    if (timing) {
      printf("%-12s %7.3f ns\n", f->name, time_one(f));
      continue;
    }
    if (far) {
      if (f->run) failed |= underflows_far(f);
      continue;
    }
    uint64_t count = f->run ? SPECIALS + ((1ull << 32) + stride - 1) / stride
                            : SPECIALS * SPECIALS + pairs / stride;
    Worst w = sweep_all(f, count, stride, threads, bits);
    if (bits) {
      printf("%-12s %016llx\n", f->name, (unsigned long long)w.hash);
      continue;
    }
    int bad = w.misses || w.special;
    failed |= bad;
    /* Correctly rounded results are only counted: their error is at most half an ulp. */
    if (w.rounded && w.ulp < 0.5) w.ulp = 0.5;
    printf("%-12s %8.4f ulp  x=%08x %.9g", f->name, w.ulp, bits_of(w.x), w.x);
    if (f->run2) printf("  z=%08x %.9g", bits_of(w.z), w.z);
    printf("  got %.9g want %.17g  special %llu  misses %llu%s\n", w.y, w.want,
           (unsigned long long)w.special, (unsigned long long)w.misses, bad ? "  FAIL" : "");
    fflush(stdout);
  }
  for (int i = 0; i < SMALLS; i++) {
    if (!asked(small[2 * i].name, names, argv)) continue;
    if (timing) printf("%-12s %7.3f ns\n", small[2 * i].name, time_one(&small[2 * i]));
    else if (!bits && !far) failed |= check_small(&small[2 * i], stride);
  }
  return failed;
}
