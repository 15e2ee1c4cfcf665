/* What moves as a whole, of 1 to 16 bytes. */
#pragma once
#include "cuda/device/prelude.cuh"

template <int bytes> struct tt_unit_of {
    typedef struct alignas(16) {
        uint64_t at[2];
    } type;
};
template <> struct tt_unit_of<1> {
    typedef uint8_t type;
};
template <> struct tt_unit_of<2> {
    typedef uint16_t type;
};
template <> struct tt_unit_of<4> {
    typedef uint32_t type;
};
template <> struct tt_unit_of<8> {
    typedef uint64_t type;
};
