/* Walks over the graph of Nodes, for autograd/engine.py: which Nodes backward must run, and what they have saved. */
#include "python.h"
#include <stdlib.h>

/* Nodes, each found once. */
typedef struct {
    tt_node **all; /* borrowed: the roots, and what they lead to */
    Py_ssize_t n, room;
    PyObject *seen; /* a set of the same */
} found_nodes;

static bool find(found_nodes *found, tt_node *node) {
    int known = PySet_Contains(found->seen, (PyObject *)node);
    if (known) return known > 0;
    if (found->n == found->room) {
        Py_ssize_t room = found->room ? 2 * found->room : 64;
        tt_node **all = PyMem_Realloc(found->all, (size_t)room * sizeof *all);
        if (!all) return PyErr_NoMemory(), false;
        found->all = all;
        found->room = room;
    }
    found->all[found->n++] = node;
    return PySet_Add(found->seen, (PyObject *)node) == 0;
}

static bool find_roots(found_nodes *found, PyObject *roots) {
    for (Py_ssize_t k = 0; k < PyList_Size(roots); k++) {
        PyObject *root = PyTuple_GetItem(PyList_GetItem(roots, k), 0);
        tt_node *node = root ? tt_node_of(root) : NULL;
        if (!node || !find(found, node)) return false;
    }
    return !PyErr_Occurred();
}

static Py_ssize_t size_of(PyObject *edges) { return edges ? PyTuple_Size(edges) : 0; }

/* All Nodes that the roots lead to, but for leaves and those older than `oldest`. */
static bool find_all(found_nodes *found, long long oldest) {
    for (Py_ssize_t k = 0; k < found->n; k++) {
        PyObject *edges = found->all[k]->edges;
        for (Py_ssize_t i = 0, n = size_of(edges); i < n; i++) {
            PyObject *edge = PyTuple_GetItem(edges, i);
            if (edge == Py_None) continue;
            tt_node *node = tt_node_of(edge);
            if (!node || (node->key <= oldest && size_of(node->edges) && !find(found, node))) return false;
        }
    }
    return !PyErr_Occurred();
}

static int oldest_first(const void *a, const void *b) {
    long long x = (*(tt_node *const *)a)->key, y = (*(tt_node *const *)b)->key;
    return (x < y) - (x > y);
}

/* Does the edge lead to a target? Its own edges have been judged before. -1 and an exception: nobody knows. */
static int leads(PyObject *edge, PyObject *targets, PyObject *useful) {
    if (edge == Py_None) return 0;
    int yes = PyDict_Contains(targets, edge);
    return yes ? yes : PyDict_Contains(useful, edge);
}

/* Notes for a Node the edges that lead to targets, with None in the place of the others; nothing where none does. */
static bool judge(tt_node *node, PyObject *targets, PyObject *useful) {
    Py_ssize_t n = size_of(node->edges), wanted = 0, unwanted = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *edge = PyTuple_GetItem(node->edges, i);
        int yes = leads(edge, targets, useful);
        if (yes < 0) return false;
        wanted += yes;
        unwanted += !yes && edge != Py_None;
    }
    if (!wanted) return true;
    if (!unwanted) return PyDict_SetItem(useful, (PyObject *)node, node->edges) == 0;
    PyObject *edges = PyTuple_New(n);
    for (Py_ssize_t i = 0; edges && i < n; i++) {
        PyObject *edge = PyTuple_GetItem(node->edges, i);
        int yes = leads(edge, targets, useful);
        if (yes < 0 || PyTuple_SetItem(edges, i, Py_NewRef(yes ? edge : Py_None)) < 0) Py_CLEAR(edges);
    }
    bool ok = edges && PyDict_SetItem(useful, (PyObject *)node, edges) == 0;
    Py_XDECREF(edges);
    return ok;
}

static PyObject *nodes_on_path(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *targets, *roots, *target, *places, *useful = NULL;
    if (!PyArg_ParseTuple(args, "O!O!:nodes_on_path", &PyDict_Type, &targets, &PyList_Type, &roots)) return NULL;
    long long oldest = LLONG_MIN;
    for (Py_ssize_t at = 0; PyDict_Next(targets, &at, &target, &places);) {
        tt_node *node = tt_node_of(target);
        if (!node) return NULL;
        if (node->key > oldest) oldest = node->key;
    }
    found_nodes found = {.seen = PySet_New(NULL)};
    if (found.seen && find_roots(&found, roots) && find_all(&found, oldest)) useful = PyDict_New();
    if (useful) qsort(found.all, (size_t)found.n, sizeof *found.all, oldest_first);
    for (Py_ssize_t k = 0; useful && k < found.n; k++)
        if (!judge(found.all[k], targets, useful)) Py_CLEAR(useful);
    PyMem_Free(found.all);
    Py_XDECREF(found.seen);
    return useful;
}

