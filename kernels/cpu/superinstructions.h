/* Superinstructions of cheap operators, for the interpreter of fused mode.
 *
 * Note [Superinstructions]
 * A loop over a block for each operator is bound by its loads and stores as soon as the operator is cheap. So the
 * interpreter does not run consecutive cheap operators on float32 one by one: they are a superinstruction, a list of
 * steps for a machine with two registers, A and B, of four vectors each (eight with AVX-512). A step is a function that
 * works on them and calls the next step's, always as the last thing it does: that is a jump, with A and B left in the
 * CPU's registers. Every operator's result goes to A; B holds a value for later. Other operands come from their slots
 * in memory, a number as one element. A value goes to memory if something after the superinstruction wants it, or if it
 * is wanted again and B is taken. Steps work on whole chunks of elements. The last chunk of a block begins where it
 * ends with the block, so that some elements are done twice; but if a step writes what another reads, elements that are
 * left over are run operator by operator. So superinstructions change nothing about the instructions, and compiled
 * kernels know nothing of them. A bool in A or B is a mask: lanes of 32 bits, all ones or all zeros. It need not be
 * made where a choice follows a comparison with a number: the two are one step.
 * superinstructions.c makes superinstructions from a kernel's instructions, simd/superinstructions.c has the steps. */
#pragma once
#include "backend/kernel.h"

/* Elements that a superinstruction leaves over are worked on this many at a time: all of them, where superinstructions
 * are built. */
#define TT_MOST_LEFT 128

/* The operators that have steps, all on float32, by number of operands. */
#define TT_CHAIN_1(X) X(neg) X(abs) X(sign) X(square) X(relu) X(positive) X(reciprocal) X(sqrt) X(rsqrt)
#define TT_CHAIN_2(X)                                                                                                  \
    X(add)                                                                                                             \
    X(sub) X(mul) X(div) X(maximum) X(minimum) X(fmax) X(fmin) X(relu_backward) X(sigmoid_backward) X(tanh_backward)
#define TT_CHAIN_2_BOOL(X) X(eq) X(ne) X(lt) X(le) X(gt) X(ge)
#define TT_CHAIN_CHOICE(X) X(gt) X(ge) X(lt) X(le) /* with a number, for the `where` that follows: one step, `choose` */
#define TT_CHAIN_3(X) X(clamp) X(lerp) X(addcmul) X(addcdiv) /* and where, whose first operand is a bool */

/* An operator's step has a form: where its operands stand, in A, in B, in memory (M: s->slot, s->more, s->third), or
 * as the first element of a slot (C). And an ending: the result stays in A, is also kept in B, or also stored (at
 * s->to). */
enum { TT_KEPT = 1, TT_STORED, TT_ENDINGS };
enum { TT_IN_A, TT_IN_B, TT_IN_M, TT_IN_C, TT_NUM_PLACES };
#define TT_FORM_1(x) TT_FORM_##x = TT_IN_##x * TT_ENDINGS
#define TT_FORM_2(x, y) TT_FORM_##x##y = (TT_NUM_PLACES * TT_IN_##x + TT_IN_##y) * TT_ENDINGS
#define TT_PLACES_3(x, y, z) ((TT_NUM_PLACES * (TT_NUM_PLACES * TT_IN_##x + TT_IN_##y) + TT_IN_##z) * TT_ENDINGS)
#define TT_FORM_3(x, y, z) TT_FORM_##x##y##z = TT_PLACES_3(x, y, z)
enum {
    TT_FORM_1(A),
    TT_FORM_1(B),
    TT_FORM_1(M),
    TT_FORM_2(A, A),
    TT_FORM_2(A, B),
    TT_FORM_2(A, M),
    TT_FORM_2(A, C),
    TT_FORM_2(B, A),
    TT_FORM_2(B, B),
    TT_FORM_2(B, M),
    TT_FORM_2(B, C),
    TT_FORM_2(M, A),
    TT_FORM_2(M, B),
    TT_FORM_2(M, M),
    TT_FORM_2(M, C),
    TT_FORM_2(C, A),
    TT_FORM_2(C, B),
    TT_FORM_2(C, M),
    TT_FORM_2(C, C),
    TT_FORM_3(A, A, A),
    TT_FORM_3(A, A, B),
    TT_FORM_3(A, A, M),
    TT_FORM_3(A, B, A),
    TT_FORM_3(A, B, B),
    TT_FORM_3(A, B, M),
    TT_FORM_3(A, M, A),
    TT_FORM_3(A, M, B),
    TT_FORM_3(A, M, M),
    TT_FORM_3(A, C, C),
    TT_FORM_3(B, A, A),
    TT_FORM_3(B, A, B),
    TT_FORM_3(B, A, M),
    TT_FORM_3(B, B, A),
    TT_FORM_3(B, M, A),
    TT_FORM_3(M, A, A),
    TT_FORM_3(M, A, B),
    TT_FORM_3(M, A, M),
    TT_FORM_3(M, B, A),
    TT_FORM_3(M, M, A),
    TT_FORMS_1 = 4 * TT_ENDINGS,
    TT_FORMS_2 = 16 * TT_ENDINGS,
    TT_FORMS_3 = 64 * TT_ENDINGS,
    TT_FORMS_CHOICE = 32 * TT_ENDINGS, /* what is compared is in A or B */
};

#define TT_CODES_1(op) TT_STEP_##op, TT_STEP_END_##op = TT_STEP_##op + TT_FORMS_1 - 1,
#define TT_CODES_2(op) TT_STEP_##op, TT_STEP_END_##op = TT_STEP_##op + TT_FORMS_2 - 1,
#define TT_CODES_3(op) TT_STEP_##op, TT_STEP_END_##op = TT_STEP_##op + TT_FORMS_3 - 1,
#define TT_CODES_CHOICE(op) TT_STEP_choose_##op, TT_STEP_END_choose_##op = TT_STEP_choose_##op + TT_FORMS_CHOICE - 1,
enum {
    TT_STEP_END, /* s->slot: the steps before it */
    TT_STEP_LOAD,
    TT_STEP_LOAD_BOOL,
    TT_STEP_LOAD_NUMBER, /* to A */
    TT_STEP_STORE,
    TT_STEP_STORE_BOOL,
    TT_STEP_STORE_KEPT,
    TT_STEP_STORE_KEPT_BOOL, /* from A, from B */
    TT_STEP_KEEP,
    TT_STEP_RECALL, /* A to B, B to A */
    TT_STEP_BOOL_TO_FLOAT, /* in A */
    TT_CHAIN_1(TT_CODES_1) TT_CHAIN_2(TT_CODES_2) TT_CHAIN_2_BOOL(TT_CODES_2) TT_CHAIN_3(TT_CODES_3) TT_CODES_3(where)
        TT_CHAIN_CHOICE(TT_CODES_CHOICE) TT_NUM_STEPS
};

/* superinstructions.c, for the planner: instructions that one loop does in pairs brought together; bools made late;
 * superinstructions. */
void tt_pair_up(tt_kernel *k);
void tt_delay_bools(tt_kernel *k);
bool tt_make_superinstructions(tt_kernel *k); /* false: out of memory */
