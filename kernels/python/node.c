/* The Python type beneath Node, and the functions that record: a Node is made by one call, which costs half of what the
 * same takes in Python, a statement a field (0.10 and 0.21 us). Who records, and what, is autograd/node.py's affair. */
#include "python.h"

static int64_t ticks; /* guarded by the interpreter's lock */

static void dealloc(PyObject *self) {
    tt_node *n = (tt_node *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(n->saved);
    Py_XDECREF(n->edges);
    Py_XDECREF(n->versions);
    Py_XDECREF(n->extra);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
    tt_node *n = (tt_node *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(n->edges);
    Py_VISIT(n->saved);
    Py_VISIT(n->versions);
    Py_VISIT(n->extra);
    return 0;
}

static int clear(PyObject *self) {
    tt_node *n = (tt_node *)self;
    Py_CLEAR(n->edges);
    Py_CLEAR(n->saved);
    Py_CLEAR(n->versions);
    Py_CLEAR(n->extra);
    return 0;
}

static PyMemberDef members[] = {
    {"edges", T_OBJECT_EX, offsetof(tt_node, edges), 0, "The Nodes that the inputs' gradients go to, or None."},
    {"saved", T_OBJECT_EX, offsetof(tt_node, saved), 0, "What the derivative needs."},
    {"key", T_LONGLONG, offsetof(tt_node, key), 0, "Minus the Node's age: younger Nodes are less."},
    {"versions", T_OBJECT_EX, offsetof(tt_node, versions), 0, "Of the saved tensors: Note [Version counters]."},
    {"extra", T_OBJECT_EX, offsetof(tt_node, extra), 0, "Rare state, or None."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc}, {Py_tp_traverse, traverse}, {Py_tp_clear, clear}, {Py_tp_members, members}, {0, NULL},
};
static PyType_Spec spec = {
    .name = "tinytorch.backends._native.NodeBase",
    .basicsize = sizeof(tt_node),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
static PyTypeObject *base;

tt_node *tt_node_of(PyObject *object) {
    if (PyObject_TypeCheck(object, base)) return (tt_node *)object;
    PyErr_SetString(PyExc_TypeError, "a Node is expected");
    return NULL;
}

static PyObject *make(PyObject *cls, PyObject *edges, PyObject *saved, PyObject *versions) {
    tt_node *n = (tt_node *)PyType_GenericAlloc((PyTypeObject *)cls, 0);
    if (!n) return NULL;
    n->edges = Py_NewRef(edges);
    n->saved = Py_NewRef(saved);
    n->versions = Py_NewRef(versions);
    n->extra = Py_NewRef(Py_None);
    n->key = -++ticks;
    return (PyObject *)n;
}

static bool is_node_class(PyObject *cls) {
    if (PyType_Check(cls) && PyType_IsSubtype((PyTypeObject *)cls, base)) return true;
    PyErr_SetString(PyExc_TypeError, "a subclass of NodeBase is expected");
    return false;
}

static PyObject *new_node(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)self;
    if (n != 4) return PyErr_Format(PyExc_TypeError, "new_node(cls, edges, saved, versions) takes 4 arguments");
    return is_node_class(args[0]) ? make(args[0], args[1], args[2], args[3]) : NULL;
}

static PyObject *give(tt_tensor *out, PyObject *made) {
    PyObject *old = out->node;
    out->node = made;
    Py_XDECREF(old);
    return Py_NewRef((PyObject *)out);
}

/* The Node class of an operator whose result `a` is: that of complex numbers where they are. */
static PyObject *class_for(const tt_array *a, PyObject *cls) {
    if (!is_node_class(cls)) return NULL;
    return tt_is_complex(a->dtype) ? PyObject_CallMethod(cls, "of_complex", NULL) : Py_NewRef(cls);
}

/* out._node = cls(edges, saved, versions); an inference tensor, which only a view of one is here, gets no history. */
static PyObject *record(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)self;
    if (n != 5) return PyErr_Format(PyExc_TypeError, "record(out, cls, edges, saved, versions) takes 5 arguments");
    tt_tensor *out = tt_tensor_of(args[0]);
    tt_array *a = out ? tt_array_of(out) : NULL;
    if (!a) return NULL;
    if (a->flags & TT_FLAG_INFERENCE) return Py_NewRef(args[0]);
    PyObject *cls = class_for(a, args[1]), *made = cls ? make(cls, args[2], args[3], args[4]) : NULL;
    Py_XDECREF(cls);
    return made ? give(out, made) : NULL;
}

/* The same where the C call has stamped its result with the operands' versions. None, and nothing done, where the stamp
 * says that an operand was broadcast or cast, or is an inference tensor. */
static PyObject *record_stamped(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)self;
    if (n != 4) return PyErr_Format(PyExc_TypeError, "record_stamped(out, cls, edges, saved) takes 4 arguments");
    tt_tensor *out = tt_tensor_of(args[0]);
    tt_array *a = out ? tt_array_of(out) : NULL;
    if (!a) return NULL;
    if (a->stamp & 15) Py_RETURN_NONE;
    PyObject *versions = PyLong_FromLongLong(a->stamp), *cls = class_for(a, args[1]);
    PyObject *made = versions && cls ? make(cls, args[2], args[3], versions) : NULL;
    Py_XDECREF(versions);
    Py_XDECREF(cls);
    return made ? give(out, made) : NULL;
}

