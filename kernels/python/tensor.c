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
    if (tt_free_at_once(a)) return;
    Py_BEGIN_ALLOW_THREADS tt_free(a); /* the thread that is waited for may want Python's lock: a callback's */
    Py_END_ALLOW_THREADS
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

PyObject *tt_own(PyObject *cls, tt_array *a) {
    PyObject *handle = tt_cdata_of(a, array_pointer);
    if (handle) return own(cls, handle);
    free_array(a);
    return NULL;
}

static PyObject *own_given(PyObject *cls, PyObject *handle) { return own(cls, Py_NewRef(handle)); }

/* The exception for what the C side refused. */
static PyObject *refused(void) {
    PyObject *module = PyImport_ImportModule("tinytorch.backends.cpu");
    PyObject *error = module ? PyObject_CallMethod(module, "error", NULL) : NULL;
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(module);
    return NULL;
}

PyObject *tt_nothing(bool raises) {
    int kind = tt_error_kind();
    if (raises || kind == TT_OUT_OF_MEMORY || kind == TT_PYTHON_ERROR) return refused();
    Py_RETURN_NONE;
}

/* A function of cffi's lib whose results get an owner, taken apart once. */
typedef struct {
    PyObject_HEAD PyObject *given; /* (class, function), which holds the rest */
    PyObject *cls, *self;
    PyCFunction call;
    bool raises; /* where it makes nothing: else None, which its caller looks at */
    PyObject *second_self;
    PyCFunction second; /* gives the second one of two; NULL where there is none, or an array takes the others */
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

/* Calls the C function and gives what it made an owner; that holds `held`, if it is not NULL. `args` is what a function
 * with its flags gets: a tuple, the only argument, NULL. */
static inline PyObject *make(const owned_function *function, PyObject *args, PyObject *held) {
    PyObject *handle = function->call(function->self, args);
    if (!handle) return NULL;
    if (tt_pointer_of(handle, array_pointer)) {
        Py_XINCREF(held);
        return own(function->cls, handle);
    }
    Py_DECREF(handle);
    return PyErr_Occurred() ? NULL : tt_nothing(function->raises);
}

static PyObject *call_and_own(PyObject *self, PyObject *args) { return make((const owned_function *)self, args, NULL); }

/* Likewise where what is made holds a Python object, whose address is the last argument. */
static PyObject *call_and_hold(PyObject *self, PyObject *args) {
    PyObject *address = PyTuple_GetItem(args, PyTuple_Size(args) - 1);
    PyObject *held = address ? PyLong_AsVoidPtr(address) : NULL;
    return held ? make((const owned_function *)self, args, held) : NULL;
}

/* Likewise where the function makes two. */
static PyObject *call_and_own_two(PyObject *self, PyObject *args) {
    const owned_function *function = (const owned_function *)self;
    PyObject *first = call_and_own(self, args), *other = NULL, *both = NULL;
    if (!first || first == Py_None) return first;
    PyObject *handle = function->second(function->second_self, NULL);
    if (handle && (other = own(function->cls, handle))) both = PyTuple_Pack(2, first, other);
    Py_DECREF(first);
    Py_XDECREF(other);
    return both;
}

/* The owners of what lies in an array, a cdata, behind `first`, which is taken over. None in place of NULL; without a
 * first, the tuple ends with the last that is there. */
static PyObject *own_array(PyObject *cls, PyObject *first, PyObject *array) {
    Py_ssize_t n = PyObject_Size(array), lead = first != NULL, last = 0;
    PyObject *all = n < 0 ? NULL : PyTuple_New(n + lead);
    if (!all) {
        Py_XDECREF(first);
        return NULL;
    }
    if (first) PyTuple_SetItem(all, 0, first);
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *at = PyLong_FromSsize_t(k), *handle = at ? PyObject_GetItem(array, at) : NULL, *made = NULL;
        Py_XDECREF(at);
        if (handle && tt_pointer_of(handle, array_pointer)) {
            made = own(cls, handle);
            last = k + 1;
        } else if (handle) {
            Py_DECREF(handle);
            made = PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
        }
        if (!made) {
            Py_DECREF(all);
            return NULL;
        }
        PyTuple_SetItem(all, lead + k, made);
    }
    if (first || last == n) return all;
    PyObject *part = PyTuple_GetSlice(all, 0, last);
    Py_DECREF(all);
    return part;
}

/* Likewise where the function makes several, of which all but the first go into an array, its last argument. */
static PyObject *call_and_own_all(PyObject *self, PyObject *args) {
    PyObject *array = PyTuple_GetItem(args, PyTuple_Size(args) - 1), *first = array ? call_and_own(self, args) : NULL;
    return !first || first == Py_None ? first : own_array(((const owned_function *)self)->cls, first, array);
}

