/* The optimisers' updates of many tensors: each block takes a chunk of one of them. TT_D0: as stored, TT_D1: computed
 * in; the variant is that of optim.c. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/tensors.cuh"
#include "cuda/device/optim_args.h"
#include "scalar/optim.h"

#define TT_ARGS tt_optim_args
#define TT_FLAGS (TT_VARIANT & 7)

typedef TT_TYPE(TT_D0) stored;
typedef TT_TYPE(TT_D1) number;
typedef TT_JOIN2(tt_rates_, TT_D1) rates;

#define TT_RULE TT_JOIN4(tt_, TT_NAME, _, TT_D1)
/* Has the rule this state? */
#define TT_ALWAYS(name, title, states) states,
static constexpr int always[] = {TT_UPDATE_RULES(TT_ALWAYS)};
enum {
    BY_FLAGS = TT_OP == TT_RULE_sgd       ? (TT_FLAGS & TT_MOMENTUM ? 1 : 0)
               : TT_OP == TT_RULE_adam    ? (TT_FLAGS & TT_AMSGRAD ? 4 : 0)
               : TT_OP == TT_RULE_rmsprop ? (TT_FLAGS & TT_CENTERED ? 2 : 0) | (TT_FLAGS & TT_MOMENTUM ? 4 : 0)
                                          : 0,
    STATES = always[TT_OP] | BY_FLAGS
};
#define TT_USES(state) (STATES >> (state) & 1)

#define TT_V (TT_VARIANT & 16 ? (sizeof(stored) == 8 ? 2 : 4) : 1)
#define TT_UNROLL (TT_OPTIM_CHUNK / (TT_CUDA_THREADS * TT_V) < 2 ? 1 : 2)
#define TT_STATE(k) (2 + (k) - ((k) > 0 && !TT_USES(0)) - ((k) > 1 && !TT_USES(1)))
enum { OPERANDS = 2 + (TT_USES(0) ? 1 : 0) + (TT_USES(1) ? 1 : 0) + (TT_USES(2) ? 1 : 0) };

typedef tt_pack<stored, TT_V> pack;

static TT_DEVICE number widened(stored x) { return TT_CONVERT(TT_D0, TT_D1, x); }

/* V elements of one place, from and to registers. */
struct place {
    pack x, g, s[3];
    TT_DEVICE void load(char *const *data, int64_t i) {
        x = *(const pack *)((const stored *)data[0] + i);
        g = *(const pack *)((const stored *)data[1] + i);
#pragma unroll
        for (int k = 0; k < 3; k++)
            if (TT_USES(k)) s[k] = *(const pack *)((const stored *)data[TT_STATE(k)] + i);
    }
    TT_DEVICE void update(const rates &u, int flags) {
#pragma unroll
        for (int v = 0; v < TT_V; v++) {
            number to = widened(x.at[v]), state[3] = {0, 0, 0};
#pragma unroll
            for (int k = 0; k < 3; k++)
                if (TT_USES(k)) state[k] = widened(s[k].at[v]);
            TT_RULE(&to, widened(g.at[v]), &state[0], &state[1], &state[2], &u, flags);
            x.at[v] = TT_CONVERT(TT_D1, TT_D0, to);
#pragma unroll
            for (int k = 0; k < 3; k++)
                if (TT_USES(k)) s[k].at[v] = TT_CONVERT(TT_D1, TT_D0, state[k]);
        }
    }
    TT_DEVICE void store(char *const *data, int64_t i) {
        *(pack *)((stored *)data[0] + i) = x;
#pragma unroll
        for (int k = 0; k < 3; k++)
            if (TT_USES(k)) *(pack *)((stored *)data[TT_STATE(k)] + i) = s[k];
    }
};

/* One element by itself, at a tensor's end. */
static TT_DEVICE void single(char *const *data, int64_t i, const rates &u, int flags) {
    stored *x = (stored *)data[0] + i;
    number to = widened(*x), state[3] = {0, 0, 0};
#pragma unroll
    for (int k = 0; k < 3; k++)
        if (TT_USES(k)) state[k] = widened(((const stored *)data[TT_STATE(k)])[i]);
    TT_RULE(&to, widened(((const stored *)data[1])[i]), &state[0], &state[1], &state[2], &u, flags);
    *x = TT_CONVERT(TT_D1, TT_D0, to);
#pragma unroll
    for (int k = 0; k < 3; k++)
        if (TT_USES(k)) ((stored *)data[TT_STATE(k)])[i] = TT_CONVERT(TT_D1, TT_D0, state[k]);
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    if (p.skip && *p.skip != 0) return;
    const int flags = TT_FLAGS | p.fresh;
    const int tensor = tt_tensor_of(p.first, p.n, blockIdx.x);
    const double rate = p.rates ? p.rates[2 * tensor] : p.rate, root = p.rates ? p.rates[2 * tensor + 1] : p.root;
    const rates u = {(number)p.sign, (number)p.decay, (number)rate, (number)p.ahead, (number)p.a,
                     (number)p.b,    (number)p.c,     (number)root, (number)p.eps};
    char *const *data = p.data + tensor * OPERANDS;
    const int64_t begin = (int64_t)(blockIdx.x - p.first[tensor]) * TT_OPTIM_CHUNK;
    const int64_t end = begin + TT_OPTIM_CHUNK < p.numel[tensor] ? begin + TT_OPTIM_CHUNK : p.numel[tensor];
    const int64_t step = TT_CUDA_THREADS * TT_V;
    int64_t i = begin + threadIdx.x * TT_V;
    for (; i + (TT_UNROLL - 1) * step + TT_V <= end; i += TT_UNROLL * step) {
        place at[TT_UNROLL];
#pragma unroll
        for (int k = 0; k < TT_UNROLL; k++) at[k].load(data, i + k * step);
#pragma unroll
        for (int k = 0; k < TT_UNROLL; k++) {
            at[k].update(u, flags);
            at[k].store(data, i + k * step);
        }
    }
    for (; i < end; i += step)
        for (int64_t j = i; j < end && j < i + TT_V; j++) single(data, j, u, flags);
}