/* What a Node has saved. */

static PyObject *tensors, *num_outputs; /* names */

/* The Node of a saved tensor: that of an input, or `node` itself for its only output. Borrowed; NULL with an exception,
 * or without one where it takes more to find it. */
static PyObject *owner_of(tt_node *node, long edge) {
    if (edge >= 0) return PyTuple_GetItem(node->edges, edge);
    PyObject *outputs = PyObject_GetAttr((PyObject *)Py_TYPE(node), num_outputs);
    long n = outputs ? PyLong_AsLong(outputs) : -1;
    Py_XDECREF(outputs);
    return n == 1 ? (PyObject *)node : NULL;
}

/* Another tensor of the same elements, with the history `owner`. */
static PyObject *alias_of(PyObject *t, PyObject *owner, PyObject *alias) {
    PyObject *handle = ((tt_tensor *)t)->handle;
    PyObject *made = handle ? PyObject_CallFunctionObjArgs(alias, handle, NULL) : NULL;
    if (!made || !tt_is_tensor(made)) {
        Py_XDECREF(made);
        return NULL;
    }
    PyObject *old = ((tt_tensor *)made)->node;
    ((tt_tensor *)made)->node = Py_NewRef(owner);
    Py_XDECREF(old);
    return made;
}

static PyObject *copy_of(PyObject *tuple) {
    Py_ssize_t n = PyTuple_Size(tuple);
    PyObject *copy = PyTuple_New(n);
    for (Py_ssize_t k = 0; copy && k < n; k++)
        if (PyTuple_SetItem(copy, k, Py_NewRef(PyTuple_GetItem(tuple, k))) < 0) Py_CLEAR(copy);
    return copy;
}

/* `saved`, or a copy of it in which the tensors that `fields`, the class's `tensors`, names have their histories. */
static PyObject *values_of(tt_node *node, PyObject *saved, PyObject *fields, PyObject *alias) {
    PyObject *copy = NULL;
    for (Py_ssize_t k = 0, n = PyTuple_Size(fields); k < n; k++) {
        PyObject *field = PyTuple_GetItem(fields, k), *edge = PyTuple_GetItem(field, 2);
        Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GetItem(field, 0));
        PyObject *t = PyTuple_GetItem(saved, at);
        if (t && (edge == Py_None || !tt_is_tensor(t))) continue;
        PyObject *owner = t ? owner_of(node, PyLong_AsLong(edge)) : NULL;
        if (owner && ((tt_tensor *)t)->node == owner) continue;
        PyObject *made = owner ? alias_of(t, owner, alias) : NULL;
        if (made && !copy) copy = copy_of(saved);
        if (made && copy && PyTuple_SetItem(copy, at, made) == 0) continue;
        Py_XDECREF(copy);
        return NULL;
    }
    return copy ? copy : Py_NewRef(saved);
}

static PyObject *with_history(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)self;
    if (n != 2) return PyErr_Format(PyExc_TypeError, "with_history(node, alias) takes 2 arguments");
    tt_node *node = tt_node_of(args[0]);
    PyObject *fields = node ? PyObject_GetAttr((PyObject *)Py_TYPE(node), tensors) : NULL, *values = NULL;
    if (fields && node->edges && node->saved) {
        PyObject *saved = Py_NewRef(node->saved); /* another thread's backward may let go of it */
        values = values_of(node, saved, fields, args[1]);
        Py_DECREF(saved);
    }
    Py_XDECREF(fields);
    return values || PyErr_Occurred() ? values : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"nodes_on_path", nodes_on_path, METH_VARARGS,
     "nodes_on_path(targets, roots): a dict of the Nodes whose backward must run for gradients to reach one of\n"
     "``targets``, a dict's keys, from ``roots``, pairs of a Node and its gradient. The values are their edges, with\n"
     "None in the place of those that lead to no target."},
    {"with_history", (PyCFunction)(void (*)(void))with_history, METH_FASTCALL,
     "with_history(node, alias): the saved values with the history that higher derivatives need, by ``alias`` where a\n"
     "tensor has another; None where one is the output of a Node of several."},
    {NULL, NULL, 0, NULL},
};

bool tt_add_graph(PyObject *module) {
    tensors = PyUnicode_InternFromString("tensors");
    num_outputs = PyUnicode_InternFromString("num_outputs");
    return tensors && num_outputs && PyModule_AddFunctions(module, functions) == 0;
}
