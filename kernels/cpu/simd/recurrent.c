/* The gates of recurrent layers. */
#include "cpu/recurrent.h"
#include "cpu/simd.h"
#include "scalar/arith.h"

#define T float
#define OF(name) name##_f32
#include "cpu/simd/recurrent_loops.h"
#define T double
#define OF(name) name##_f64
#include "cpu/simd/recurrent_loops.h"

#define TABLE(T)                                                                                                       \
    {                                                                                                                  \
        {rnn_tanh_##T, rnn_relu_##T, lstm_##T, gru_##T}, {                                                             \
            rnn_tanh_back_##T, rnn_relu_back_##T, lstm_back_##T, gru_back_##T                                          \
        }                                                                                                              \
    }
const tt_recurrent_table TT_LOCAL(tt_recurrent_rows) = {TABLE(f32), TABLE(f64)};
