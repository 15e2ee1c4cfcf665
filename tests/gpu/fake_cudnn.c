/* cuDNN's graph interface over the CPU's memory, as far as tinytorch's convolutions use it, by the library's documented
 * numbers. Tests of tinytorch/backends/cuda/cudnn.py load it in the library's place. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BAD_PARAM = 2000, NOT_SUPPORTED = 3000 };
enum { CONVOLUTION = 1, ENGINE = 2, CONFIG = 3, HEURISTICS = 4, PLAN = 5, FORWARD = 10, WEIGHT = 11, DATA = 12, GRAPH = 15, PACK = 16, TENSOR = 17 };
enum { BOOLEAN = 2, INT64 = 3, FLOAT = 4, DOUBLE = 5, POINTER = 6, NOTE = 11, DESCRIPTOR = 15, HANDLE = 0 };

typedef struct { int name, type; int64_t count; char value[128]; } attribute;
typedef struct descriptor { int kind, final, n, engine; struct descriptor *graph; attribute all[16]; } descriptor;

/* what tests look at and set: engines by their notes (bits), which of them (bits) make no plan, and what was done */
int fake_engines, fake_notes[8], fake_refused, fake_heuristics, fake_executed[8], fake_streams;
int64_t fake_workspace, fake_alive;
static char message[200];

