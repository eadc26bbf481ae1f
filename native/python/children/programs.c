#include "programs.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

PyObject *child_path(PyObject *path) {
    PyObject *bytes = NULL;
    if (!path || !(PyUnicode_CheckExact(path) || PyBytes_CheckExact(path))) return NULL;
    if (!PyUnicode_FSConverter(path, &bytes)) PyErr_Clear();
    return bytes;
}

static int names_python(const char *path) {
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(path, '/')) path = slash + 1;
    return !strncmp(path, "python", 6);
}

/* Whether this is a script whose first line names Python, directly or by env. */
static int is_script(const char *path) {
    char line[256] = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, line, sizeof line - 1);
    close(file);
    line[strcspn(line, "\n")] = 0;
    return length > 2 && line[0] == '#' && line[1] == '!' && strstr(line, "python");
}

/* Whether an option makes Python ignore PYTHONPATH or leave out sitecustomize, so that it would not be recorded. */
static int shuts_out(PyObject *words) {
    for (Py_ssize_t at = 1; words && at < PySequence_Fast_GET_SIZE(words); at++) {
        PyObject *word = child_path(PySequence_Fast_GET_ITEM(words, at));
        char option[64] = {0};
        if (word) strncpy(option, PyBytes_AS_STRING(word), sizeof option - 1);
        Py_XDECREF(word);
        if (option[0] != '-' || !option[1] || strchr(option, 'c') || strchr(option, 'm')) return 0;
        if (option[1] != '-' && strpbrk(option, "IES")) return 1;
    }
    return 0;
}

int child_is_python(PyObject *path, PyObject *words) {
    PyObject *bytes = child_path(path), *fast = words ? PySequence_Fast(words, "") : NULL;
    PyErr_Clear();
    int is_python = bytes && (names_python(PyBytes_AS_STRING(bytes)) || is_script(PyBytes_AS_STRING(bytes)));
    if (is_python && fast && shuts_out(fast)) is_python = 0;
    Py_XDECREF(bytes);
    Py_XDECREF(fast);
    return is_python && recording.active;
}

int child_any_is_python(PyObject *paths, PyObject *words) {
    PyObject *fast = PySequence_Fast(paths, "");
    int is_python = 0;
    for (Py_ssize_t at = 0; fast && at < PySequence_Fast_GET_SIZE(fast); at++) {
        PyObject *path = PySequence_Fast_GET_ITEM(fast, at), *bytes = child_path(path);
        int exists = bytes && !access(PyBytes_AS_STRING(bytes), X_OK);
        Py_XDECREF(bytes);
        if (!exists) continue;
        is_python = child_is_python(path, words);
        break;
    }
    Py_XDECREF(fast);
    PyErr_Clear();
    return is_python;
}
