/* The Python type beneath Tensor, and functions that make Tensors.
 *
 * Note [Ownership]
 * A Tensor owns the descriptor that its member `_h` points to, a cdata of cffi, and frees it when Python deallocates
 * the Tensor: not in a finalizer. In cyclic garbage all finalizers run before anything is deallocated, and those of
 * other objects may use the Tensor, or keep it; and a finalizer in Python can swallow a KeyboardInterrupt. A cdata is
 * no part of a cycle, so the collector does not look at `_h`, and never clears it.
 * The descriptor lives on while others have the cdata: a C function that another thread has called with it, without
 * Python's lock, may still read it. Who replaces `_h` exchanges it with another Tensor's. */
#include "python.h"

static PyObject *array_pointer; /* ffi.typeof("tt_array *") */
static PyTypeObject *base;

static void free_array(tt_array *a) {
    if (tt_free_may_wait(a)) { /* for a thread that may want Python's lock: a callback's */
        Py_BEGIN_ALLOW_THREADS tt_free(a);
        Py_END_ALLOW_THREADS
    } else tt_free(a);
}

/* The callback of a weak reference to a handle, which has kept itself alive until now. */
static PyObject *handle_gone(PyObject *array, PyObject *args) {
    free_array(PyLong_AsVoidPtr(array));
    Py_DECREF(PyTuple_GetItem(args, 0));
    Py_RETURN_NONE;
}

static PyMethodDef handle_gone_method = {"handle_gone", handle_gone, METH_VARARGS, NULL};

/* Frees the array when nobody has the handle any more; without memory for that, never. */
static void free_later(PyObject *handle, tt_array *a) {
    PyObject *pointer = PyLong_FromVoidPtr(a);
    PyObject *callback = pointer ? PyCFunction_New(&handle_gone_method, pointer) : NULL;
    if (!callback || !PyWeakref_NewRef(handle, callback)) PyErr_Clear();
    Py_XDECREF(pointer);
    Py_XDECREF(callback);
}

tt_tensor *tt_tensor_of(PyObject *object) {
    if (PyObject_TypeCheck(object, base)) return (tt_tensor *)object;
    PyErr_SetString(PyExc_TypeError, "a Tensor is expected");
    return NULL;
}

bool tt_is_tensor(PyObject *object) { return PyObject_TypeCheck(object, base); }

tt_array *tt_array_of(const tt_tensor *t) {
    if (t->handle) return tt_pointer_of(t->handle, array_pointer);
    PyErr_SetString(PyExc_AttributeError, "a Tensor without memory");
    return NULL;
}

static void release(PyObject *handle) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    tt_array *a = tt_pointer_of(handle, array_pointer);
    if (!a) PyErr_Clear();
    else if (Py_REFCNT(handle) > 1) free_later(handle, a);
    else free_array(a);
    PyErr_Restore(type, value, traceback);
    Py_DECREF(handle);
}

static void dealloc(PyObject *self) {
    tt_tensor *t = (tt_tensor *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (t->handle) release(t->handle);
    Py_XDECREF(t->node);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((tt_tensor *)self)->node);
    return 0;
}

static int clear(PyObject *self) {
    Py_CLEAR(((tt_tensor *)self)->node);
    return 0;
}

static PyMemberDef members[] = {
    {"_h", T_OBJECT_EX, offsetof(tt_tensor, handle), 0, "The C descriptor."},
    {"_node", T_OBJECT_EX, offsetof(tt_tensor, node), 0, "The place in the graph."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc}, {Py_tp_traverse, traverse}, {Py_tp_clear, clear}, {Py_tp_members, members}, {0, NULL},
};

