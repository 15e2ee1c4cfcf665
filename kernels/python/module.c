/* The module tinytorch.backends._native. */
#include "python.h"

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "tinytorch.backends._native", .m_size = -1};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void) {
    PyObject *cpu = PyImport_ImportModule("tinytorch.backends._cpu");
    PyObject *ffi = cpu ? PyObject_GetAttrString(cpu, "ffi") : NULL;
    PyObject *module = ffi ? PyModule_Create(&definition) : NULL;
    if (module && !(tt_add_tensor(module, ffi) && tt_add_contexts(module) && tt_add_node(module) &&
                    tt_add_graph(module) && tt_add_calls(module)))
        Py_CLEAR(module);
    Py_XDECREF(cpu);
    Py_XDECREF(ffi);
    return module;
}
