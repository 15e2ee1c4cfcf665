/* Arithmetic of a complex type T with parts of type R; complex.h includes this file for each dtype, with OF(name) the
 * function's name and REAL(name) that of the parts' dtype. */
TT_FN T OF(tt_parts)(R re, R im) {
    T z;
    z.re = re;
    z.im = im;
    return z;
}
TT_FN T OF(tt_add)(T a, T b) { return OF(tt_parts)(a.re + b.re, a.im + b.im); }
TT_FN T OF(tt_sub)(T a, T b) { return OF(tt_parts)(a.re - b.re, a.im - b.im); }
TT_FN T OF(tt_mul)(T a, T b) {
    return OF(tt_parts)(a.re * b.re + REAL(tt_opposite)(a.im * b.im), a.re * b.im + a.im * b.re);
}
TT_FN T OF(tt_neg)(T a) { return OF(tt_parts)(-a.re, -a.im); }
TT_FN T OF(tt_positive)(T a) { return a; }
TT_FN T OF(tt_conj_physical)(T a) { return OF(tt_parts)(a.re, -a.im); }
TT_FN T OF(tt_square)(T a) { return OF(tt_mul)(a, a); }
TT_FN T OF(tt_cube)(T a) { return OF(tt_mul)(OF(tt_mul)(a, a), a); }
TT_FN T OF(tt_where)(uint8_t c, T a, T b) { return OF(tt_parts)(c ? a.re : b.re, c ? a.im : b.im); }
TT_FN T OF(tt_addcmul)(T a, T b, T c) { return OF(tt_add)(a, OF(tt_mul)(b, c)); }
TT_FN T OF(tt_lerp)(T a, T b, T w) {
    T d = OF(tt_sub)(b, a);
    if (w.re * w.re + w.im * w.im < (R)0.25) return OF(tt_add)(a, OF(tt_mul)(w, d));
    return OF(tt_sub)(b, OF(tt_mul)(d, OF(tt_parts)((R)1 - w.re, -w.im)));
}
TT_FN uint8_t OF(tt_eq)(T a, T b) { return (uint8_t)((a.re == b.re) & (a.im == b.im)); }
TT_FN uint8_t OF(tt_ne)(T a, T b) { return (uint8_t)((a.re != b.re) | (a.im != b.im)); }
TT_FN uint8_t OF(tt_isnan)(T a) { return (uint8_t)((a.re != a.re) | (a.im != a.im)); }
TT_FN uint8_t OF(tt_isinf)(T a) { return (uint8_t)(REAL(tt_isinf)(a.re) | REAL(tt_isinf)(a.im)); }
TT_FN uint8_t OF(tt_isfinite)(T a) { return (uint8_t)(REAL(tt_isfinite)(a.re) & REAL(tt_isfinite)(a.im)); }
TT_FN uint8_t OF(tt_holds)(T a) { return (uint8_t)((a.re != 0) | (a.im != 0)); }
TT_FN uint8_t OF(tt_logical_not)(T a) { return (uint8_t)!OF(tt_holds)(a); }
TT_FN uint8_t OF(tt_logical_and)(T a, T b) { return (uint8_t)(OF(tt_holds)(a) & OF(tt_holds)(b)); }
TT_FN uint8_t OF(tt_logical_or)(T a, T b) { return (uint8_t)(OF(tt_holds)(a) | OF(tt_holds)(b)); }
TT_FN uint8_t OF(tt_logical_xor)(T a, T b) { return (uint8_t)(OF(tt_holds)(a) ^ OF(tt_holds)(b)); }
TT_FN T OF(tt_tanh_backward)(T g, T out) {
    T square = OF(tt_mul)(out, out);
    return OF(tt_mul)(g, OF(tt_parts)((R)1 - square.re, -square.im));
}
TT_FN T OF(tt_sigmoid_backward)(T g, T out) {
    return OF(tt_mul)(OF(tt_mul)(g, OF(tt_parts)((R)1 - out.re, -out.im)), out);
}

#undef T
#undef R
#undef OF
#undef REAL
