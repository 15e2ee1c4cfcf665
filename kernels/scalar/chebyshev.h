/* Sums of Chebyshev polynomials. */
#pragma once
#include "bits.h"
#include "math_f64.h"

/* The sum of c[k] T_k(t), |t| <= 1 (Clenshaw, "A note on the summation of Chebyshev series", 1955). */
TT_FN double tt_chebyshev_sum(double t, const double *c, int n) {
    double y = 0, next = 0, after;
    for (int k = n - 1; k > 0; k--) {
        after = next;
        next = y;
        y = c[k] + (2 * t * next - after);
    }
    return c[0] + (t * y - next);
}
#define TT_CHEBYSHEV_SUM(c, t) tt_chebyshev_sum(t, c, (int)(sizeof c / sizeof *c))
