#include "environment.h"

#include <string.h>
#include <unistd.h>

#include "programs.h"

#define PREFIX "PERFLAW_TARGET_"

/* Put a variable into a dict of bytes; takes both references. 0 if one is NULL, or the name is not allowed. */
static int put(PyObject *into, PyObject *name, PyObject *value) {
    int done = name && value && PyBytes_GET_SIZE(name) && !strchr(PyBytes_AS_STRING(name) + 1, '=') &&
               !PyDict_SetItem(into, name, value);
    Py_XDECREF(name);
    Py_XDECREF(value);
    return done;
}

static int put_text(PyObject *into, const char *name, const char *value) {
    return put(into, PyBytes_FromString(name), PyBytes_FromString(value));
}

static int put_pair(PyObject *into, const char *pair, Py_ssize_t length) {
    const char *equals = length ? memchr(pair + 1, '=', (size_t)length - 1) : NULL;
    if (!equals) return 0;
    return put(into, PyBytes_FromStringAndSize(pair, equals - pair), PyBytes_FromString(equals + 1));
}

static PyObject *find(PyObject *all, const char *name) {
    PyObject *key = PyBytes_FromString(name), *found = key ? PyDict_GetItemWithError(all, key) : NULL;
    Py_XDECREF(key);
    return found;
}

/* Add what this process was given, unless there are settings already: a program may start a recorder of its own. */
static void put_settings(PyObject *into) {
    if (find(into, PREFIX "SPOOL")) return;
    PyObject *name, *value, *original = find(into, "PYTHONPATH");
    Py_ssize_t at = 0;
    while (PyDict_Next(recording.settings.given, &at, &name, &value)) {
        const char *key = PyUnicode_AsUTF8(name), *setting = PyUnicode_AsUTF8(value);
        if (key && setting && strcmp(key, PREFIX "PYTHONPATH")) put_text(into, key, setting);
    }
    const char *folder = recording.settings.folder, *before = original ? PyBytes_AS_STRING(original) : NULL;
    PyObject *path = before ? PyBytes_FromFormat("%s:%s", folder, before) : PyBytes_FromString(folder);
    if (before) put_text(into, PREFIX "PYTHONPATH", before);
    if (path) put_text(into, "PYTHONPATH", PyBytes_AS_STRING(path));
    Py_XDECREF(path);
}

/* Each of these three puts an environment into a dict of bytes. 0 if the environment is wrong, which the real
 * function then says. */

static int take_own(PyObject *into) {
    for (char **pair = environ; *pair; pair++) put_pair(into, *pair, (Py_ssize_t)strlen(*pair));
    return 1;
}

/* The environment is a sequence of NAME=VALUE. */
static int take_list(PyObject *into, PyObject *given) {
    PyObject *fast = PyList_Check(given) || PyTuple_Check(given) ? PySequence_Fast(given, "") : NULL;
    int fine = fast != NULL;
    for (Py_ssize_t at = 0; fine && at < PySequence_Fast_GET_SIZE(fast); at++) {
        PyObject *pair = child_path(PySequence_Fast_GET_ITEM(fast, at));
        fine = pair && put_pair(into, PyBytes_AS_STRING(pair), PyBytes_GET_SIZE(pair));
        Py_XDECREF(pair);
    }
    Py_XDECREF(fast);
    return fine;
}

/* The environment is a mapping, which is asked as the real functions ask it, because its class may be the program's
 * own. */
static int take_mapping(PyObject *into, PyObject *given) {
    PyObject *names = PyMapping_Check(given) ? PyMapping_Keys(given) : NULL;
    PyObject *values = names ? PyMapping_Values(given) : NULL;
    int fine = values && PyList_GET_SIZE(names) == PyList_GET_SIZE(values);
    for (Py_ssize_t at = 0; fine && at < PyList_GET_SIZE(names); at++)
        fine = put(into, child_path(PyList_GET_ITEM(names, at)), child_path(PyList_GET_ITEM(values, at)));
    Py_XDECREF(values);
    Py_XDECREF(names);
    return fine;
}

PyObject *child_environment(PyObject *given, enum Shape shape) {
    PyObject *all = PyDict_New();
    int fine = 0;
    if (all && given == Py_None && shape != MAPPING) fine = take_own(all);
    else if (all) fine = shape == SEQUENCE_OR_NONE ? take_list(all, given) : take_mapping(all, given);
    if (fine) put_settings(all);
    else Py_CLEAR(all);
    PyErr_Clear();
    return all;
}

PyObject *child_list(PyObject *environment) {
    PyObject *list = environment ? PyList_New(0) : NULL, *name, *value;
    Py_ssize_t at = 0;
    while (list && PyDict_Next(environment, &at, &name, &value)) {
        PyObject *pair = PyBytes_FromFormat("%s=%s", PyBytes_AS_STRING(name), PyBytes_AS_STRING(value));
        if (pair) PyList_Append(list, pair);
        Py_XDECREF(pair);
    }
    Py_XDECREF(environment);
    PyErr_Clear();
    return list;
}