/* Likewise where all go into the array, and the function gives a status: None where that is negative. */
static PyObject *call_and_own_array(PyObject *self, PyObject *args) {
    const owned_function *function = (const owned_function *)self;
    PyObject *array = PyTuple_GetItem(args, PyTuple_Size(args) - 1);
    PyObject *status = array ? function->call(function->self, args) : NULL;
    if (!status) return NULL;
    long n = PyLong_AsLong(status);
    Py_DECREF(status);
    if (n >= 0) return own_array(function->cls, NULL, array);
    return PyErr_Occurred() ? NULL : tt_nothing(false);
}

static PyMethodDef own_method = {"own", own_given, METH_O, NULL};
static PyMethodDef call_two_method = {"call_and_own_two", call_and_own_two, METH_VARARGS, NULL};
static PyMethodDef call_all_method = {"call_and_own_all", call_and_own_all, METH_VARARGS, NULL};
static PyMethodDef call_and_hold_method = {"call_and_hold", call_and_hold, METH_VARARGS, NULL};
static PyMethodDef call_array_method = {"call_and_own_array", call_and_own_array, METH_VARARGS, NULL};
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

static PyObject *owning(PyObject *args, PyMethodDef *methods, int n) {
    PyObject *cls, *function, *second = NULL;
    int raises = 0;
    if (!PyArg_ParseTuple(args, "OO!|pO!", &cls, &PyCFunction_Type, &function, &raises, &PyCFunction_Type, &second) ||
        !is_ours(cls))
        return NULL;
    PyMethodDef *method = NULL;
    if (second) methods = &call_two_method;
    for (int k = 0; k < n; k++)
        if (methods[k].ml_flags == PyCFunction_GetFlags(function)) method = &methods[k];
    if (!method) return PyErr_Format(PyExc_TypeError, "owned_result: a function of cffi's lib is expected");
    owned_function *made = (owned_function *)PyType_GenericAlloc(function_type, 0);
    if (!made) return NULL;
    *made = (owned_function){made->ob_base,
                             Py_NewRef(args),
                             cls,
                             PyCFunction_GetSelf(function),
                             PyCFunction_GetFunction(function),
                             raises,
                             second ? PyCFunction_GetSelf(second) : NULL,
                             second ? PyCFunction_GetFunction(second) : NULL};
    PyObject *result = PyCFunction_New(method, (PyObject *)made);
    Py_DECREF(made);
    return result;
}

static PyObject *owned_result(PyObject *self, PyObject *args) {
    (void)self;
    return owning(args, call_methods, 3);
}

static PyObject *owned_results(PyObject *self, PyObject *args) {
    (void)self;
    return owning(args, &call_all_method, 1);
}

static PyObject *owned_array(PyObject *self, PyObject *args) {
    (void)self;
    return owning(args, &call_array_method, 1);
}

static PyObject *owned_memory(PyObject *self, PyObject *args) {
    (void)self;
    return owning(args, &call_and_hold_method, 1);
}

/* Ends what owned_memory has held. */
static void release_python(void *object) {
    if (!Py_IsInitialized()) return; /* a thread of ours outlives the interpreter */
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)object);
    PyGILState_Release(state);
}

tt_array *tt_from_python(int device, int dtype, int ndim, int64_t *shape, int64_t *strides, void *data, int64_t nbytes,
                         intptr_t owner) {
    return tt_from_owner(device, dtype, ndim, shape, strides, data, nbytes, (void *)owner, release_python);
}

static PyMethodDef functions[] = {
    {"owner", owner, METH_O,
     "owner(cls): a function of a descriptor that gives a new ``cls``, which owns it and has no history."},
    {"owned_result", owned_result, METH_VARARGS,
     "owned_result(cls, function, raises=False): as ``function``, one of C that makes a descriptor; gives its owner.\n"
     "NULL gives None, or ``raises`` what the C side refused; OutOfMemoryError. No signal's handler runs in between, "
     "so\n"
     "none can lose the descriptor."},
    {"owned_results", owned_results, METH_VARARGS,
     "owned_results(cls, function, raises=False, second): likewise of a function that makes several: its result, and\n"
     "what ``second()`` gives, or else what it puts into the array that is its last argument. Gives a tuple; None in\n"
     "place of each that is NULL."},
    {"owned_array", owned_array, METH_VARARGS,
     "owned_array(cls, function): likewise of a function that gives a status, and puts what it makes into the array\n"
     "that is its last argument, the last places of which may stay NULL. None where the status is negative."},
    {"owned_memory", owned_memory, METH_VARARGS,
     "owned_memory(cls, function, raises=False): as owned_result; the last argument is the id of an object, which\n"
     "what is made holds."},
    {NULL, NULL, 0, NULL},
};

bool tt_add_tensor(PyObject *module, PyObject *ffi) {
    array_pointer = PyObject_CallMethod(ffi, "typeof", "s", "tt_array *");
    if (array_pointer) base = (PyTypeObject *)PyType_FromSpec(&spec);
    function_type = base ? (PyTypeObject *)PyType_FromSpec(&function_spec) : NULL;
    return function_type && PyModule_AddObjectRef(module, "TensorBase", (PyObject *)base) == 0 &&
           PyModule_AddFunctions(module, functions) == 0;
}
