#include "offsets.h"

#include <stddef.h>

#include <internal/pycore_dict.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>

/* ``runtime`` is relative to the function that executes code, which a recorder finds among the program's symbols; both are
 * in the same file, so their distance is the same in every process. */
PyObject *offsets_dict(void) {
    const struct { const char *name; Py_ssize_t value; } offsets[] = {
        {"runtime", (char *)&_PyRuntime - (char *)(void *)_PyEval_EvalFrameDefault},
        {"interpreters", offsetof(_PyRuntimeState, interpreters.head)},
        {"next_interpreter", offsetof(PyInterpreterState, next)},
        {"threads", offsetof(PyInterpreterState, threads.head)},
        {"next_thread", offsetof(PyThreadState, next)},
        {"thread_id", offsetof(PyThreadState, native_thread_id)},
#if PY_VERSION_HEX < 0x030D0000
        {"cframe", offsetof(PyThreadState, cframe)},
        {"current_frame", offsetof(_PyCFrame, current_frame)},
        {"code", offsetof(Frame, f_code)},
#else
        {"cframe", -1},
        {"current_frame", offsetof(PyThreadState, current_frame)},
        {"code", offsetof(Frame, f_executable)},
#endif
        {"frame_size", sizeof(Frame)},
        {"previous", offsetof(Frame, previous)},
        {"globals", offsetof(Frame, f_globals)},
        {"type", offsetof(PyObject, ob_type)},
        {"code_type", (char *)&PyCode_Type - (char *)(void *)_PyEval_EvalFrameDefault},
        {"qualified_name", offsetof(PyCodeObject, co_qualname)},
        {"first_line", offsetof(PyCodeObject, co_firstlineno)},
        {"text_length", offsetof(PyASCIIObject, length)},
        {"text_state", offsetof(PyASCIIObject, state)},
        {"ascii_text", sizeof(PyASCIIObject)},
        {"compact_text", sizeof(PyCompactUnicodeObject)},
        {"keys", offsetof(PyDictObject, ma_keys)},
        {"index_bits", offsetof(struct _dictkeysobject, dk_log2_index_bytes)},
        {"key_kind", offsetof(struct _dictkeysobject, dk_kind)},
        {"indices", offsetof(struct _dictkeysobject, dk_indices)},
    };
    PyObject *dict = PyDict_New();
    for (size_t at = 0; dict && at < sizeof offsets / sizeof *offsets; at++) {
        PyObject *value = PyLong_FromSsize_t(offsets[at].value);
        if (!value || PyDict_SetItemString(dict, offsets[at].name, value)) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}
