/* Chains of cheap operators, for the interpreter of fused mode.
 *
 * Note [Chains]
 * A loop over a block for each operator is bound by its loads and stores as soon as the operator is cheap. So the
 * interpreter does not run consecutive cheap operators on float32 one by one: they are a chain, a list of steps for a
 * machine with one accumulator, which is eight vector registers wide. A step is a function that works on the accumulator
 * and calls the next step's, always as the last thing it does: a jump, with the accumulator left in its registers. An
 * operand that is not in the accumulator comes from its slot; a number is read once for all eight. A value goes to memory
 * only if the very next step is not the only one that wants it.
 * Steps work on whole chunks of elements (eight vectors); what is left over at the end of a block is run operator by
 * operator, as the instructions say: chains change nothing about them, and compiled kernels know nothing of chains.
 * A bool in the accumulator is a mask: lanes of 32 bits, all ones or all zeros.
 * simd/chains.c has the steps, fuse_chain.c makes chains from a kernel's instructions. */
#pragma once
#include "fuse.h"

/* The operators that have steps, all on float32, by number of operands. */
#define TT_CHAIN_1(X) X(neg) X(abs) X(sign) X(square) X(relu) X(positive) X(reciprocal)
#define TT_CHAIN_2(X)                                                                            \
    X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(fmax) X(fmin) X(copysign)                \
    X(relu_backward) X(sigmoid_backward) X(tanh_backward) X(eq) X(ne) X(lt) X(le) X(gt) X(ge)
#define TT_CHAIN_3(X) X(clamp) X(lerp) X(addcmul) X(addcdiv) /* and where, whose first operand is a bool */

/* Where a step's operands stand: A in the accumulator, M in memory, C a number (the first element of a slot). */
enum { TT_FORM_A = 0,
       TT_FORM_AM = 0, TT_FORM_MA, TT_FORM_AC, TT_FORM_CA, TT_FORM_AA,
       TT_FORM_AMM = 0, TT_FORM_MAM, TT_FORM_MMA, TT_FORM_ACC,
       TT_FORMS = 5 };

enum { TT_STEP_END, TT_STEP_LOAD, TT_STEP_LOAD_NUMBER, TT_STEP_LOAD_BOOL, TT_STEP_STORE, TT_STEP_STORE_BOOL,
       TT_STEP_BOOL_TO_FLOAT, /* of the accumulator */
       TT_STEP_OP };          /* from here on: TT_STEP_OP + operator * TT_FORMS + form */
