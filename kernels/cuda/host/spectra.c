/* Eigenvalues and singular values of stacks of matrices on a device. */
#include "cuda/host/solver.h"

static bool any_eigenvalues(job *j, bool vectors) {
    const tt_matrix *c = &j->s->first;
    bool is_real = !tt_is_complex(j->s->dtype);
    matrices a = operand_a(j), v = vectors ? result(j, 1, c->n, c->n) : (matrices){.data = NULL};
    if (vectors && is_real) v = room_for(j, c->n, c->n);
    tt_solver p = {.routine = TT_GEEV,
                   .options = vectors ? TT_VECTORS : 0,
                   .n = c->n,
                   .a = a.data,
                   .b = v.data,
                   .c = c->out[0],
                   .step_a = a.step,
                   .step_b = v.step,
                   .step_c = j->s->steps[0],
                   .lda = a.ld};
    if (!set_aside(j, a, TT_PART_ALL) || (vectors && !v.data) || !call(j, p) || !settle(j)) return false;
    if (!vectors || !is_real) return true;
    tt_stack_args packed = {.from = v.data,
                            .to = c->out[1],
                            .values = c->out[0],
                            .count = j->s->count,
                            .step_from = v.step,
                            .step_to = j->s->steps[1],
                            .step_values = j->s->steps[0],
                            .rows = c->n};
    return per_element(j, TT_STACK_EIGENVECTORS, (int64_t)c->n * c->n, &packed);
}

bool tt_cuda_eig(job *j) { return any_eigenvalues(j, true); }
bool tt_cuda_eigvals(job *j) { return any_eigenvalues(j, false); }

static bool eigenvalues(job *j, bool vectors) {
    const tt_matrix *c = &j->s->first;
    matrices a = operand_a(j);
    return set_aside(j, a, c->option ? TT_PART_UPPER : TT_PART_LOWER) &&
           call(j, (tt_solver){.routine = TT_SYEVD,
                               .options = (c->option ? TT_UPPER : 0) | (vectors ? TT_VECTORS : 0),
                               .n = c->n,
                               .a = a.data,
                               .c = c->out[0],
                               .step_a = a.step,
                               .step_c = j->s->steps[0],
                               .lda = a.ld}) &&
           settle(j);
}

bool tt_cuda_eigh(job *j) { return eigenvalues(j, true); }
bool tt_cuda_eigvalsh(job *j) { return eigenvalues(j, false); }
static matrices nth(matrices a, int64_t i) {
    a.data = (char *)a.data + i * a.step;
    return a;
}

/* Of one matrix, by gesvd, which wants no fewer rows than columns. u: NULL, or m x M; v: N x n */
static bool svd_by_qr(job *j, int64_t i, matrices a, matrices u, void *values, matrices v) {
    tt_stack one = *j->s;
    job k = {.s = &one, .spare = j->spare};
    bool vectors = u.data != NULL, wide = a.rows < a.cols, ok = true;
    one.count = 1;
    one.info += i;
    matrices from = a, left = u, right = v;
    if (wide) {
        from = room_for(&k, a.cols, a.rows);
        ok = copy(&k, from, a, TT_PART_ALL | TT_PART_ADJOINT);
        if (vectors) {
            left = room_for(&k, v.cols, v.rows);
            right = room_for(&k, u.cols, u.rows);
            ok = ok && left.data && right.data;
        }
    }
    ok = ok && call(&k, (tt_solver){.routine = TT_GESVD,
                                    .options = (vectors ? TT_VECTORS : 0) | (one.first.option & 1 ? TT_FULL : 0),
                                    .m = from.rows,
                                    .n = from.cols,
                                    .a = from.data,
                                    .b = left.data,
                                    .c = values,
                                    .d = right.data,
                                    .lda = from.ld});
    if (ok && wide && vectors)
        ok = copy(&k, v, left, TT_PART_ALL | TT_PART_ADJOINT) && copy(&k, u, right, TT_PART_ALL | TT_PART_ADJOINT);
    while (k.num_rooms) tt_free(k.rooms[--k.num_rooms]);
    return ok;
}

/* All, or what did not converge. */
static bool svd_again(job *j, bool all, matrices a, matrices u, char *values, int64_t step, matrices v) {
    int64_t nbytes = j->s->count * (int64_t)sizeof(int);
    int *infos = tt_scratch(nbytes);
    if (!infos) return tt_fail(TT_OUT_OF_MEMORY, "out of memory for the state of each matrix"), false;
    bool ok = all || tt_device_read(infos, j->s->info, nbytes);
    for (int64_t i = 0; ok && i < j->s->count; i++)
        if (all || infos[i] > 0)
            ok = svd_by_qr(j, i, nth(a, i), u.data ? nth(u, i) : u, values + i * step, v.data ? nth(v, i) : v);
    tt_scratch_free(infos);
    return ok;
}

static bool singular_values(job *j, char *values, int64_t step, matrices u, matrices v) {
    const tt_matrix *c = &j->s->first;
    bool vectors = u.data != NULL;
    matrices a = operand_a(j);
    if (!set_aside(j, a, TT_PART_ALL)) return false;
    if (c->option & 2) return svd_again(j, true, a, u, values, step, vectors ? v : u) && settle(j);
    matrices lost = room_for(j, c->m, c->n);
    matrices left = u, right = room_for(j, v.cols, v.rows);
    if (!vectors) left = room_for(j, c->m, c->k); /* which the library wants all the same */
    return left.data && right.data && copy(j, lost, a, TT_PART_ALL) &&
           call(j, (tt_solver){.routine = TT_GESVDJ,
                               .options = (vectors ? TT_VECTORS : 0) | (c->option & 1 ? TT_FULL : 0),
                               .m = c->m,
                               .n = c->n,
                               .a = lost.data,
                               .b = left.data,
                               .c = values,
                               .d = right.data,
                               .step_a = lost.step,
                               .step_b = left.step,
                               .step_c = step,
                               .step_d = right.step,
                               .lda = lost.ld}) &&
           (!vectors || copy(j, v, right, TT_PART_ALL | TT_PART_ADJOINT)) &&
           svd_again(j, false, a, u, values, step, vectors ? v : u) && settle(j);
}

bool tt_cuda_svd(job *j) {
    const tt_matrix *c = &j->s->first;
    bool full = c->option & 1;
    matrices u = result(j, 0, c->m, full ? c->m : c->k), v = result(j, 2, full ? c->n : c->k, c->n);
    if (!c->k) return set_identity(j, u) && set_identity(j, v);
    return singular_values(j, c->out[1], j->s->steps[1], u, v);
}

bool tt_cuda_svdvals(job *j) {
    const tt_matrix *c = &j->s->first;
    return singular_values(j, c->out[0], j->s->steps[0], (matrices){.data = NULL},
                           (matrices){.rows = c->k, .cols = c->n});
}
