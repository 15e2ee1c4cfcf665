/* The CPU's table: Note [Backends] in backend/backend.h. */
#include "cpu/cpu.h"

#define ENTRY(entry) .entry = tt_cpu_##entry,

__attribute__((constructor)) static void serve(void) {
    /* clang-format off */
    static tt_backend cpu = {
        TT_CPU_ENTRIES(ENTRY)
        .name = "cpu",
        .on_host = true,
        .longest_row = INT64_MAX,
    };
    /* clang-format on */
    tt_register_backend(0, &cpu);
}
