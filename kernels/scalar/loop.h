/* What a loop over elements needs besides the scalar functions: shared by the kernels' loops and by generated code. */
#pragma once

/* A loop's iterations do not depend on each other even where an output is an input (then they are the very same
 * element): without the pragma compilers test for overlap at run time. */
#ifdef __clang__
#define TT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TT_INDEPENDENT _Pragma("GCC ivdep")
#endif
