/* Fused mode's memory of traces in which there was nothing to fuse: Note [Nothing to fuse] in fuse.h. */
#include "fuse/fuse.h"
#include <string.h>

static tt_successor *successor_of(tt_trace *t) {
    return &t->successors[(uint64_t)t->history * 0x9e3779b97f4a7c15u >> 56];
}

void tt_look_ahead(tt_trace *t, int64_t program) {
    t->history = program ? (int64_t)((uint64_t)t->history << 16 | (program & 0xffff)) : 0;
    tt_successor *s = successor_of(t);
    bool known = s->after == t->history && s->num_nodes && s->seen >= TT_SEEN_ALONE;
    t->expected = known && ++s->used % TT_LOOK_AGAIN ? s->num_nodes : 0;
    t->left = 0;
}

void tt_note_successor(tt_trace *t, const tt_program *p) {
    tt_successor *s = successor_of(t);
    if (s->after != t->history || s->program != p->number)
        *s = (tt_successor){.after = t->history, .program = p->number};
    if (p->num_kernels == p->num_nodes && p->num_nodes <= TT_FEW_NODES && !p->device) {
        s->num_nodes = p->num_nodes;
        memcpy(s->heads, t->heads, sizeof s->heads);
        s->seen += s->seen < TT_SEEN_ALONE;
    }
    tt_look_ahead(t, p->number);
}

bool tt_is_left(tt_trace *t, int64_t head) {
    if (t->left == t->expected) return false;
    const tt_successor *s = successor_of(t);
    if (s->heads[t->left] != (int32_t)head || t->step || t->recipe ||
        tt_fuse_setting(TT_FUSE_OBSERVE) & TT_OBSERVE_RUNS) {
        tt_expect_nothing(t);
        return false;
    }
    if (++t->left == t->expected) tt_look_ahead(t, s->program);
    return true;
}

void tt_expect_nothing(tt_trace *t) { t->left = t->expected = 0; }
