/* What reductions and scans accumulate: a value, and with TT_INDEXED a place. A kernel defines that and `acc_type`. */
#pragma once
#include "cuda/device/prelude.cuh"

struct accumulator {
    acc_type value;
#if TT_INDEXED
    int64_t at;
#endif
};

static TT_DEVICE accumulator accumulated(acc_type value, int64_t at) {
    accumulator a;
    a.value = value;
#if TT_INDEXED
    a.at = at;
#endif
    return a;
}

/* The k-th of those in memory. */
static TT_DEVICE accumulator loaded(const char *values, const int64_t *places, int64_t k) {
    return accumulated(((const acc_type *)values)[k], TT_INDEXED ? places[k] : 0);
}

/* ... where another thread block may have stored it just now: past the processor's own cache. */
static TT_DEVICE accumulator loaded_anew(const char *values, const int64_t *places, int64_t k) {
    return accumulated(__ldcg((const acc_type *)values + k), TT_INDEXED ? __ldcg(places + k) : 0);
}

static TT_DEVICE void store(char *values, int64_t *places, int64_t k, const accumulator &a) {
    ((acc_type *)values)[k] = a.value;
#if TT_INDEXED
    places[k] = a.at;
#endif
}
