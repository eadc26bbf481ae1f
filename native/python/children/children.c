#include "children.h"

#include <stdlib.h>
#include <unistd.h>

#include "environment.h"
#include "programs.h"
#include "python/process.h"

static PyObject *real_fork_exec, *real_execv, *real_execve, *real_spawn, *real_spawnp, *real_exit;

/* Call a function with one positional argument replaced; as they are if `new` is NULL. Takes the reference to `new`. */
static PyObject *call_with(PyObject *function, PyObject *arguments, PyObject *names, Py_ssize_t place, PyObject *new) {
    PyObject *changed = new ? PyTuple_GetSlice(arguments, 0, PyTuple_GET_SIZE(arguments)) : NULL;
    if (changed == arguments) { /* the whole slice of an exact tuple is the tuple itself */
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
        child_any_is_python(PyTuple_GET_ITEM(arguments, PATHS), PyTuple_GET_ITEM(arguments, WORDS)))
        new = child_list(child_environment(PyTuple_GET_ITEM(arguments, ENVIRONMENT), SEQUENCE_OR_NONE));
    return call_with(real_fork_exec, arguments, names, ENVIRONMENT, new);
}

/* Call execv with our variables in the environment. It has to be execv, because execve raises another exception if
 * it fails. */
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

static PyObject *exec_with_inherited(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    if (PyTuple_GET_SIZE(arguments) != 2 || names) return PyObject_Call(real_execv, arguments, names);
    PyObject *path = PyTuple_GET_ITEM(arguments, 0), *words = PyTuple_GET_ITEM(arguments, 1);
    PyObject *list = child_is_python(path, words) ? child_list(child_environment(Py_None, SEQUENCE_OR_NONE)) : NULL;
    process_write_end("os.exec: another program took the process over");
    PyObject *result = list ? exec_with_list(arguments, list) : PyObject_Call(real_execv, arguments, NULL);
    process_take_back_end();
    Py_XDECREF(list);
    return result;
}

static PyObject *call_with_environment(PyObject *function, PyObject *arguments, PyObject *names, enum Shape shape) {
    PyObject *new = NULL;
    if (PyTuple_GET_SIZE(arguments) >= 3 && child_is_python(PyTuple_GET_ITEM(arguments, 0), PyTuple_GET_ITEM(arguments, 1)))
        new = child_environment(PyTuple_GET_ITEM(arguments, 2), shape);
    return call_with(function, arguments, names, 2, new);
}

static PyObject *exec_with_given(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    process_write_end("os.exec: another program took the process over");
    PyObject *result = call_with_environment(real_execve, arguments, names, MAPPING);
    process_take_back_end();
    return result;
}

static PyObject *spawn(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    return call_with_environment(real_spawn, arguments, names, SPAWN_SHAPE);
}

static PyObject *spawnp(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    return call_with_environment(real_spawnp, arguments, names, SPAWN_SHAPE);
}

static PyObject *exit_at_once(PyObject *module, PyObject *arguments, PyObject *names) {
    (void)module;
    process_write_end("os._exit: without the interpreter's shutdown");
    return PyObject_Call(real_exit, arguments, names);
}

#define METHOD(function) (PyCFunction)(void (*)(void))function, METH_VARARGS | METH_KEYWORDS, NULL
static PyMethodDef replacements[] = {
    {"fork_exec", METHOD(fork_exec)}, {"execv", METHOD(exec_with_inherited)},   {"execve", METHOD(exec_with_given)},
    {"posix_spawn", METHOD(spawn)},   {"posix_spawnp", METHOD(spawnp)}, {"_exit", METHOD(exit_at_once)},
};
static PyObject **const originals[] = {&real_fork_exec, &real_execv, &real_execve, &real_spawn, &real_spawnp, &real_exit};

/* Put a function of ours in place of a module's, in that module and in the one that has it from there. */
static void replace(const char *home, const char *also, PyMethodDef *method, PyObject **original) {
    PyObject *module = PyImport_ImportModule(home), *other = PyImport_ImportModule(also);
    *original = module ? PyObject_GetAttrString(module, method->ml_name) : NULL;
    PyObject *name = PyUnicode_FromString(home), *new = NULL;
    if (*original && PyCFunction_Check(*original)) { /* what a person sees of it stays: documentation, signature, module */
        method->ml_doc = ((PyCFunctionObject *)*original)->m_ml->ml_doc;
        new = PyCFunction_NewEx(method, PyCFunction_GET_SELF(*original), name);
    }
    if (new) PyObject_SetAttrString(module, method->ml_name, new);
    if (new && other && PyObject_HasAttrString(other, method->ml_name)) PyObject_SetAttrString(other, method->ml_name, new);
    Py_XDECREF(new);
    Py_XDECREF(name);
    Py_XDECREF(module);
    Py_XDECREF(other);
    PyErr_Clear();
}

/* subprocess has fork_exec under a name of its own, and a .pth file may have imported it already. */
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
    static int is_started;
    if (is_started++) return;
    for (size_t at = 0; at < sizeof replacements / sizeof *replacements; at++)
        replace(at ? "posix" : "_posixsubprocess", at ? "os" : "_posixsubprocess", &replacements[at], originals[at]);
    replace_in_subprocess();
}
