/* The registers that hold B in superinstructions where there are 32: Note [Superinstructions] in superinstructions.h.
 * Calls may clobber them, of which gcc warns whatever one does, but in a system's header; steps call nothing. */
#pragma once
#pragma GCC system_header
register vec b0 __asm__("xmm16"), b1 __asm__("xmm17"), b2 __asm__("xmm18"), b3 __asm__("xmm19"), b4 __asm__("xmm20"),
    b5 __asm__("xmm21"), b6 __asm__("xmm22"), b7 __asm__("xmm23");