/* Arguments of an operator: a tuple, or a list of tensors. The items are borrowed. */
static Py_ssize_t number_of(PyObject *args) {
    if (PyTuple_Check(args)) return PyTuple_Size(args);
    if (PyList_Check(args)) return PyList_Size(args);
    PyErr_SetString(PyExc_TypeError, "a tuple or a list is expected");
    return -1;
}
static PyObject *item_of(PyObject *args, Py_ssize_t k) {
    return PyTuple_Check(args) ? PyTuple_GetItem(args, k) : PyList_GetItem(args, k);
}

static PyObject *has_views(PyObject *self, PyObject *args) {
    (void)self;
    Py_ssize_t n = number_of(args);
    if (n < 0) return NULL;
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *item = item_of(args, k);
        const tt_array *a = tt_is_tensor(item) ? tt_array_of((tt_tensor *)item) : NULL;
        if (a && a->flags & TT_FLAG_VIEW) Py_RETURN_TRUE;
        if (PyErr_Occurred()) return NULL;
    }
    Py_RETURN_FALSE;
}

static PyObject *edges_of(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    (void)self;
    if (n != 1 && n != 2) return PyErr_Format(PyExc_TypeError, "edges_of(args, which) takes 1 or 2 arguments");
    PyObject *args = given[0], *which = n == 2 ? given[1] : args;
    if (number_of(args) < 0 || (n = number_of(which)) < 0) return NULL;
    PyObject *edges = PyTuple_New(n);
    bool any = false;
    for (Py_ssize_t k = 0; edges && k < n; k++) {
        PyObject *item = item_of(args, which == args ? k : PyLong_AsSsize_t(item_of(which, k)));
        PyObject *node = item && tt_is_tensor(item) ? ((tt_tensor *)item)->node : Py_None;
        any = any || node != Py_None;
        if (!item || PyTuple_SetItem(edges, k, Py_NewRef(node)) < 0) Py_CLEAR(edges);
    }
    if (any || !edges) return edges;
    Py_DECREF(edges);
    Py_RETURN_NONE;
}

static PyObject *versions_of(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)self;
    if (n != 2 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "versions_of(tensors, saved) takes 2 tuples");
    n = PyTuple_Size(args[0]);
    PyObject *versions = PyTuple_New(n);
    for (Py_ssize_t k = 0; versions && k < n; k++) {
        PyObject *position = PyTuple_GetItem(PyTuple_GetItem(args[0], k), 0);
        PyObject *item = position ? PyTuple_GetItem(args[1], PyLong_AsSsize_t(position)) : NULL;
        const tt_array *a = item && tt_is_tensor(item) ? tt_array_of((tt_tensor *)item) : NULL;
        PyObject *version = PyErr_Occurred() ? NULL : PyLong_FromLongLong(a ? tt_version(a) : 0);
        if (!version || PyTuple_SetItem(versions, k, version) < 0) Py_CLEAR(versions);
    }
    return versions;
}

