/* cuBLASLt's interface over the CPU's memory, as far as tinytorch uses it: column-major, by the library's documented
 * numbers. Tests of tinytorch/backends/cuda/cublas.py load it in the library's place. */
#include <complex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { R_32F = 0, R_64F = 1, C_32F = 4, C_64F = 5, COMPUTE_32F = 68, COMPUTE_64F = 70, FAST_TF32 = 77 };
enum { INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { EPILOGUE_DEFAULT = 1, EPILOGUE_BIAS = 4 };

typedef struct { int compute, scale, trans_a, trans_b; uint32_t epilogue; char *bias; } desc;
typedef struct { int type; uint64_t rows, cols; int64_t ld; int32_t count; int64_t step; } layout;
typedef struct { uint64_t workspace; uint32_t reductions, align[4]; } preference;
typedef struct { uint64_t data[8]; } algo;
typedef struct { algo algo; size_t workspace; int state; float waves; int reserved[4]; } result;

int fake_heuristics, fake_refuses_bias, fake_compute; /* what tests look at and set */
int64_t fake_workspace_needed;
uint32_t fake_align[4], fake_reductions;

const char *cublasLtGetStatusString(int status) { return status == NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "a fault"; }
size_t cublasLtGetVersion(void) { return 130002; }
int cublasLtCreate(void **handle) { return *handle = malloc(1), 0; }

static int set(void *field, const void *value, size_t want, size_t size) {
    if (size != want) return INVALID_VALUE;
    memcpy(field, value, size);
    return 0;
}

int cublasLtMatmulDescCreate(void **out, int compute, int scale) {
    desc *d = *out = calloc(1, sizeof *d);
    d->compute = compute, d->scale = scale, d->epilogue = EPILOGUE_DEFAULT;
    return 0;
}
int cublasLtMatmulDescDestroy(void *d) { return free(d), 0; }
int cublasLtMatmulDescSetAttribute(void *p, int attribute, const void *value, size_t size) {
    desc *d = p;
    switch (attribute) {
    case 3: return set(&d->trans_a, value, 4, size);
    case 4: return set(&d->trans_b, value, 4, size);
    case 7: return set(&d->epilogue, value, 4, size);
    case 8: return set(&d->bias, value, 8, size);
    default: return INVALID_VALUE;
    }
}

int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t cols, int64_t ld) {
    layout *l = *out = calloc(1, sizeof *l);
    *l = (layout){type, rows, cols, ld, 1, 0};
    return ld < (int64_t)rows ? INVALID_VALUE : 0;
}
int cublasLtMatrixLayoutDestroy(void *l) { return free(l), 0; }
int cublasLtMatrixLayoutSetAttribute(void *p, int attribute, const void *value, size_t size) {
    layout *l = p;
    if (attribute == 5) return set(&l->count, value, 4, size);
    return attribute == 6 ? set(&l->step, value, 8, size) : INVALID_VALUE;
}

int cublasLtMatmulPreferenceCreate(void **out) { return *out = calloc(1, sizeof(preference)), 0; }
int cublasLtMatmulPreferenceDestroy(void *p) { return free(p), 0; }
int cublasLtMatmulPreferenceSetAttribute(void *p, int attribute, const void *value, size_t size) {
    preference *pref = p;
    if (attribute == 1) return set(&pref->workspace, value, 8, size);
    if (attribute == 3) return set(&pref->reductions, value, 4, size);
    return attribute >= 5 && attribute <= 8 ? set(&pref->align[attribute - 5], value, 4, size) : INVALID_VALUE;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *d, void *a, void *b, void *c, void *out, void *p, int requested,
                                   result *results, int *found) {
    const preference *pref = p;
    (void)handle, (void)a, (void)b, (void)c, (void)out;
    fake_heuristics++;
    fake_compute = ((desc *)d)->compute;
    fake_reductions = pref->reductions;
    memcpy(fake_align, pref->align, sizeof fake_align);
    *found = 0;
    if (((desc *)d)->epilogue == EPILOGUE_BIAS && (fake_refuses_bias || !((desc *)d)->bias)) return NOT_SUPPORTED;
    if (requested < 1 || (uint64_t)fake_workspace_needed > pref->workspace) return NOT_SUPPORTED;
    results[0] = (result){.workspace = (size_t)fake_workspace_needed};
    *found = 1;
    return 0;
}

static double complex at(const char *p, int type, int64_t i) {
    switch (type) {
    case R_64F: return ((const double *)p)[i];
    case C_32F: return ((const float complex *)p)[i];
    case C_64F: return ((const double complex *)p)[i];
    default: return ((const float *)p)[i];
    }
}

static void put(char *p, int type, int64_t i, double complex value) {
    switch (type) {
    case R_64F: ((double *)p)[i] = creal(value); break;
    case C_32F: ((float complex *)p)[i] = (float complex)value; break;
    case C_64F: ((double complex *)p)[i] = value; break;
    default: ((float *)p)[i] = (float)creal(value);
    }
}

int cublasLtMatmul(void *handle, const desc *d, const void *alpha, const char *a, const layout *la, const char *b,
                   const layout *lb, const void *beta, const char *c, const layout *lc, char *out, const layout *ld,
                   const algo *chosen, intptr_t workspace, size_t workspace_size, intptr_t stream) {
    int64_t rows = (int64_t)ld->rows, cols = (int64_t)ld->cols, inner = (int64_t)(d->trans_a ? la->rows : la->cols);
    double complex factor = at(alpha, d->scale, 0), keep = at(beta, d->scale, 0);
    (void)stream;
    if (!handle || !chosen || (int64_t)workspace_size < fake_workspace_needed || (fake_workspace_needed && !workspace)) return 13;
    if ((d->trans_a ? la->cols : la->rows) != ld->rows || (d->trans_b ? lb->rows : lb->cols) != ld->cols ||
        (int64_t)(d->trans_b ? lb->cols : lb->rows) != inner || lc->rows != ld->rows || lc->cols != ld->cols)
        return INVALID_VALUE;
    for (int64_t s = 0; s < ld->count; s++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++) {
                double complex sum = 0;
                for (int64_t l = 0; l < inner; l++)
                    sum += at(a, la->type, s * la->step + (d->trans_a ? l + i * la->ld : i + l * la->ld)) *
                           at(b, lb->type, s * lb->step + (d->trans_b ? j + l * lb->ld : l + j * lb->ld));
                int64_t place = s * ld->step + i + j * ld->ld;
                sum = factor * sum + (keep ? keep * at(c, lc->type, s * lc->step + i + j * lc->ld) : 0);
                if (d->epilogue == EPILOGUE_BIAS) sum += at(d->bias, ld->type, i);
                put(out, ld->type, place, sum);
            }
    return 0;
}
