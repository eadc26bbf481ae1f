/* The names that a component goes by, and whether it is recorded: what _perflaw_functions.py says, in C. */
#include "tracer.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { ROOTS = 6, MOST_NAMES = 20 };
static char *library_roots[ROOTS];
static int root_count;

static const char *utf8(PyObject *text) {
    const char *data = text && PyUnicode_CheckExact(text) ? PyUnicode_AsUTF8(text) : NULL;
    if (!data) PyErr_Clear();
    return data;
}

static int begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

/* ---- where libraries live ---- */

static void add_root(const char *folder, const char *below) {
    char *root = folder && root_count < ROOTS ? malloc(strlen(folder) + strlen(below) + 1) : NULL;
    if (!root) return;
    strcat(strcpy(root, folder), below);
    library_roots[root_count++] = root;
}

int naming_start(void) {
    PyObject *os = PyImport_ImportModule("os"), *file = os ? PyObject_GetAttrString(os, "__file__") : NULL;
    char *library = file && utf8(file) ? strdup(utf8(file)) : NULL;
    if (library && strrchr(library, '/')) strrchr(library, '/')[1] = 0;
    add_root(library, "");
    free(library);
    for (int base = 0; base < 2; base++) {
        const char *prefix = utf8(PySys_GetObject(base ? "base_prefix" : "prefix"));
        add_root(prefix, "/lib/");
        add_root(prefix, "/lib64/");
    }
    Py_XDECREF(file);
    Py_XDECREF(os);
    PyErr_Clear();
    return 1;
}

static int in_library(const char *file) {
    if (strstr(file, "/site-packages/") || strstr(file, "/dist-packages/")) return 1;
    for (int at = 0; at < root_count; at++)
        if (begins(file, library_roots[at])) return 1;
    return 0;
}

/* ---- the name ---- */

static const char *module_of(const Frame *frame) {
    PyObject *globals = frame->f_globals;
    if (!globals || !PyDict_Check(globals)) return "";
    const char *name = utf8(PyDict_GetItemString(globals, "__name__"));
    return name ? name : "";
}

/* multiprocessing's children import the main script under the name __mp_main__. */
static int is_main(const char *module) { return !strcmp(module, "__main__") || !strcmp(module, "__mp_main__"); }

/* module.qualified.name; lambdas and comprehensions carry their line, for many share one name. */
static char *full_name(const char *module, const PyCodeObject *code) {
    const char *name = utf8(code->co_qualname);
    size_t length = strlen(module) + (name ? strlen(name) : 1) + 32;
    char *whole = malloc(length);
    if (!whole) return NULL;
    if (!name) name = "?";
    int nameless = *name && name[strlen(name) - 1] == '>' && strcmp(name, "<module>");
    int used = snprintf(whole, length, "%s%s%s", module, *module ? "." : "", name);
    if (nameless) snprintf(whole + used, length - (size_t)used, ":%d", code->co_firstlineno);
    return whole;
}

/* ---- whose it is ---- */

/* Whether a comma-separated list has this package. */
static int listed(const char *list, const char *package, size_t length) {
    for (const char *at = list; at && *at;) {
        const char *end = strchrnul(at, ',');
        if ((size_t)(end - at) == length && length && !strncmp(at, package, length)) return 1;
        at = *end ? end + 1 : NULL;
    }
    return 0;
}

enum Origin { OWN, LIBRARY, INTERNAL };

/* Code made by exec or a template: it belongs to its globals' file, or with bare globals to whoever runs it. */
static enum Origin origin_of_made_code(const Frame *frame) {
    PyObject *globals = frame->f_globals;
    const char *file = globals && PyDict_Check(globals) ? utf8(PyDict_GetItemString(globals, "__file__")) : NULL;
    if (file) return in_library(file) ? LIBRARY : OWN;
    Frame *back = frame_caller(frame);
    const Function *caller = back ? function_of(back) : NULL;
    return caller && caller->own ? OWN : LIBRARY;
}

static enum Origin origin_of(const Function *function, const Frame *frame) {
    const char *file = utf8(function->code->co_filename), *name = function->name;
    size_t package = strcspn(name, "."), main = strlen(recorder.settings.main);
    if (listed(recorder.settings.own, name, package)) return OWN;
    if (begins(name, recorder.settings.main) && name[main] == '.') return OWN;
    if (!file) return LIBRARY;
    if (begins(file, "<frozen") || begins(file, recorder.settings.folder)) return INTERNAL;
    if (*file == '<') return origin_of_made_code(frame);
    return in_library(file) ? LIBRARY : OWN;
}

/* ---- whether it is recorded ---- */

static int matches_one(const char *name, const char *glob, size_t length) {
    char pattern[1024];
    if (length >= sizeof pattern) return 0;
    memcpy(pattern, glob, length);
    pattern[length] = 0;
    return !fnmatch(pattern, name, FNM_NOESCAPE);
}

/* Whether one of the globs, a line each, matches the name or, in the main script, the name under __main__. */
static int matches(const char *globs, const char *name, const char *qualified) {
    for (const char *at = globs; at && *at;) {
        size_t length = strcspn(at, "\n");
        if (matches_one(name, at, length) || (qualified && matches_one(qualified, at, length))) return 1;
        at += length + (at[length] == '\n');
    }
    return 0;
}

static enum Mode mode_of(const char *name, const char *qualified, enum Origin origin) {
    const Settings *settings = &recorder.settings;
    if (origin == INTERNAL || matches(settings->exclude, name, qualified)) return SKIP;
    if (*settings->select) return matches(settings->select, name, qualified) ? ALWAYS : SKIP;
    return origin == OWN ? ALWAYS : FROM_OWN;
}

/* Remember a name that the selection left out; those of the main script are the ones a person looks for. */
static void note_left_out(const char *name) {
    int own = begins(name, recorder.settings.main);
    if (recorder.unselected++ >= MOST_NAMES && !own) return;
    if (recorder.left_out.length > 4096) return;
    text_quote(&recorder.left_out, name, strlen(name));
    text_word(&recorder.left_out, ", ");
}

void naming_classify(Function *function, Frame *frame) {
    const char *module = module_of(frame);
    int main = is_main(module);
    function->name = full_name(main ? recorder.settings.main : module, function->code);
    if (!function->name) return; /* no memory: mode SKIP */
    char *qualified = main ? full_name("__main__", function->code) : NULL;
    enum Origin origin = origin_of(function, frame);
    function->own = origin == OWN;
    function->mode = mode_of(function->name, qualified, origin);
    free(qualified);
    if (function->mode == SKIP && origin != INTERNAL) note_left_out(function->name);
    if (function->mode == FROM_OWN) recorder.library++;
}
