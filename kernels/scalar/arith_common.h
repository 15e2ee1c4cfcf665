/* Scalar functions that read alike for numbers of every kind: part of arith_integer.h and arith_floating.h. */

TT_FN uint8_t OF(tt_eq)(T a, T b) { return (uint8_t)(a == b); }
TT_FN uint8_t OF(tt_ne)(T a, T b) { return (uint8_t)(a != b); }
TT_FN uint8_t OF(tt_lt)(T a, T b) { return (uint8_t)(a < b); }
TT_FN uint8_t OF(tt_le)(T a, T b) { return (uint8_t)(a <= b); }
TT_FN uint8_t OF(tt_gt)(T a, T b) { return (uint8_t)(a > b); }
TT_FN uint8_t OF(tt_ge)(T a, T b) { return (uint8_t)(a >= b); }
TT_FN uint8_t OF(tt_logical_not)(T a) { return (uint8_t)(a == 0); }
TT_FN uint8_t OF(tt_logical_and)(T a, T b) { return (uint8_t)((a != 0) & (b != 0)); }
TT_FN uint8_t OF(tt_logical_or)(T a, T b) { return (uint8_t)((a != 0) | (b != 0)); }
TT_FN uint8_t OF(tt_logical_xor)(T a, T b) { return (uint8_t)((a != 0) != (b != 0)); }
TT_FN T OF(tt_where)(uint8_t c, T a, T b) { return c ? a : b; }
TT_FN T OF(tt_heaviside)(T a, T b) { return a == 0 ? b : (T)(a > 0); }
