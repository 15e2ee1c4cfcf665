/* Blocks of images as columns, and (TT_OP 1) back, as kernels/cpu/unfold.c does it. TT_D0: the dtype of elements,
 * TT_D1: that computed in. */
#pragma once
#include "cuda/device/windows.cuh"
#define TT_ARGS tt_unfold_args

#if TT_IS_COMPLEX(TT_D1)
static TT_DEVICE number nothing() { return number{0, 0}; }
static TT_DEVICE number plus(number a, number b) { return number{a.re + b.re, a.im + b.im}; }
#elif TT_IS(TT_D1, b8)
static TT_DEVICE number nothing() { return 0; }
static TT_DEVICE number plus(number a, number b) { return a | b; }
#else
static TT_DEVICE number nothing() { return 0; }
static TT_DEVICE number plus(number a, number b) { return a + b; }
#endif

/* Takes the last of two coordinates off `rest`. */
static TT_DEVICE place last_of(place &rest, int64_t size, const tt_divider &d) {
    const place outer = TT_SPLIT(rest, size, d), last = rest - outer * (place)size;
    rest = outer;
    return last;
}

#if TT_OP
/* The block along dimension d of which element `at` is this tap, or -1. */
static TT_DEVICE place block_of(const TT_ARGS &p, int d, place at, place tap) {
    const place from = at + (place)p.padding[d] - tap * (place)p.dilation[d];
    if (from < 0) return -1;
    const place block = TT_SPLIT(from, p.stride[d], p.by_stride[d]);
    return block * (place)p.stride[d] == from && block < (place)p.blocks[d] ? block : -1;
}

static TT_DEVICE void work(const TT_ARGS &p, int64_t i) {
    place plane = (place)i;
    const place x = last_of(plane, p.size[1], p.by_size[1]), y = last_of(plane, p.size[0], p.by_size[0]);
    const place height = (place)p.taps[0], width = (place)p.taps[1];
    const int64_t blocks = p.blocks[0] * p.blocks[1];
    const stored *columns = (const stored *)p.columns + plane * (height * width * blocks);
    number sum = nothing();
    for (place h = 0; h < height; h++) {
        const place row = block_of(p, 0, y, h);
        if (row < 0) continue;
        for (place w = 0; w < width; w++) {
            const place column = block_of(p, 1, x, w);
            if (column < 0) continue;
            const stored v = columns[(h * width + w) * blocks + row * (place)p.blocks[1] + column];
            sum = plus(sum, TT_CONVERT(TT_D0, TT_D1, v));
        }
    }
    ((stored *)p.image)[i] = TT_CONVERT(TT_D1, TT_D0, sum);
}
#else
static TT_DEVICE void work(const TT_ARGS &p, int64_t i) {
    place plane = (place)i;
    const place column = last_of(plane, p.blocks[1], p.by_blocks[1]), row = last_of(plane, p.blocks[0], p.by_blocks[0]);
    const place w = last_of(plane, p.taps[1], p.by_taps[1]), h = last_of(plane, p.taps[0], p.by_taps[0]);
    const place y = row * (place)p.stride[0] + h * (place)p.dilation[0] - (place)p.padding[0];
    const place x = column * (place)p.stride[1] + w * (place)p.dilation[1] - (place)p.padding[1];
    const bool inside = y >= 0 && y < (place)p.size[0] && x >= 0 && x < (place)p.size[1];
    const stored *image = (const stored *)p.image;
    ((stored *)p.columns)[i] = inside ? image[(plane * p.size[0] + y) * p.size[1] + x] : stored();
}
#endif

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (i < p.numel) work(p, i);
}
