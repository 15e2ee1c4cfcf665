/* Context managers whose entering and leaving cannot be interrupted.
 *
 * Note [Interrupts]
 * CPython runs a signal's handler, which may raise KeyboardInterrupt, between two of the interpreter's instructions: at
 * the start of a Python function, after a call, at the end of a loop's turn. A mode set by an __enter__ in Python may
 * therefore stay set for ever, and one in __exit__ may never be reset. An __enter__ in C returns into the `with` block,
 * and an __exit__ in C is reached from it, without a place for a handler between. Where a mode is set without a `with`,
 * it is read before `try`, set within, and reset by `finally` before any other call. */
#include "python.h"
#include "api/cuda.h"
#include "api/fuse.h"

static PyObject *modes;     /* by thread: the Mode of those that deviate from the default. See autograd/modes.py */
static PyObject *inside, *inference, *prepare, *failure, *configure, *grad, *watches_writes; /* names */
static PyObject *main_thread;                            /* threading.main_thread */

typedef struct {
    PyObject_HEAD PyObject *before; /* a list: the modes that were replaced by entering, None for the default */
} mode_context;

static int is_on(PyObject *mode, PyObject *name) {
    if (mode == Py_None) return 0;
    PyObject *value = PyObject_GetAttr(mode, name);
    if (!value) return -1;
    int yes = PyObject_IsTrue(value);
    Py_DECREF(value);
    return yes;
}

/* Replaces this thread's mode `from` by `to`; false and an exception when nothing was changed. */
static bool exchange(PyObject *thread, PyObject *from, PyObject *to) {
    if (from == to) return true;
    int was = is_on(from, inference), is = is_on(to, inference);
    if (was < 0 || is < 0) return false;
    if (to != Py_None) {
        if (PyDict_SetItem(modes, thread, to) < 0) return false;
    } else if (PyDict_DelItem(modes, thread) < 0) return false;
    if (was != is) tt_set_inference(is);
    return true;
}

/* A new reference. */
static PyObject *present(PyObject *thread) {
    PyObject *mode = PyDict_GetItemWithError(modes, thread);
    if (!mode && PyErr_Occurred()) return NULL;
    return Py_NewRef(mode ? mode : Py_None);
}

int tt_recording(void) {
    if (!PyDict_Size(modes)) return 1;
    PyObject *thread = PyLong_FromUnsignedLong(PyThread_get_thread_ident()), *mode = thread ? present(thread) : NULL;
    int watched = mode ? is_on(mode, watches_writes) : -1;
    int recording = watched ? -1 : mode == Py_None ? 1 : is_on(mode, grad);
    Py_XDECREF(thread);
    Py_XDECREF(mode);
    return recording;
}

static PyObject *enter_mode(PyObject *self, PyObject *unused) {
    (void)unused;
    mode_context *context = (mode_context *)self;
    PyObject *thread = PyLong_FromUnsignedLong(PyThread_get_thread_ident()), *old = NULL, *new = NULL, *result = NULL;
    if (thread) old = present(thread);
    if (old) new = PyObject_CallMethodObjArgs(self, inside, old, NULL);
    if (new && !context->before) context->before = PyList_New(0);
    if (new && context->before && PyList_Append(context->before, old) == 0) {
        if (exchange(thread, old, new)) result = Py_NewRef(self);
        else {
            Py_ssize_t n = PyList_Size(context->before);
            PyList_SetSlice(context->before, n - 1, n, NULL);
        }
    }
    Py_XDECREF(thread);
    Py_XDECREF(old);
    Py_XDECREF(new);
    return result;
}

static PyObject *exit_mode(PyObject *self, PyObject *exception) {
    (void)exception;
    mode_context *context = (mode_context *)self;
    Py_ssize_t n = context->before ? PyList_Size(context->before) : 0;
    if (!n) {
        PyErr_SetString(PyExc_RuntimeError, "a context that was not entered cannot be left");
        return NULL;
    }
    PyObject *thread = PyLong_FromUnsignedLong(PyThread_get_thread_ident()), *now = NULL, *result = NULL;
    PyObject *old = Py_NewRef(PyList_GetItem(context->before, n - 1));
    if (thread) now = present(thread);
    if (now && exchange(thread, now, old) && PyList_SetSlice(context->before, n - 1, n, NULL) == 0)
        result = Py_NewRef(Py_None);
    Py_XDECREF(thread);
    Py_XDECREF(now);
    Py_DECREF(old);
    return result;
}

static void free_object(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static void dealloc_mode(PyObject *self) {
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((mode_context *)self)->before);
    free_object(self);
}

static int traverse_mode(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((mode_context *)self)->before);
    return 0;
}

static int clear_mode(PyObject *self) {
    Py_CLEAR(((mode_context *)self)->before);
    return 0;
}

