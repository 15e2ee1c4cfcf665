/* The second array of a call that makes two. */
#pragma once
#include "core/tt.h"

extern __thread tt_array *tt_second_array; /* what tt_second gives */
