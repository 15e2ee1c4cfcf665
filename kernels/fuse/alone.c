/* Fused mode's memory of traces in which there was too little to fuse: Note [Too little to fuse] in fuse.h. */
#include "fuse/fuse.h"
#include <string.h>

#define SPREAD 0x9e3779b97f4a7c15u

static tt_successor *successor_of(tt_trace *t) { return &t->successors[(uint64_t)t->history * SPREAD >> 53]; }

void tt_look_ahead(tt_trace *t, int64_t program) {
    t->history = program ? (int64_t)(((uint64_t)t->history << 4) + (uint64_t)program * SPREAD) : 0;
    tt_successor *s = successor_of(t);
    bool known = s->after == t->history && s->num_nodes && s->seen >= TT_SEEN;
    t->expected = known && ++s->used % TT_LOOK_AGAIN ? s->num_nodes : 0;
    t->left = 0;
}

static bool is_little(const tt_program *p) {
    int64_t spared = p->eager_reads + p->eager_writes - p->reads - p->writes;
    return p->num_nodes <= TT_FEW_NODES && !p->device && spared < (int64_t)TT_WORTH * p->num_kernels;
}

void tt_note_successor(tt_trace *t, const tt_program *p) {
    tt_successor *s = successor_of(t);
    if (s->after == t->history && s->program != p->number && s->seen > TT_MISSED) s->seen -= TT_MISSED;
    else {
        if (s->after != t->history || s->program != p->number) {
            s->after = t->history;
            s->program = p->number;
            s->seen = s->used = 0;
            s->num_nodes = is_little(p) ? p->num_nodes : 0;
            memcpy(s->heads, t->heads, sizeof *s->heads * (size_t)s->num_nodes);
        }
        s->seen += s->seen < 2 * TT_SEEN;
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
