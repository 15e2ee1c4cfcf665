/* Operators on Python's arguments in one call of C: an elementwise operator that writes a tensor takes 0.15 us here,
 * and 0.4 in Python and through cffi. What these functions do not take at once is the affair of the general paths:
 * tinytorch/ops/declare/elementwise.py, inplace.py and arguments.py. */
#include "python.h"
#include "fuse/fuse.h"
#include "ops/elementwise.h"
#include "ops/promote.h"

/* What a function knows of its operator. */
typedef struct {
    PyObject *cls; /* borrowed: Tensor lives for ever */
    int op, writer, numbers;
} facts;

typedef struct {
    int n;
    tt_array *in[3];
    tt_weak numbers[2];
} operands;

enum { AT_ONCE = 1024 }; /* elements: for as long others wait for Python's lock */

/* The array of a Tensor; NULL, without exception, of what has none. */
static tt_array *array_in(PyObject *object) {
    const tt_tensor *t = tt_is_tensor(object) ? (const tt_tensor *)object : NULL;
    tt_array *a = t && t->handle ? tt_array_of(t) : NULL;
    if (!a) PyErr_Clear();
    return a;
}

static PyObject *view; /* the name of a view's base */

static bool base_has_history(PyObject *tensor) {
    PyObject *base = PyObject_GetAttr(tensor, view);
    bool has = !base || !tt_is_tensor(base) || ((tt_tensor *)base)->node != Py_None;
    if (!base) PyErr_Clear();
    Py_XDECREF(base);
    return has;
}

/* Has none of the arguments a history to look after, nor could get one by a write to its base; and does nobody watch
 * writes? False also with an exception. Views are up to date then: refresh of autograd/views.py would do no more. */
static bool quiet(PyObject *const *args, Py_ssize_t n) {
    int recording = tt_recording();
    if (recording < 0) return false;
    for (Py_ssize_t k = 0; k < n; k++) {
        tt_array *a = array_in(args[k]);
        if (!a) continue;
        if (recording && ((tt_tensor *)args[k])->node != Py_None) return false;
        if (!(a->flags & TT_FLAG_VIEW)) continue;
        if (base_has_history(args[k])) return false;
        a->seen_version = tt_version(a);
    }
    return true;
}

static PyObject *declined(void) { return PyErr_Occurred() ? NULL : Py_NewRef(Py_None); }

/* The handles of Tensors, held while others may run Python: Note [Ownership] in tensor.c. */
typedef struct {
    PyObject *handles[4];
    int n;
} held;

static held hold(PyObject *const *args, Py_ssize_t n) {
    held all = {.n = 0};
    for (Py_ssize_t k = 0; k < n; k++)
        if (tt_is_tensor(args[k])) all.handles[all.n++] = Py_NewRef(((tt_tensor *)args[k])->handle);
    return all;
}

static void let_go(held *all) {
    for (int k = 0; k < all->n; k++) Py_DECREF(all->handles[k]);
}

/* What a function gives that has written into `out`. */
static PyObject *written(PyObject *out, bool done) {
    if (!done) return tt_nothing(false);
    return tt_note_write() ? Py_NewRef(out) : NULL;
}

/* Is a write of so few elements that nobody waits for Python's lock meanwhile, and does it wait for nobody? */
static bool at_once(const tt_array *out) {
    return out->numel <= AT_ONCE && !(out->flags & TT_SLOW) && !TT_RECORDING && !tt_lazy_of(out->storage) &&
           !tt_jobs_of(out->storage);
}

/* A Python number as an operand; NULL, without exception, unless it is a float or fits int64_t. */
static tt_array *number(tt_weak *room, PyObject *object) {
    if (PyFloat_CheckExact(object)) {
        double value = PyFloat_AsDouble(object);
        return tt_weak_operand(room, TT_KIND_FLOAT, &value, NULL);
    }
    if (!PyLong_CheckExact(object)) return NULL;
    int overflow;
    int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow ? NULL : tt_weak_operand(room, TT_KIND_INT, NULL, &value);
}

/* Takes the operands, of which the first is a tensor. */
static bool take(operands *to, const facts *op, PyObject *const *args, Py_ssize_t n) {
    if (n < 1 || n > 3) return false;
    to->n = (int)n;
    int numbers = 0;
    for (int k = 0; k < n; k++) {
        to->in[k] = array_in(args[k]);
        if (!to->in[k] && k > 0 && op->numbers) to->in[k] = number(&to->numbers[numbers++], args[k]);
        if (!to->in[k]) return false;
    }
    return true;
}

/* function(out, *operands): writes into `out`, which it returns, where nobody has a history, nor watches writes. An
 * `out` that is none of the operands must have the result's dtype and shape. */
static PyObject *into(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    const facts *op = (const facts *)PyBytes_AsString(self);
    operands given;
    tt_array *out = n ? array_in(args[0]) : NULL;
    if (!out || !take(&given, op, args + 1, n - 1) || !quiet(args, n)) return declined();
    tt_array **in = given.in;
    bool done = out->numel <= AT_ONCE && tt_elementwise_small_into(op->op, out, given.n, in), among = false;
    if (done) tt_bump_version(out, op->writer);
    else {
        held all = hold(args, n);
        for (int k = 0; k < given.n; k++) among = among || in[k] == out;
        Py_BEGIN_ALLOW_THREADS done = (among || tt_elementwise_fits(op->op, out, given.n, in)) &&
                                      tt_elementwise_out(op->op, out, in[0], given.n > 1 ? in[1] : NULL,
                                                         given.n > 2 ? in[2] : NULL, op->writer) == 0;
        Py_END_ALLOW_THREADS let_go(&all);
    }
    return written(args[0], done);
}

