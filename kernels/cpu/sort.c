/* Sorting and selection along one dimension: rows as keys with indices, sorted, and gathered by them. */
#include "cpu/cpu.h"
#include "cpu/sort.h"
#include <string.h>

#define GRAIN 4096
#define LONG (1 << 16) /* rows from here on are shared out, not the rows among threads */

typedef struct {
    const tt_sorting *s;
    int bits; /* of a key */
    bool failed;
} job;

#define T tt_packed
#define OF(name) name##_packed
#define IS_NAN(e) ((uint32_t)((e) >> 32) == 0xffffffffu)
#define SAME(a, b) ((a) >> 32 == (b) >> 32)
#define INDEX(e) ((int64_t)((e) & 0xffffffffu))
#include "cpu/sort_row.h"
#define T tt_keyed
#define OF(name) name##_keyed
#define IS_NAN(e) ((e).key == ~(uint64_t)0)
#define SAME(a, b) ((a).key == (b).key)
#define INDEX(e) ((int64_t)(e).index)
#include "cpu/sort_row.h"

#define PUT(T)                                                                                                         \
    for (int64_t i = 0; i < j->s->out_n; i++) {                                                                        \
        T value;                                                                                                       \
        memcpy(&value, row + chosen[i] * (int64_t)sizeof value, sizeof value);                                         \
        memcpy(out + i * j->s->out_step * (int64_t)sizeof value, &value, sizeof value);                                \
    }

static void run_rows(void *context, int64_t begin, int64_t end) {
    job *j = context;
    int size = tt_itemsizes[j->s->a->dtype];
    bool narrow = tt_key_is_narrow(j->s->a->dtype), flat = j->s->step == size;
    int64_t keys = j->s->n * (narrow ? 8 : 16), chosen_bytes = j->s->out_n * 8;
    char *room = tt_scratch(2 * keys + chosen_bytes + (flat ? 0 : j->s->n * 8));
    if (!room) {
        __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
        return;
    }
    int64_t *chosen = (int64_t *)(room + 2 * keys);
    char *gathered = room + 2 * keys + chosen_bytes;
    for (int64_t r = begin; r < end; r++) {
        const char *row = j->s->a->data + tt_dims_offset(&j->s->rows, r);
        int64_t at = tt_dims_offset(&j->s->out_rows, r);
        if (!flat) {
            tt_move(gathered, size, row, j->s->step, j->s->n, size);
            row = gathered;
        }
        if (narrow) {
            tt_make_packed((tt_packed *)room, row, j->s->a->dtype, j->s->n, j->s->descending);
            choose_packed(j, (tt_packed *)room, (tt_packed *)(room + keys), chosen);
        } else {
            tt_make_keyed((tt_keyed *)room, row, j->s->a->dtype, j->s->n, j->s->descending);
            job row_job = *j;
            if (j->s->what == TT_SORT && j->s->a->dtype == TT_I64)
                row_job.bits = tt_compact_keys((tt_keyed *)room, j->s->n);
            choose_keyed(&row_job, (tt_keyed *)room, (tt_keyed *)(room + keys), chosen);
        }
        char *out = j->s->values->data + at * size;
        switch (size) {
        case 1: PUT(uint8_t) break;
        case 2: PUT(uint16_t) break;
        case 4: PUT(uint32_t) break;
        default: PUT(uint64_t) break;
        }
        for (int64_t i = 0; i < j->s->out_n; i++) j->s->indices[at + i * j->s->out_step] = chosen[i];
    }
    tt_scratch_free(room);
}

bool tt_cpu_sort(const char *op, tt_sorting *s) {
    int dtype = s->a->dtype;
    job j = {.s = s,
             .bits = tt_itemsizes[dtype] == 1             ? 8
                     : dtype == TT_I16 || dtype == TT_U16 ? 16
                     : tt_key_is_narrow(dtype)            ? 32
                                                          : 64};
    int64_t grain = s->n >= LONG ? s->num_rows : GRAIN / s->n;
    tt_parallel(s->num_rows, grain < 1 ? 1 : grain, run_rows, &j);
    if (j.failed)
        tt_fail(TT_OUT_OF_MEMORY, "%s: out of memory for the keys of rows of %lld elements", op, (long long)s->n);
    return !j.failed;
}
