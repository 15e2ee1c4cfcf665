/* Chains of cheap operators, for the interpreter of fused mode.
 *
 * Note [Chains]
 * A loop over a block for each operator is bound by its loads and stores as soon as the operator is cheap. So the
 * interpreter does not run consecutive cheap operators on float32 one by one: they are a chain, a list of steps for a
 * machine with two registers, A and B, of four vectors each. A step is a function that works on them and calls the next
 * step's, always as the last thing it does: that is a jump, with A and B left in the CPU's registers. Every operator's
 * result goes to A; B holds a value for later. Other operands come from their slots in memory, a number as one element.
 * A value goes to memory if something after the chain wants it, or if it is wanted again and B is taken.
 * Steps work on whole chunks of elements (four vectors); what is left over at the end of a block is run operator by
 * operator. So chains change nothing about the instructions, and compiled kernels know nothing of them.
 * A bool in A or B is a mask: lanes of 32 bits, all ones or all zeros.
 * fuse_chain.c makes chains from a kernel's instructions, simd/chains.c has the steps. */
#pragma once
#include "fuse.h"

/* The operators that have steps, all on float32, by number of operands. */
#define TT_CHAIN_1(X) X(neg) X(abs) X(sign) X(square) X(relu) X(positive) X(reciprocal)
#define TT_CHAIN_2(X)                                                                            \
    X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(fmax) X(fmin) X(copysign)                \
    X(relu_backward) X(sigmoid_backward) X(tanh_backward) X(eq) X(ne) X(lt) X(le) X(gt) X(ge)
#define TT_CHAIN_3(X) X(clamp) X(lerp) X(addcmul) X(addcdiv) /* and where, whose first operand is a bool */

/* Where a step's operands stand: in A, in B, in memory (M), or a number (C, the first element of a slot). */
enum { TT_FORM_A };
enum { TT_FORM_AM, TT_FORM_MA, TT_FORM_AC, TT_FORM_CA, TT_FORM_AA, TT_FORM_AB, TT_FORM_BA, TT_FORMS_2 };
enum { /* of three operands: 9 first + 3 second + third, A: 0, B: 1, M: 2 */
    TT_FORM_AAA, TT_FORM_AAB, TT_FORM_AAM, TT_FORM_ABA, TT_FORM_ABB, TT_FORM_ABM, TT_FORM_AMA, TT_FORM_AMB, TT_FORM_AMM,
    TT_FORM_BAA, TT_FORM_BAB, TT_FORM_BAM, TT_FORM_BBA, TT_FORM_BMA = TT_FORM_BBA + 3,
    TT_FORM_MAA = 18, TT_FORM_MAB, TT_FORM_MAM, TT_FORM_MBA, TT_FORM_MMA = TT_FORM_MBA + 3, TT_FORM_ACC = 27, TT_FORMS_3 };

#define TT_CODE_1(op) TT_STEP_##op,
#define TT_CODES_2(op) TT_STEP_##op, TT_STEP_END_##op = TT_STEP_##op + TT_FORMS_2 - 1,
#define TT_CODES_3(op) TT_STEP_##op, TT_STEP_END_##op = TT_STEP_##op + TT_FORMS_3 - 1,
enum { TT_STEP_END, TT_STEP_LOAD, TT_STEP_LOAD_BOOL, TT_STEP_LOAD_NUMBER,                              /* to A */
       TT_STEP_STORE, TT_STEP_STORE_BOOL, TT_STEP_STORE_KEPT, TT_STEP_STORE_KEPT_BOOL,                 /* from A, from B */
       TT_STEP_KEEP, TT_STEP_RECALL,                                                                   /* A to B, B to A */
       TT_STEP_BOOL_TO_FLOAT,                                                                          /* in A */
       TT_CHAIN_1(TT_CODE_1) TT_CHAIN_2(TT_CODES_2) TT_CHAIN_3(TT_CODES_3) TT_CODES_3(where) TT_NUM_STEPS };