static PyObject *copy_into(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)self;
    if (n != 3) return PyErr_Format(PyExc_TypeError, "copy_into(out, source, writer) takes 3 arguments");
    tt_array *out = array_in(args[0]), *a = array_in(args[1]);
    if (!out || !a || out->dtype != a->dtype || !tt_same_shape(out, a) || !quiet(args, 2)) return declined();
    int writer = (int)PyLong_AsLong(args[2]), status;
    if (at_once(out) && at_once(a)) status = tt_copy(out, a, writer);
    else {
        held all = hold(args, 2);
        Py_BEGIN_ALLOW_THREADS status = tt_copy(out, a, writer);
        Py_END_ALLOW_THREADS let_go(&all);
    }
    return written(args[0], status == 0);
}

static PyObject *fill_into(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)self;
    if (n != 3) return PyErr_Format(PyExc_TypeError, "fill_into(out, number, writer) takes 3 arguments");
    tt_weak room;
    tt_array *out = array_in(args[0]), *value = out && quiet(args, 1) ? number(&room, args[1]) : NULL;
    if (!value) return declined();
    bool whole = value->dtype == TT_I64;
    double f = whole ? 0 : *(double *)value->data;
    int64_t i = whole ? *(int64_t *)value->data : 0;
    if (tt_is_floating(out->dtype) ? !tt_number_fits(value, out->dtype) : !whole || (i && out->dtype != TT_I64))
        return declined();
    int writer = (int)PyLong_AsLong(args[2]), status, kind = whole ? TT_KIND_INT : TT_KIND_FLOAT;
    if (at_once(out)) status = tt_fill(out, kind, f, i, writer);
    else {
        held all = hold(args, 1);
        Py_BEGIN_ALLOW_THREADS status = tt_fill(out, kind, f, i, writer);
        Py_END_ALLOW_THREADS let_go(&all);
    }
    return written(args[0], status == 0);
}

static PyObject *is_quiet(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *items[8];
    Py_ssize_t n = PyTuple_Check(args) ? PyTuple_Size(args) : 8;
    for (Py_ssize_t k = 0; k < n && n < 8; k++) items[k] = PyTuple_GetItem(args, k);
    bool yes = n < 8 && quiet(items, n);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(yes);
}

/* function(a, b, c): their result, without history. */
static PyObject *of_three(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    const facts *op = (const facts *)PyBytes_AsString(self);
    operands given;
    if (n != 3 || !take(&given, op, args, n)) return Py_NewRef(Py_None);
    tt_array **in = given.in, *out = in[0]->numel > AT_ONCE ? NULL : tt_elementwise_small(op->op, 3, in);
    if (!out) {
        held all = hold(args, 3);
        Py_BEGIN_ALLOW_THREADS out = tt_ternary(op->op, in[0], in[1], in[2]);
        Py_END_ALLOW_THREADS let_go(&all);
    }
    return out ? tt_own(op->cls, out) : tt_nothing(false);
}

static PyMethodDef into_method = {"elementwise_into", (PyCFunction)(void (*)(void))into, METH_FASTCALL, NULL};
static PyMethodDef of_three_method = {"elementwise_of", (PyCFunction)(void (*)(void))of_three, METH_FASTCALL, NULL};

static PyObject *function(PyObject *args, PyMethodDef *method) {
    facts op;
    if (!PyArg_ParseTuple(args, "Oiip", &op.cls, &op.op, &op.writer, &op.numbers)) return NULL;
    PyObject *self = PyBytes_FromStringAndSize((const char *)&op, sizeof op);
    PyObject *made = self ? PyCFunction_New(method, self) : NULL;
    Py_XDECREF(self);
    return made;
}

static PyObject *elementwise_into(PyObject *self, PyObject *args) {
    (void)self;
    return function(args, &into_method);
}

static PyObject *elementwise_of(PyObject *self, PyObject *args) {
    (void)self;
    return function(args, &of_three_method);
}

static PyMethodDef functions[] = {
    {"copy_into", (PyCFunction)(void (*)(void))copy_into, METH_FASTCALL,
     "copy_into(out, source, writer): ``out`` with the elements of a tensor of its dtype and shape, where nobody has "
     "a\n"
     "history, nor watches writes; else None, and nothing done."},
    {"fill_into", (PyCFunction)(void (*)(void))fill_into, METH_FASTCALL,
     "fill_into(out, number, writer): likewise with a number, which the dtype has, everywhere."},
    {"is_quiet", is_quiet, METH_O,
     "is_quiet(args): is it certain that none of up to seven arguments has a history that a write must look after, "
     "and\n"
     "that nobody watches writes?"},
    {"elementwise_into", elementwise_into, METH_VARARGS,
     "elementwise_into(cls, code, writer, numbers): the operator of that code as a function of a tensor to write and\n"
     "the operands, which gives that tensor; None, and nothing done, where the general path is needed. ``numbers``:\n"
     "may operands but the first be numbers?"},
    {"elementwise_of", elementwise_of, METH_VARARGS,
     "elementwise_of(cls, code, writer, numbers): likewise as a function of three operands that gives a ``cls``."},
    {NULL, NULL, 0, NULL},
};

bool tt_add_calls(PyObject *module) {
    view = PyUnicode_InternFromString("_view");
    return view && PyModule_AddFunctions(module, functions) == 0;
}
