/* Python types written in C: the module tinytorch.backends._native, which lies in cffi's shared object beside the
 * module that cffi makes. Only the limited API of CPython 3.10 is used, so that one build serves all later versions. */
#pragma once
#define PY_SSIZE_T_CLEAN
#undef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <structmember.h>
#include "core/tt.h"

/* The pointer of a cdata, or NULL and a Python exception: cffi's own conversion, in the file that cffi writes. */
tt_array *tt_pointer_of(PyObject *cdata, PyObject *ctype);
PyObject *tt_cdata_of(tt_array *a, PyObject *ctype); /* and back */

/* A Tensor as C sees it. */
typedef struct {
    PyObject_HEAD PyObject
        *handle; /* a cdata tt_array *, owned with what it points to; NULL where creation has failed */
    PyObject *node;
} tt_tensor;
tt_tensor *tt_tensor_of(PyObject *object);  /* itself; NULL and a TypeError for any other object */
tt_array *tt_array_of(const tt_tensor *t);  /* NULL and a Python exception when it has no descriptor */
bool tt_is_tensor(PyObject *object);
PyObject *tt_own(PyObject *cls, tt_array *a); /* a new object of the class, without history, that owns the array */
/* Where C made nothing: None, which a caller takes for declining, or an exception: of memory, of a callback, and where
 * it `raises` what the C side refused. */
PyObject *tt_nothing(bool raises);

/* Are this thread's operators recorded? 0 or 1; -1 where somebody watches what they write, or with an exception. */
int tt_recording(void);
/* Notes that a tensor was written: autograd/node.py's last_write. */
bool tt_note_write(void);

/* A Node as C sees it. */
typedef struct {
    PyObject_HEAD PyObject *edges, *saved, *versions, *extra;
    long long key;
} tt_node;
tt_node *tt_node_of(PyObject *object); /* itself; NULL and a TypeError for any other object */

/* Each adds its types and functions to the module; false and a Python exception when it cannot. */
bool tt_add_tensor(PyObject *module, PyObject *ffi); /* tensor.c */
bool tt_add_contexts(PyObject *module);              /* contexts.c */
bool tt_add_node(PyObject *module);                  /* node.c */
bool tt_add_graph(PyObject *module);                 /* graph.c */
bool tt_add_calls(PyObject *module);                 /* calls.c */
