/* Note [Forks]
 * A forked child has one thread, and every lock as it was. A lock that another thread holds at that moment would stay
 * held for ever in the child, over data that are half changed. So the forking thread takes all locks before, and both
 * processes let go of them after: a fork waits for programs that run under a trace's lock, and the child finds what
 * the other threads have recorded as it was after their last operator, and can run it.
 *
 * The order is the one in which a thread takes them: who runs a trace holds its lock, and looks for a plan, asks
 * for compiled kernels, allocates, and leaves storages to jobs meanwhile. Nobody waits for Python's interpreter with
 * one of them held, so that the forking thread may hold that. */
#include "core/fork.h"

#include <stddef.h>

static tt_on_fork all[TT_FORK_ORDER];

void tt_fork_register(int order, tt_on_fork function) { all[order] = function; }

static void before(void) {
    for (int k = 0; k < TT_FORK_ORDER; k++)
        if (all[k]) all[k](TT_FORK_BEFORE);
}
static void in_parent(void) {
    for (int k = TT_FORK_ORDER - 1; k >= 0; k--)
        if (all[k]) all[k](TT_FORK_PARENT);
}
static void in_child(void) {
    for (int k = TT_FORK_ORDER - 1; k >= 0; k--)
        if (all[k]) all[k](TT_FORK_CHILD);
}

__attribute__((constructor)) static void survive_fork(void) { pthread_atfork(before, in_parent, in_child); }
