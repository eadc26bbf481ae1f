/* Python programs that the target starts are recorded too: they get what the target got in its environment.
 *
 * Only they: the target's own view of the environment and that of any other program stay as they are. So the few
 * built-in functions that start programs are replaced by ones that look at what is started. */
#include "tracer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "PERFLAW_TARGET_"
static PyObject *real_fork_exec, *real_execv, *real_execve, *real_spawn, *real_spawnp, *real_exit;

/* ---- is it Python? ---- */

/* The path of a program as bytes, a new reference; NULL if it is none, or an object whose __fspath__ would have to run:
 * the real function runs it, once. */
static PyObject *path_bytes(PyObject *path) {
    PyObject *bytes = NULL;
    if (!path || !(PyUnicode_CheckExact(path) || PyBytes_CheckExact(path))) return NULL;
    if (!PyUnicode_FSConverter(path, &bytes)) PyErr_Clear();
    return bytes;
}

static int names_python(const char *path) {
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(path, '/')) path = slash + 1;
    return !strncmp(path, "python", 6);
}

/* A script whose first line names Python, by way of env or not. */
static int is_script(const char *path) {
    char line[256] = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, line, sizeof line - 1);
    close(file);
    line[strcspn(line, "\n")] = 0;
    return length > 2 && line[0] == '#' && line[1] == '!' && strstr(line, "python");
}

/* Options that make Python ignore PYTHONPATH or leave out sitecustomize: it would not be recorded. */
static int shuts_out(PyObject *words) {
    for (Py_ssize_t at = 1; words && at < PySequence_Fast_GET_SIZE(words); at++) {
        PyObject *word = path_bytes(PySequence_Fast_GET_ITEM(words, at));
        char option[64] = {0};
        if (word) strncpy(option, PyBytes_AS_STRING(word), sizeof option - 1);
        Py_XDECREF(word);
        if (option[0] != '-' || !option[1] || strchr(option, 'c') || strchr(option, 'm')) return 0;
        if (option[1] != '-' && strpbrk(option, "IES")) return 1;
    }
    return 0;
}

static int is_python(PyObject *path, PyObject *words) {
    PyObject *bytes = path_bytes(path), *fast = words ? PySequence_Fast(words, "") : NULL;
    PyErr_Clear();
    int found = bytes && (names_python(PyBytes_AS_STRING(bytes)) || is_script(PyBytes_AS_STRING(bytes)));
    if (found && fast && shuts_out(fast)) found = 0;
    Py_XDECREF(bytes);
    Py_XDECREF(fast);
    return found && recorder.active;
}

/* Of several places where a program may be, the first that there is. */
static int any_is_python(PyObject *paths, PyObject *words) {
    PyObject *fast = PySequence_Fast(paths, "");
    int found = 0;
    for (Py_ssize_t at = 0; fast && at < PySequence_Fast_GET_SIZE(fast); at++) {
        PyObject *path = PySequence_Fast_GET_ITEM(fast, at), *bytes = path_bytes(path);
        int there = bytes && !access(PyBytes_AS_STRING(bytes), X_OK);
        Py_XDECREF(bytes);
        if (!there) continue;
        found = is_python(path, words);
        break;
    }
    Py_XDECREF(fast);
    PyErr_Clear();
    return found;
}

/* ---- what it gets ---- */

/* Put a variable into a dict of bytes; takes both references. 0 if there is none, or of a name that is not allowed. */
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

/* What this process was given. A program that starts a recorder of its own has its own settings there already. */
static void put_settings(PyObject *into) {
    if (find(into, PREFIX "SPOOL")) return;
    PyObject *name, *value, *original = find(into, "PYTHONPATH");
    Py_ssize_t at = 0;
    while (PyDict_Next(recorder.settings.all, &at, &name, &value)) {
        const char *key = PyUnicode_AsUTF8(name), *setting = PyUnicode_AsUTF8(value);
        if (key && setting && strcmp(key, PREFIX "PYTHONPATH")) put_text(into, key, setting);
    }
    const char *folder = recorder.settings.folder, *before = original ? PyBytes_AS_STRING(original) : NULL;
    PyObject *path = before ? PyBytes_FromFormat("%s:%s", folder, before) : PyBytes_FromString(folder);
    if (before) put_text(into, PREFIX "PYTHONPATH", before);
    if (path) put_text(into, "PYTHONPATH", PyBytes_AS_STRING(path));
    Py_XDECREF(path);
}

/* The next three put an environment into a dict of bytes. 0 where it is not as it should be: the real function says so. */

static int take_own(PyObject *into) {
    for (char **pair = environ; *pair; pair++) put_pair(into, *pair, (Py_ssize_t)strlen(*pair));
    return 1;
}

