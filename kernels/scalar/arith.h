/* Scalar functions that need no approximation: arithmetic, comparisons, logic, selection; every dtype.
 * b8 is a bool: a byte that is 0 or 1. Integer overflow wraps, as in NumPy and PyTorch. */
#pragma once
#include "dtypes.h"
#include "math_f32.h"
#include "math_f64.h"

#define T uint8_t
#define U uint8_t
#define SIGNED 0
#define OF(name) name##_u8
#include "arith_integer.h"
#define T int8_t
#define U uint8_t
#define SIGNED 1
#define OF(name) name##_i8
#include "arith_integer.h"
#define T int16_t
#define U uint16_t
#define SIGNED 1
#define OF(name) name##_i16
#include "arith_integer.h"
#define T int32_t
#define U uint32_t
#define SIGNED 1
#define OF(name) name##_i32
#include "arith_integer.h"
#define T int64_t
#define U uint64_t
#define SIGNED 1
#define OF(name) name##_i64
#include "arith_integer.h"

#define T uint16_t
#define U uint16_t
#define SIGNED 0
#define OF(name) name##_u16
#include "arith_integer.h"
#define T uint32_t
#define U uint32_t
#define SIGNED 0
#define OF(name) name##_u32
#include "arith_integer.h"
#define T uint64_t
#define U uint64_t
#define SIGNED 0
#define OF(name) name##_u64
#include "arith_integer.h"

#define T uint8_t
#define OF(name) name##_b8
#include "arith_integer.h"
TT_FN uint8_t tt_add_b8(uint8_t a, uint8_t b) { return a | b; }
TT_FN uint8_t tt_mul_b8(uint8_t a, uint8_t b) { return a & b; }
TT_FN uint8_t tt_sign_b8(uint8_t a) { return a; }
TT_FN uint8_t tt_sgn_b8(uint8_t a) { return a; }
TT_FN uint8_t tt_signbit_b8(uint8_t a) {
    (void)a;
    return 0;
}
TT_FN uint8_t tt_bitwise_not_b8(uint8_t a) { return !a; }

#define T float
#define OF(name) name##_f32
#define BUILTIN(name) name##f
#include "arith_floating.h"
#define T double
#define OF(name) name##_f64
#define BUILTIN(name) name
#include "arith_floating.h"
