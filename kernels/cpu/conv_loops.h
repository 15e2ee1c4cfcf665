/* The three loops of a convolution, for elements of type T whose sums over a batch are taken in A; included by conv.c
 * once for each T, with OF(name) the function's name. Each makes some rows of its array. */

static void OF(result)(void *context, int64_t begin, int64_t end) {
    const convolution *c = context;
    const tt_conv_work *w = c->w;
    for (int64_t row = begin; row < end; row++) { /* n, o */
        int64_t o = row % (w->groups * w->out), n = row / (w->groups * w->out), group = o / w->out;
        T *y = (T *)c->result + row * w->places;
        memset(y, 0, (size_t)w->places * sizeof(T));
        for (int64_t channel = 0; channel < w->in; channel++)
            for (int64_t k = 0; k < w->taps; k++) {
                const T *x = (const T *)c->input + (n * w->groups * w->in + group * w->in + channel) * w->length;
                T factor = ((const T *)c->weight)[(o * w->in + channel) * w->taps + k];
                int64_t at = k * w->dilation - w->padding, last = end_place(w, at);
                for (int64_t i = first_place(w, at); i < last; i++) y[i] += factor * x[at + i * w->stride];
            }
    }
}

static void OF(input)(void *context, int64_t begin, int64_t end) {
    const convolution *c = context;
    const tt_conv_work *w = c->w;
    for (int64_t row = begin; row < end; row++) { /* n, channel */
        int64_t group = row % (w->groups * w->in) / w->in, channel = row % w->in, n = row / (w->groups * w->in);
        T *x = (T *)c->input + row * w->length;
        memset(x, 0, (size_t)w->length * sizeof(T));
        for (int64_t o = group * w->out; o < (group + 1) * w->out; o++)
            for (int64_t k = 0; k < w->taps; k++) {
                const T *y = (const T *)c->result + (n * w->groups * w->out + o) * w->places;
                T factor = ((const T *)c->weight)[(o * w->in + channel) * w->taps + k];
                int64_t at = k * w->dilation - w->padding, last = end_place(w, at);
                for (int64_t i = first_place(w, at); i < last; i++) x[at + i * w->stride] += factor * y[i];
            }
    }
}

static void OF(weight)(void *context, int64_t begin, int64_t end) {
    const convolution *c = context;
    const tt_conv_work *w = c->w;
    for (int64_t row = begin; row < end; row++) { /* o, channel */
        int64_t o = row / w->in, channel = o / w->out * w->in + row % w->in;
        for (int64_t k = 0; k < w->taps; k++) {
            A sum = 0;
            int64_t at = k * w->dilation - w->padding, first = first_place(w, at), last = end_place(w, at);
            for (int64_t n = 0; n < w->batch; n++) {
                const T *x = (const T *)c->input + (n * w->groups * w->in + channel) * w->length;
                const T *y = (const T *)c->result + (n * w->groups * w->out + o) * w->places;
                for (int64_t i = first; i < last; i++) sum += (A)x[at + i * w->stride] * (A)y[i];
            }
            ((T *)c->weight)[row * w->taps + k] = (T)sum;
        }
    }
}

#undef T
#undef A
#undef OF