/* A sequence of NAME=VALUE. */
static int take_list(PyObject *into, PyObject *given) {
    PyObject *fast = PyList_Check(given) || PyTuple_Check(given) ? PySequence_Fast(given, "") : NULL;
    int fine = fast != NULL;
    for (Py_ssize_t at = 0; fine && at < PySequence_Fast_GET_SIZE(fast); at++) {
        PyObject *pair = path_bytes(PySequence_Fast_GET_ITEM(fast, at));
        fine = pair && put_pair(into, PyBytes_AS_STRING(pair), PyBytes_GET_SIZE(pair));
        Py_XDECREF(pair);
    }
    Py_XDECREF(fast);
    return fine;
}

/* A mapping, asked for its keys and values as the real functions ask it: it may be the target's own. */
static int take_mapping(PyObject *into, PyObject *given) {
    PyObject *names = PyMapping_Check(given) ? PyMapping_Keys(given) : NULL;
    PyObject *values = names ? PyMapping_Values(given) : NULL;
    int fine = values && PyList_GET_SIZE(names) == PyList_GET_SIZE(values);
    for (Py_ssize_t at = 0; fine && at < PyList_GET_SIZE(names); at++)
        fine = put(into, path_bytes(PyList_GET_ITEM(names, at)), path_bytes(PyList_GET_ITEM(values, at)));
    Py_XDECREF(values);
    Py_XDECREF(names);
    return fine;
}

enum Shape { SEQUENCE_OR_NONE, MAPPING, MAPPING_OR_NONE };
enum { SPAWNED = PY_VERSION_HEX < 0x030D0000 ? MAPPING : MAPPING_OR_NONE }; /* what posix_spawn takes */

/* A dict of bytes: the environment given (None: the process's own) and ours. NULL: leave it as it is. */
static PyObject *environment(PyObject *given, enum Shape shape) {
    PyObject *all = PyDict_New();
    int fine = 0;
    if (all && given == Py_None && shape != MAPPING) fine = take_own(all);
    else if (all) fine = shape == SEQUENCE_OR_NONE ? take_list(all, given) : take_mapping(all, given);
    if (fine) put_settings(all);
    else Py_CLEAR(all);
    PyErr_Clear();
    return all;
}

/* The same as a list of NAME=VALUE. */
static PyObject *as_list(PyObject *all) {
    PyObject *list = all ? PyList_New(0) : NULL, *name, *value;
    Py_ssize_t at = 0;
    while (list && PyDict_Next(all, &at, &name, &value)) {
        PyObject *pair = PyBytes_FromFormat("%s=%s", PyBytes_AS_STRING(name), PyBytes_AS_STRING(value));
        if (pair) PyList_Append(list, pair);
        Py_XDECREF(pair);
    }
    Py_XDECREF(all);
    PyErr_Clear();
    return list;
}

/* Call a function with one positional argument replaced; with them as they are if there is nothing to put there. */
static PyObject *call_with(PyObject *function, PyObject *arguments, PyObject *names, Py_ssize_t place, PyObject *new) {
    PyObject *changed = new ? PyTuple_GetSlice(arguments, 0, PyTuple_GET_SIZE(arguments)) : NULL;
    if (changed == arguments) { /* an exact tuple's whole slice is the tuple itself */
        Py_DECREF(changed);
        PyObject *list = PySequence_List(arguments);
        changed = list ? PyList_AsTuple(list) : NULL;
        Py_XDECREF(list);
    }
    if (changed) {
        Py_DECREF(PyTuple_GET_ITEM(changed, place));
        PyTuple_SET_ITEM(changed, place, Py_NewRef(new));
    } else {
        PyErr_Clear();
    }
    PyObject *result = PyObject_Call(function, changed ? changed : arguments, names);
    Py_XDECREF(changed);
    Py_XDECREF(new);
    return result;
}

/* ---- the functions ---- */

static PyObject *fork_exec(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    enum { WORDS, PATHS, ENVIRONMENT = 5 };
    PyObject *new = NULL;
    if (PyTuple_GET_SIZE(arguments) > ENVIRONMENT &&
        any_is_python(PyTuple_GET_ITEM(arguments, PATHS), PyTuple_GET_ITEM(arguments, WORDS)))
        new = as_list(environment(PyTuple_GET_ITEM(arguments, ENVIRONMENT), SEQUENCE_OR_NONE));
    return call_with(real_fork_exec, arguments, names, ENVIRONMENT, new);
}