static PyType_Spec spec = {
    .name = "tinytorch.backends._native.TensorBase",
    .basicsize = sizeof(tt_tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

/* A new object of the class, without history; `handle` is taken over, also where that fails. */
static PyObject *own(PyObject *cls, PyObject *handle) {
    tt_tensor *made = (tt_tensor *)PyType_GenericAlloc((PyTypeObject *)cls, 0);
    if (!made) {
        release(handle);
        return NULL;
    }
    made->handle = handle;
    made->node = Py_NewRef(Py_None);
    return (PyObject *)made;
}

static PyObject *own_given(PyObject *cls, PyObject *handle) { return own(cls, Py_NewRef(handle)); }

/* The exception for memory that the C side did not get: no caller takes it for an operator that declines. */
static PyObject *out_of_memory(void) {
    PyObject *module = PyImport_ImportModule("tinytorch.backends.cpu");
    PyObject *error = module ? PyObject_CallMethod(module, "error", NULL) : NULL;
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    tt_error_clear();
    Py_XDECREF(error);
    Py_XDECREF(module);
    return NULL;
}

/* A function of cffi's lib whose results get an owner, taken apart once. */
typedef struct {
    PyObject_HEAD PyObject *given; /* (class, function), which holds the rest */
    PyObject *cls, *self;
    PyCFunction call;
} owned_function;

static void dealloc_function(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((owned_function *)self)->given);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyType_Slot function_slots[] = {{Py_tp_dealloc, dealloc_function}, {0, NULL}};
static PyType_Spec function_spec = {
    .name = "tinytorch.backends._native.owned_function",
    .basicsize = sizeof(owned_function),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = function_slots,
};
static PyTypeObject *function_type;

/* Calls the C function of `self` and gives what it made an owner. `args` is what a function with its flags gets: a
 * tuple, the only argument, NULL. */
static PyObject *call_and_own(PyObject *self, PyObject *args) {
    const owned_function *function = (const owned_function *)self;
    PyObject *handle = function->call(function->self, args);
    if (!handle) return NULL;
    if (tt_pointer_of(handle, array_pointer)) return own(function->cls, handle);
    Py_DECREF(handle);
    if (PyErr_Occurred()) return NULL;
    if (tt_error_kind() == TT_OUT_OF_MEMORY) return out_of_memory();
    Py_RETURN_NONE;
}

static PyMethodDef own_method = {"own", own_given, METH_O, NULL};
static PyMethodDef call_methods[] = {{"call_and_own", call_and_own, METH_VARARGS, NULL},
                                     {"call_and_own", call_and_own, METH_O, NULL},
                                     {"call_and_own", call_and_own, METH_NOARGS, NULL}};

static bool is_ours(PyObject *cls) {
    if (PyType_Check(cls) && PyType_IsSubtype((PyTypeObject *)cls, base)) return true;
    PyErr_SetString(PyExc_TypeError, "a subclass of TensorBase is expected");
    return false;
}

static PyObject *owner(PyObject *self, PyObject *cls) {
    (void)self;
    return is_ours(cls) ? PyCFunction_New(&own_method, cls) : NULL;
}

static PyObject *owned_result(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *cls, *function;
    if (!PyArg_ParseTuple(args, "OO!:owned_result", &cls, &PyCFunction_Type, &function) || !is_ours(cls)) return NULL;
    PyMethodDef *method = NULL;
    for (int k = 0; k < 3; k++)
        if (call_methods[k].ml_flags == PyCFunction_GetFlags(function)) method = &call_methods[k];
    if (!method) return PyErr_Format(PyExc_TypeError, "owned_result: a function of cffi's lib is expected");
    owned_function *made = (owned_function *)PyType_GenericAlloc(function_type, 0);
    if (!made) return NULL;
    *made = (owned_function){made->ob_base, Py_NewRef(args), cls, PyCFunction_GetSelf(function),
                             PyCFunction_GetFunction(function)};
    PyObject *result = PyCFunction_New(method, (PyObject *)made);
    Py_DECREF(made);
    return result;
}

/* Python objects whose memory a storage uses. */

static PyObject *hold(PyObject *self, PyObject *object) {
    (void)self;
    return PyLong_FromVoidPtr(Py_NewRef(object));
}

void tt_release_python(void *object) {
    if (!Py_IsInitialized()) return; /* a thread of ours outlives the interpreter */
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)object);
    PyGILState_Release(state);
}

static PyMethodDef functions[] = {
    {"hold", hold, METH_O, "hold(object): its address; it lives until tt_release_python is called with that."},
    {"owner", owner, METH_O,
     "owner(cls): a function of a descriptor that gives a new ``cls``, which owns it and has no history."},
    {"owned_result", owned_result, METH_VARARGS,
     "owned_result(cls, function): as ``function``, one of C that makes a descriptor; gives its owner, or None for\n"
     "NULL; OutOfMemoryError. No signal's handler runs in between, so none can lose the descriptor."},
    {NULL, NULL, 0, NULL},
};

bool tt_add_tensor(PyObject *module, PyObject *ffi) {
    array_pointer = PyObject_CallMethod(ffi, "typeof", "s", "tt_array *");
    if (array_pointer) base = (PyTypeObject *)PyType_FromSpec(&spec);
    function_type = base ? (PyTypeObject *)PyType_FromSpec(&function_spec) : NULL;
    return function_type && PyModule_AddObjectRef(module, "TensorBase", (PyObject *)base) == 0 &&
           PyModule_AddFunctions(module, functions) == 0;
}