static PyObject *last_write; /* autograd/node.py's: [the number of the last write] */

bool tt_note_write(void) {
    PyObject *number = PyLong_FromLongLong(++ticks);
    return number && PyList_SetItem(last_write, 0, number) == 0;
}

static PyObject *count(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    return PyLong_FromLongLong(++ticks);
}

/* The shape of a Tensor as a tuple. */
static PyObject *shape_of(PyObject *self, PyObject *t) {
    (void)self;
    tt_tensor *x = tt_tensor_of(t);
    const tt_array *a = x ? tt_array_of(x) : NULL;
    PyObject *shape = a ? PyTuple_New(a->ndim) : NULL;
    for (int d = 0; shape && d < a->ndim; d++) {
        PyObject *size = PyLong_FromLongLong(a->shape[d]);
        if (!size || PyTuple_SetItem(shape, d, size) < 0) Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *dtypes; /* the dtype objects by code */

static PyObject *set_dtypes(PyObject *self, PyObject *given) {
    (void)self;
    if (!PyTuple_Check(given)) return PyErr_Format(PyExc_TypeError, "set_dtypes: a tuple is expected");
    Py_XDECREF(dtypes);
    dtypes = Py_NewRef(given);
    Py_RETURN_NONE;
}

static PyObject *dtype_of(PyObject *self, PyObject *t) {
    (void)self;
    tt_tensor *x = tt_tensor_of(t);
    const tt_array *a = x ? tt_array_of(x) : NULL;
    PyObject *dtype = a ? PyTuple_GetItem(dtypes, a->dtype) : NULL;
    return dtype ? Py_NewRef(dtype) : NULL;
}

static PyMethodDef functions[] = {
    {"new_node", (PyCFunction)(void (*)(void))new_node, METH_FASTCALL,
     "new_node(cls, edges, saved, versions): a Node, the youngest of all."},
    {"record", (PyCFunction)(void (*)(void))record, METH_FASTCALL,
     "record(out, cls, edges, saved, versions): gives ``out`` a new Node; returns ``out``."},
    {"record_stamped", (PyCFunction)(void (*)(void))record_stamped, METH_FASTCALL,
     "record_stamped(out, cls, edges, saved): the same with the versions of the result's stamp; None where the stamp\n"
     "tells of operands that were broadcast or cast, or of inference tensors."},
    {"has_views", has_views, METH_O, "has_views(args): is a Tensor among ``args`` a tracked view?"},
    {"edges_of", (PyCFunction)(void (*)(void))edges_of, METH_FASTCALL,
     "edges_of(args, which): the Nodes of the arguments whose positions ``which`` gives (all, without it), or None "
     "for\n"
     "each; None where there is no Node."},
    {"versions_of", (PyCFunction)(void (*)(void))versions_of, METH_FASTCALL,
     "versions_of(tensors, saved): of each field of ``tensors``, a Node class's, the version of the Tensor that it "
     "names\n"
     "in ``saved``, or 0."},
    {"count", count, METH_NOARGS, "count(): numbers Nodes and writes alike, in the order of time."},
    {"shape_of", shape_of, METH_O, "shape_of(tensor): the shape as a plain tuple."},
    {"dtype_of", dtype_of, METH_O, "dtype_of(tensor): the dtype."},
    {"set_dtypes", set_dtypes, METH_O, "set_dtypes(dtypes): the dtype objects by code."},
    {NULL, NULL, 0, NULL},
};

bool tt_add_node(PyObject *module) {
    base = (PyTypeObject *)PyType_FromSpec(&spec);
    last_write = Py_BuildValue("[i]", 0);
    return base && last_write && PyModule_AddObjectRef(module, "NodeBase", (PyObject *)base) == 0 &&
           PyModule_AddObjectRef(module, "last_write", last_write) == 0 &&
           PyModule_AddFunctions(module, functions) == 0;
}