/* execv with our variables in the environment. It stays execv: when it fails, its exception is another than execve's. */
static PyObject *exec_with_list(PyObject *arguments, PyObject *list) {
    Py_ssize_t size = PyList_GET_SIZE(list);
    char **pairs = calloc((size_t)size + 1, sizeof *pairs), **before = environ;
    for (Py_ssize_t at = 0; pairs && at < size; at++) pairs[at] = PyBytes_AS_STRING(PyList_GET_ITEM(list, at));
    if (pairs) environ = pairs;
    PyObject *result = PyObject_Call(real_execv, arguments, NULL);
    environ = before;
    free(pairs);
    return result;
}

static PyObject *exec_inherited(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    if (PyTuple_GET_SIZE(arguments) != 2 || names) return PyObject_Call(real_execv, arguments, names);
    PyObject *path = PyTuple_GET_ITEM(arguments, 0), *words = PyTuple_GET_ITEM(arguments, 1);
    PyObject *list = is_python(path, words) ? as_list(environment(Py_None, SEQUENCE_OR_NONE)) : NULL;
    process_tell_end("os.exec: another program took the process over");
    PyObject *result = list ? exec_with_list(arguments, list) : PyObject_Call(real_execv, arguments, NULL);
    process_take_back_end();
    Py_XDECREF(list);
    return result;
}

static PyObject *with_mapping(PyObject *function, PyObject *arguments, PyObject *names, enum Shape shape) {
    PyObject *new = NULL;
    if (PyTuple_GET_SIZE(arguments) >= 3 && is_python(PyTuple_GET_ITEM(arguments, 0), PyTuple_GET_ITEM(arguments, 1)))
        new = environment(PyTuple_GET_ITEM(arguments, 2), shape);
    return call_with(function, arguments, names, 2, new);
}

static PyObject *exec_with(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    process_tell_end("os.exec: another program took the process over");
    PyObject *result = with_mapping(real_execve, arguments, names, MAPPING);
    process_take_back_end();
    return result;
}

static PyObject *spawn(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    return with_mapping(real_spawn, arguments, names, SPAWNED);
}

static PyObject *spawnp(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    return with_mapping(real_spawnp, arguments, names, SPAWNED);
}

static PyObject *exit_now(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    process_tell_end("os._exit: without the interpreter's shutdown");
    return PyObject_Call(real_exit, arguments, names);
}

#define REPLACED(function) (PyCFunction)(void (*)(void))function, METH_VARARGS | METH_KEYWORDS, NULL
static PyMethodDef replaced[] = {
    {"fork_exec", REPLACED(fork_exec)}, {"execv", REPLACED(exec_inherited)},   {"execve", REPLACED(exec_with)},
    {"posix_spawn", REPLACED(spawn)},   {"posix_spawnp", REPLACED(spawnp)}, {"_exit", REPLACED(exit_now)},
};
static PyObject **const real[] = {&real_fork_exec, &real_execv, &real_execve, &real_spawn, &real_spawnp, &real_exit};

/* Put our function in the place of a module's, wherever it stands under that name. */
static void replace(const char *home, const char *also, PyMethodDef *method, PyObject **kept) {
    PyObject *module = PyImport_ImportModule(home), *other = PyImport_ImportModule(also);
    *kept = module ? PyObject_GetAttrString(module, method->ml_name) : NULL;
    PyObject *name = PyUnicode_FromString(home), *new = NULL;
    if (*kept && PyCFunction_Check(*kept)) { /* what a person sees of it stays: documentation, signature, module */
        method->ml_doc = ((PyCFunctionObject *)*kept)->m_ml->ml_doc;
        new = PyCFunction_NewEx(method, PyCFunction_GET_SELF(*kept), name);
    }
    if (new) PyObject_SetAttrString(module, method->ml_name, new);
    if (new && other && PyObject_HasAttrString(other, method->ml_name)) PyObject_SetAttrString(other, method->ml_name, new);
    Py_XDECREF(new);
    Py_XDECREF(name);
    Py_XDECREF(module);
    Py_XDECREF(other);
    PyErr_Clear();
}

/* subprocess keeps a name of its own for it, and may be imported already: by a .pth file. */
static void replace_in_subprocess(void) {
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "subprocess");
    PyObject *home = module ? PyImport_ImportModule("_posixsubprocess") : NULL;
    PyObject *known = home ? PyObject_GetAttrString(module, "_fork_exec") : NULL;
    PyObject *new = home ? PyObject_GetAttrString(home, "fork_exec") : NULL;
    if (new && known == real_fork_exec) PyObject_SetAttrString(module, "_fork_exec", new);
    Py_XDECREF(new);
    Py_XDECREF(known);
    Py_XDECREF(home);
    PyErr_Clear();
}

void children_start(void) {
    for (size_t at = 0; at < sizeof replaced / sizeof *replaced; at++)
        replace(at ? "posix" : "_posixsubprocess", at ? "os" : "_posixsubprocess", &replaced[at], real[at]);
    replace_in_subprocess();
}
