/* What conv_runs.c does with numbers of float32: they are split into parts on the way from the source, and sums become
 * numbers on the way to the target: Note [Products in parts] in float_parts.c. */
#include "cpu/conv_runs.h"
#include "cpu/float_tiles.h"

#ifdef TT_AMX

/* A place's WIDTH channels, as lines of a tile of each part. */
INLINE void split_place(__m512 low, __m512 high, uint16_t *to) { split(low, high, to, WIDTH); }

INLINE void split_last(const float *from, int64_t channels, uint16_t *to) {
    __mmask16 low = (__mmask16)lowest(channels), high = (__mmask16)lowest(channels - LINES);
    split_place(_mm512_maskz_loadu_ps(low, from), _mm512_maskz_loadu_ps(high, high ? from + LINES : from), to);
}

/* The same of 16 places, which lie next to each other. */
INLINE void split_places(const float *from, int64_t step, int64_t places, int64_t channels, uint16_t *to,
                         int64_t place) {
    __mmask16 there = (__mmask16)lowest(places);
    __m512i x[2][LINES];
    for (int h = 0; h < 2; h++) {
        for (int64_t i = 0; i < LINES; i++) {
            bool some = h * LINES + i < channels;
            x[h][i] = _mm512_maskz_loadu_epi32(some ? there : 0, some ? from + (h * LINES + i) * step : from);
        }
        transpose(x[h]);
    }
    for (int64_t i = 0; i < places; i++)
        split_place(_mm512_castsi512_ps(x[0][i]), _mm512_castsi512_ps(x[1][i]), to + i * place);
}

TARGET void tt_parts_split(const float *from, int64_t step, int64_t channel, int64_t places, int64_t channels,
                           uint16_t *to) {
    int64_t place = pieces(channels, WIDTH) * PARTS * WIDTH;
    for (int64_t i = 0; channel == 1 && i < places; i++, from += step, to += place)
        for (int64_t l = 0; l < channels; l += WIDTH) split_last(from + l, channels - l, to + l * PARTS);
    for (int64_t l = 0; channel != 1 && l < channels; l += WIDTH)
        for (int64_t i = 0; i < places; i += LINES)
            split_places(from + l * channel + i, channel, least(LINES, places - i), channels - l,
                         to + i * place + l * PARTS, place);
}

TARGET void tt_parts_pack(const float *square, uint16_t *to) {
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < LINES; i++) {
            const float *from = square + i * WIDTH + h * LINES;
            split(_mm512_loadu_ps(from), _mm512_loadu_ps(from + LINES * WIDTH), to + h * TILE + i * WIDTH, PART);
        }
}

TARGET void tt_parts_multiply(const uint16_t *const rows[2], int64_t step, const int64_t *offsets,
                              const uint16_t *right, bool two, int64_t tiles, float *sums) {
    multiply_parts_of(rows[1], two, rows, step, WIDTH, offsets, right, tiles, sums, false);
}

TARGET void tt_parts_add(float *sums, const float *fresh) {
    for (int i = 0; i < 4 * SUMS; i += LINES)
        _mm512_store_ps(sums + i, _mm512_add_ps(_mm512_load_ps(sums + i), _mm512_load_ps(fresh + i)));
}

/* Of 16 places and 16 channels. */
INLINE bool store_tile(const float *sums, int64_t rows, int64_t cols, const float *bias, float *to, int64_t step,
                       int64_t channel) {
    __mmask16 channels = (__mmask16)lowest(cols), places = (__mmask16)lowest(rows), other = 0;
    __m512 more = bias ? _mm512_maskz_loadu_ps(channels, bias) : _mm512_setzero_ps();
    __m512i x[LINES];
    for (int64_t i = 0; i < rows; i++) {
        __m512 sum = _mm512_mul_ps(_mm512_load_ps(sums + i * LINES), _mm512_set1_ps(UNSCALE));
        other |= _mm512_mask_fpclass_ps_mask(channels, sum, NOT_FINITE);
        if (bias) sum = _mm512_add_ps(sum, more);
        if (channel == 1) _mm512_mask_storeu_ps(to + i * step, channels, sum);
        else x[i] = _mm512_castps_si512(sum);
    }
    if (channel == 1) return !other;
    for (int64_t i = rows; i < LINES; i++) x[i] = _mm512_setzero_si512();
    transpose(x);
    for (int64_t k = 0; k < cols; k++, to += channel) {
        if (step == 1) _mm512_mask_storeu_epi32(to, places, x[k]);
        else {
            float line[LINES];
            _mm512_storeu_si512(line, x[k]);
            for (int64_t i = 0; i < rows; i++) to[i * step] = line[i];
        }
    }
    return !other;
}

TARGET bool tt_parts_store(const float *sums, int64_t rows, int64_t cols, const float *bias, float *to, int64_t step,
                           int64_t channel) {
    bool finite = true;
    for (int64_t j = 0; j < cols; j += LINES)
        finite &= store_tile(sums + j * LINES, rows, least(LINES, cols - j), bias ? bias + j : NULL, to + j * channel,
                             step, channel);
    return finite;
}

#else

void tt_parts_split(const float *from, int64_t step, int64_t channel, int64_t places, int64_t channels, uint16_t *to) {
    (void)from, (void)step, (void)channel, (void)places, (void)channels, (void)to;
}

void tt_parts_pack(const float *square, uint16_t *to) { (void)square, (void)to; }

void tt_parts_multiply(const uint16_t *const rows[2], int64_t step, const int64_t *offsets, const uint16_t *right,
                       bool two, int64_t tiles, float *sums) {
    (void)rows, (void)step, (void)offsets, (void)right, (void)two, (void)tiles, (void)sums;
}

void tt_parts_add(float *sums, const float *fresh) { (void)sums, (void)fresh; }

bool tt_parts_store(const float *sums, int64_t rows, int64_t cols, const float *bias, float *to, int64_t step,
                    int64_t channel) {
    (void)sums, (void)rows, (void)cols, (void)bias, (void)to, (void)step, (void)channel;
    return true;
}

#endif