size_t cudnnGetVersion(void) { return 91900; }
const char *cudnnGetErrorString(int status) { return status == BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_NOT_SUPPORTED"; }
void cudnnGetLastErrorString(char *to, size_t size) { snprintf(to, size, "%s", message); }
int cudnnCreate(void **handle) { return *handle = malloc(1), 0; }
int cudnnSetStream(void *handle, intptr_t stream) { return (void)handle, (void)stream, fake_streams++, 0; }

static int wrong(const char *why) { return snprintf(message, sizeof message, "%s", why), BAD_PARAM; }

int cudnnBackendCreateDescriptor(int kind, void **out) {
    descriptor *d = *out = calloc(1, sizeof *d);
    d->kind = kind;
    fake_alive++;
    return 0;
}
int cudnnBackendDestroyDescriptor(void *d) { return fake_alive--, free(d), 0; }

static int64_t size_of(int type) { return type == BOOLEAN ? 1 : type == INT64 || type == DOUBLE || type == POINTER || type == DESCRIPTOR || type == HANDLE ? 8 : 4; }

static const attribute *find(const descriptor *d, int name) {
    for (int k = 0; k < d->n; k++)
        if (d->all[k].name == name) return &d->all[k];
    return NULL;
}
static const void *value(const descriptor *d, int name) { const attribute *a = find(d, name); return a ? a->value : NULL; }
static descriptor *inner(const descriptor *d, int name) { descriptor *const *p = value(d, name); return p ? *p : NULL; }

int cudnnBackendSetAttribute(void *p, int name, int type, int64_t count, const void *values) {
    descriptor *d = p;
    if (d->final) return wrong("it is final");
    if (count * size_of(type) > 128 || d->n == 16) return wrong("too long");
    attribute *a = &d->all[d->n++];
    *a = (attribute){name, type, count, {0}};
    memcpy(a->value, values, (size_t)(count * size_of(type)));
    if (type == DESCRIPTOR)
        for (int64_t k = 0; k < count; k++)
            if (!((descriptor *const *)values)[k]->final) return wrong("an inner one is not final");
    return 0;
}

int cudnnBackendFinalize(void *p) {
    static const struct { int kind, names[6]; } wanted[] = {
        {TENSOR, {900, 901, 902, 903, 906}}, {CONVOLUTION, {100, 101, 102, 103, 104, 105}}, {FORWARD, {700, 701, 702, 703, 704, 705}},
        {DATA, {706, 707, 708, 709, 710, 711}}, {WEIGHT, {712, 713, 714, 715, 716, 717}}, {GRAPH, {800, 801}}, {HEURISTICS, {200, 201}},
        {PLAN, {400, 401}}, {PACK, {1000, 1001, 1003}}};
    descriptor *d = p;
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
        for (int j = 0; d->kind == wanted[k].kind && j < 6; j++)
            if (wanted[k].names[j] && !find(d, wanted[k].names[j])) return wrong("an attribute is missing");
    if (d->kind == PLAN && fake_refused >> inner(d, 401)->engine & 1) return wrong("not by this engine") + 1000;
    fake_heuristics += d->kind == HEURISTICS;
    d->final = 1;
    return 0;
}

int cudnnBackendGetAttribute(void *p, int name, int type, int64_t room, int64_t *count, void *values) {
    descriptor *d = p, **out = values;
    if (!d->final) return wrong("it is not final");
    if (d->kind == HEURISTICS && name == 202) {
        int fallback = *(const int *)value(d, 200) == 2; /* it names the last engine */
        *count = fake_engines == 0 ? 0 : fallback ? 1 : fake_engines - 1;
        for (int64_t k = 0; k < *count && k < room; k++) {
            out[k]->final = 1;
            out[k]->engine = fallback ? fake_engines - 1 : (int)k;
            out[k]->graph = inner(d, 201);
        }
    } else if (d->kind == CONFIG && name == 300) *count = 1, out[0]->final = 1, out[0]->engine = d->engine;
    else if (d->kind == ENGINE && name == 1301) *count = 1, *(int64_t *)values = d->engine;
    else if (d->kind == ENGINE && name == 1303) {
        *count = 0;
        for (int k = 0; k < 10; k++)
            if (fake_notes[d->engine] >> k & 1) ((int *)values)[(*count)++] = k;
    } else if (d->kind == PLAN && name == 402) *count = 1, *(int64_t *)values = fake_workspace;
    else return wrong("there is no such attribute");
    return type == INT64 || type == NOTE || type == DESCRIPTOR ? 0 : wrong("another type");
}

typedef struct { char *data; const int64_t *shape, *strides; int64_t dims; int type; } array;

static array array_of(const descriptor *tensor, const descriptor *pack) {
    const attribute *uids = find(pack, 1000);
    array a = {NULL, value(tensor, 902), value(tensor, 903), find(tensor, 902)->count, *(const int *)value(tensor, 901)};
    for (int64_t k = 0; k < uids->count; k++)
        if (((const int64_t *)uids->value)[k] == *(const int64_t *)value(tensor, 906)) a.data = ((char *const *)value(pack, 1001))[k];
    return a;
}

static double get(const array *a, int64_t at) { return a->type == 1 ? ((double *)a->data)[at] : ((float *)a->data)[at]; }
static void add(const array *a, int64_t at, double x) {
    if (a->type == 1) ((double *)a->data)[at] += x;
    else ((float *)a->data)[at] += (float)x;
}

/* Each product of two elements, added to the third. */
static int convolve(const descriptor *op, const descriptor *pack) {
    int base = op->kind == FORWARD ? 700 : op->kind == DATA ? 706 : 712;
    const descriptor *conv = inner(op, base + 2);
    array w = array_of(inner(op, base + 3), pack), x = array_of(inner(op, base + 4), pack), y = array_of(inner(op, base + 5), pack);
    const int64_t *dilation = value(conv, 102), *stride = value(conv, 103), *post = value(conv, 104), *pre = value(conv, 105);
    int64_t n = x.dims - 2, groups = x.shape[1] / w.shape[1], per = w.shape[0] / groups, places = 1, taps = 1;
    array *out = op->kind == FORWARD ? &y : op->kind == DATA ? &x : &w;
    for (int64_t d = 0; d < n; d++) {
        int64_t reach = (w.shape[2 + d] - 1) * dilation[d] + 1;
        if ((x.shape[2 + d] + pre[d] + post[d] - reach) / stride[d] + 1 != y.shape[2 + d] || post[d] < 0) return wrong("sizes");
        places *= y.shape[2 + d];
        taps *= w.shape[2 + d];
    }
    int64_t numel = 1;
    for (int64_t d = 0; d < out->dims; d++) numel *= out->shape[d];
    memset(out->data, 0, (size_t)(numel * (out->type == 1 ? 8 : 4)));
    for (int64_t b = 0; b < x.shape[0]; b++)
        for (int64_t o = 0; o < w.shape[0]; o++)
            for (int64_t c = 0; c < w.shape[1]; c++)
                for (int64_t p = 0; p < places; p++)
                    for (int64_t t = 0; t < taps; t++) {
                        int64_t of_x = b * x.strides[0] + (o / per * w.shape[1] + c) * x.strides[1];
                        int64_t of_y = b * y.strides[0] + o * y.strides[1], of_w = o * w.strides[0] + c * w.strides[1];
                        int64_t place = p, tap = t, inside = 1;
                        for (int64_t d = n - 1; d >= 0; d--) {
                            int64_t i = place % y.shape[2 + d], k = tap % w.shape[2 + d], at = i * stride[d] - pre[d] + k * dilation[d];
                            place /= y.shape[2 + d], tap /= w.shape[2 + d];
                            inside &= at >= 0 && at < x.shape[2 + d];
                            of_x += at * x.strides[2 + d], of_y += i * y.strides[2 + d], of_w += k * w.strides[2 + d];
                        }
                        if (!inside) continue;
                        if (op->kind == FORWARD) add(&y, of_y, get(&x, of_x) * get(&w, of_w));
                        else if (op->kind == DATA) add(&x, of_x, get(&y, of_y) * get(&w, of_w));
                        else add(&w, of_w, get(&x, of_x) * get(&y, of_y));
                    }
    return 0;
}

int cudnnBackendExecute(void *handle, void *plan, void *pack) {
    descriptor *config = inner(plan, 401);
    if (!handle || !((descriptor *)pack)->final) return wrong("it is not final");
    if ((*(void *const *)value(pack, 1003) != NULL) != (fake_workspace > 0)) return wrong("the workspace");
    fake_executed[config->engine]++;
    return convolve(inner(config->graph, 801), pack);
}