static PyMethodDef mode_methods[] = {
    {"__enter__", enter_mode, METH_NOARGS, "Makes this thread's mode what ``self.inside`` gives for the present one."},
    {"__exit__", exit_mode, METH_VARARGS, "Gives this thread the mode that it had when this context was entered."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot mode_slots[] = {{Py_tp_dealloc, dealloc_mode},
                                   {Py_tp_traverse, traverse_mode},
                                   {Py_tp_clear, clear_mode},
                                   {Py_tp_methods, mode_methods},
                                   {0, NULL}};
static PyType_Spec mode_spec = {
    .name = "tinytorch.backends._native.ModeContextBase",
    .basicsize = sizeof(mode_context),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = mode_slots,
};

/* A context that sets the mode when it is made, and keeps it set if it is not entered. One that an exception takes from
 * the caller before `with` has it undoes that: the exception is being raised as the object goes. Kept in a variable it
 * lives as long as the traceback. */

typedef struct {
    mode_context context;
    char made; /* set by its maker; not entered since */
} mode_switch;

static int init_switch(PyObject *self, PyObject *args, PyObject *keywords) {
    PyObject *set_up = PyObject_GetAttr(self, configure);
    PyObject *ready = set_up ? PyObject_Call(set_up, args, keywords) : NULL;
    PyObject *entered = ready ? enter_mode(self, NULL) : NULL;
    if (entered) ((mode_switch *)self)->made = 1;
    Py_XDECREF(set_up);
    Py_XDECREF(ready);
    Py_XDECREF(entered);
    return entered ? 0 : -1;
}

static PyObject *enter_switch(PyObject *self, PyObject *unused) {
    mode_switch *it = (mode_switch *)self;
    if (!it->made) return enter_mode(self, unused);
    it->made = 0;
    return Py_NewRef(self);
}

static PyObject *exit_switch(PyObject *self, PyObject *exception) {
    ((mode_switch *)self)->made = 0;
    return exit_mode(self, exception);
}

static void dealloc_switch(PyObject *self) {
    if (((mode_switch *)self)->made && PyErr_Occurred()) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyObject *done = exit_mode(self, NULL);
        if (!done) PyErr_WriteUnraisable(NULL);
        Py_XDECREF(done);
        PyErr_Restore(type, value, traceback);
    }
    dealloc_mode(self);
}

static PyMethodDef switch_methods[] = {
    {"__enter__", enter_switch, METH_NOARGS, "The mode is set already, unless the context was left before."},
    {"__exit__", exit_switch, METH_VARARGS, "Gives this thread the mode that it had before."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot switch_slots[] = {{Py_tp_init, init_switch},       {Py_tp_dealloc, dealloc_switch},
                                     {Py_tp_traverse, traverse_mode}, {Py_tp_clear, clear_mode},
                                     {Py_tp_methods, switch_methods}, {0, NULL}};
static PyType_Spec switch_spec = {
    .name = "tinytorch.backends._native.ModeSwitchBase",
    .basicsize = sizeof(mode_switch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = switch_slots,
};

/* Fused mode. */

typedef struct {
    PyObject_HEAD char step;
} fuse_context;

static PyObject *fail(PyObject *self) {
    PyObject *error = PyObject_CallMethodObjArgs(self, failure, NULL);
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

static PyObject *enter_fuse(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject *ready = PyObject_CallMethodObjArgs(self, prepare, NULL);
    if (!ready) return NULL;
    Py_DECREF(ready);
    if (tt_fuse_enter() < 0) return fail(self);
    if (((fuse_context *)self)->step) {
        int status;
        Py_BEGIN_ALLOW_THREADS status = tt_fuse_step(1);
        if (status < 0) {
            tt_fuse_step(-1);
            tt_fuse_leave();
        }
        Py_END_ALLOW_THREADS if (status < 0) return fail(self);
    }
    return Py_NewRef(self);
}

static PyObject *exit_fuse(PyObject *self, PyObject *exception) {
    int status;
    Py_BEGIN_ALLOW_THREADS if (((fuse_context *)self)->step) tt_fuse_step(-1);
    status = tt_fuse_leave();
    Py_END_ALLOW_THREADS if (status < 0 && PyTuple_Size(exception) > 0 &&
                             PyTuple_GetItem(exception, 0) == Py_None) return fail(self);
    Py_RETURN_NONE;
}

static PyMemberDef fuse_members[] = {
    {"step", T_BOOL, offsetof(fuse_context, step), 0, "Does every operator run at once, alone?"},
    {NULL, 0, 0, 0, NULL},
};
static PyMethodDef fuse_methods[] = {
    {"__enter__", enter_fuse, METH_NOARGS, "Records this thread's operators from now on."},
    {"__exit__", exit_fuse, METH_VARARGS, "Runs what was recorded. Without an exception, raises its error."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot fuse_slots[] = {
    {Py_tp_dealloc, free_object}, {Py_tp_members, fuse_members}, {Py_tp_methods, fuse_methods}, {0, NULL}};
static PyType_Spec fuse_spec = {
    .name = "tinytorch.backends._native.FusedBase",
    .basicsize = sizeof(fuse_context),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = fuse_slots,
};

/* The device on which a function allocates. */

static PyObject *call_on_device(PyObject *self, PyObject *args) {
    (void)self;
    Py_ssize_t n = PyTuple_Size(args);
    long device = n > 1 ? PyLong_AsLong(PyTuple_GetItem(args, 0)) : -1;
    PyObject *rest = PyErr_Occurred() ? NULL : PyTuple_GetSlice(args, 2, n), *result = NULL;
    if (rest && device >= 0) {
        int before = tt_device_set((int)device);
        result = PyObject_Call(PyTuple_GetItem(args, 1), rest, NULL);
        tt_device_set(before);
    } else if (rest) PyErr_SetString(PyExc_TypeError, "call_on_device: a device's number and a function are expected");
    Py_XDECREF(rest);
    return result;
}

/* Exceptions that a callback of C must not let through. This is no Python function, which the pending call would
 * interrupt at its end. */

static int raise_pending(void *exception) {
    PyErr_SetObject((PyObject *)Py_TYPE((PyObject *)exception), exception);
    Py_DECREF((PyObject *)exception);
    return -1;
}

/* 1: this is the main thread, which alone runs signals' handlers; -1: an exception. */
static int is_main_thread(void) {
    PyObject *thread = PyObject_CallNoArgs(main_thread);
    PyObject *ident = thread ? PyObject_GetAttrString(thread, "ident") : NULL;
    unsigned long number = ident ? PyLong_AsUnsignedLong(ident) : 0;
    Py_XDECREF(thread);
    Py_XDECREF(ident);
    return PyErr_Occurred() ? -1 : number == PyThread_get_thread_ident();
}

static PyObject *raise_after_call(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *type, *exception, *traceback;
    if (!PyArg_ParseTuple(args, "OOO", &type, &exception, &traceback)) return NULL;
    int here = is_main_thread();
    if (here < 0) return NULL;
    if (here && Py_AddPendingCall(raise_pending, Py_NewRef(exception)) < 0) {
        Py_DECREF(exception); /* too many wait: it is shown, like another thread's */
        here = 0;
    }
    if (!here) {
        PyErr_Restore(Py_NewRef(type), Py_NewRef(exception), Py_NewRef(traceback));
        PyErr_WriteUnraisable(NULL);
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"raise_after_call", raise_after_call, METH_VARARGS,
     "For callbacks of C that cannot fail, as cffi's ``onerror``: what a signal's handler has raised in one is raised\n"
     "when the C call has returned. Only the main thread runs handlers: others' errors are shown, and forgotten."},
    {"call_on_device", call_on_device, METH_VARARGS,
     "call_on_device(number, function, *args): what ``function`` gives with that device as the one where C allocates."},
    {NULL, NULL, 0, NULL},
};

static bool add_type(PyObject *module, const char *name, PyType_Spec *spec, const char *base) {
    PyObject *bases = base ? PyObject_GetAttrString(module, base) : NULL;
    PyObject *type = bases || !base ? PyType_FromSpecWithBases(spec, bases) : NULL;
    bool added = type && PyModule_AddObjectRef(module, name, type) == 0;
    Py_XDECREF(bases);
    Py_XDECREF(type);
    return added;
}

bool tt_add_contexts(PyObject *module) {
    PyObject *threading = PyImport_ImportModule("threading");
    main_thread = threading ? PyObject_GetAttrString(threading, "main_thread") : NULL;
    Py_XDECREF(threading);
    modes = PyDict_New();
    inside = PyUnicode_InternFromString("inside");
    inference = PyUnicode_InternFromString("inference");
    prepare = PyUnicode_InternFromString("prepare");
    failure = PyUnicode_InternFromString("failure");
    configure = PyUnicode_InternFromString("configure");
    grad = PyUnicode_InternFromString("grad");
    watches_writes = PyUnicode_InternFromString("watches_writes");
    return main_thread && modes && inside && inference && prepare && failure && configure && grad && watches_writes &&
           PyModule_AddObjectRef(module, "modes", modes) == 0 && PyModule_AddFunctions(module, functions) == 0 &&
           add_type(module, "ModeContextBase", &mode_spec, NULL) &&
           add_type(module, "ModeSwitchBase", &switch_spec, "ModeContextBase") &&
           add_type(module, "FusedBase", &fuse_spec, NULL);
}
