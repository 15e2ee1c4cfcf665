/* Results of logcumsumexp from the sums that give a chunk's total: one logarithm for each, and no exponential. */
#pragma once

/* most + log(x) as tt_log_wide has the logarithm, of 2^-40 and more, but with fused multiplications. */
static TT_DEVICE double quick_log(double most, double x) {
    const tt_u64 bits = tt_bits_f64(x);
    const tt_u32 high = (tt_u32)(bits >> 32) - 0x3fe6a09eu + (64u << 20);
    const double k = tt_double_bits(tt_bits_f64(0x1p52) + (high >> 20)) - (0x1p52 + 64.0);
    const double m = tt_double_bits(bits + ((tt_u64)((64u << 20) - (high & 0xfff00000u)) << 32)), f = m - 1.0,
                 d = m + 1.0;
    double r = tt_estimated_inverse_f64(d), e = tt_fma_f64(-d, r, 1.0), s, z, q;
    r = tt_fma_f64(r, tt_fma_f64(e, e, e), r);
    s = f * r;
    z = s * s;
    q = 0.14796101694643823;
    q = tt_fma_f64(q, z, 0.15314035929646477);
    q = tt_fma_f64(q, z, 0.18183564876711081);
    q = tt_fma_f64(q, z, 0.22222198562952702);
    q = tt_fma_f64(q, z, 0.28571428742484556);
    q = tt_fma_f64(q, z, 0.39999999999414249);
    q = tt_fma_f64(q, z, 0.66666666666667340);
    return tt_fma_f64(k, TT_LN2_F64, tt_fma_f64(s, tt_fma_f64(q, z, 2.0), most));
}

/* Puts results in the places of the sums. Each y has an error below 2^-46: where no rounding boundary is so near, the
 * float that y rounds to is the one that `growing` gives. False: some are nearer. */
template <bool whole> static TT_DEVICE bool quick_results(cell *own, int many, acc_type top, acc_type before) {
    const bool grows = top > before;
    const double share = log_share(before, top), most = tt_log_top(before, top);
    const double outer = grows ? share : 1.0, inner = grows ? 1.0 : share;
    bool good = outer + inner * own[0].sum >= 0x1p-40;
#pragma unroll(whole ? TT_FEW : 1)
    for (int j = 0; j < TT_CHUNK; j++)
        if (whole || j < many) {
            const double y = quick_log(most, tt_fma_f64(inner, own[j].sum, outer));
            const tt_u32 near = 1u << 12, beyond = ((tt_u32)tt_bits_f64(y) + 0x10000000u + near) & 0x1fffffffu;
            good &= (beyond >= 2 * near) & (tt_abs_f32((float)y) >= 0x1p-5f);
            own[j].x = result_of(accumulated(y, 0));
        }
    return good;
}
