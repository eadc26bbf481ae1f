#include "naming.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"

enum { MAX_ROOTS = 6, MAX_NAMES = 20 };
static char *library_roots[MAX_ROOTS];
static int root_count;

static const char *utf8(PyObject *text) {
    const char *data = text && PyUnicode_CheckExact(text) ? PyUnicode_AsUTF8(text) : NULL;
    if (!data) PyErr_Clear();
    return data;
}

static int begins_with(const char *text, const char *start) { return !strncmp(text, start, strlen(start)); }

/* ---- where libraries are ---- */

static void add_root(const char *folder, const char *below) {
    char *root = folder && root_count < MAX_ROOTS ? malloc(strlen(folder) + strlen(below) + 1) : NULL;
    if (!root) return;
    strcat(strcpy(root, folder), below);
    library_roots[root_count++] = root;
}

void naming_start(void) {
    if (root_count) return;
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
}

static int in_library(const char *file) {
    if (strstr(file, "/site-packages/") || strstr(file, "/dist-packages/")) return 1;
    for (int at = 0; at < root_count; at++)
        if (begins_with(file, library_roots[at])) return 1;
    return 0;
}

/* ---- the name ---- */

static const char *module_of(const Frame *frame) {
    PyObject *globals = frame->f_globals;
    if (!globals || !PyDict_Check(globals)) return "";
    const char *name = utf8(PyDict_GetItemString(globals, "__name__"));
    return name ? name : "";
}

/* Children of multiprocessing import the main script under the name __mp_main__. */
static int is_main(const char *module) { return !strcmp(module, "__main__") || !strcmp(module, "__mp_main__"); }

/* module.qualified.name; lambdas and comprehensions have their line appended, because many share one name. */
static char *full_name(const char *module, const PyCodeObject *code) {
    const char *name = utf8(code->co_qualname);
    size_t length = strlen(module) + (name ? strlen(name) : 1) + 32;
    char *whole = malloc(length);
    if (!whole) return NULL;
    if (!name) name = "?";
    int is_nameless = *name && name[strlen(name) - 1] == '>' && strcmp(name, "<module>");
    int used = snprintf(whole, length, "%s%s%s", module, *module ? "." : "", name);
    if (is_nameless) snprintf(whole + used, length - (size_t)used, ":%d", code->co_firstlineno);
    return whole;
}

/* ---- whose it is ---- */

/* Whether a package is in a comma-separated list. */
static int is_listed(const char *list, const char *package, size_t length) {
    for (const char *at = list; at && *at;) {
        const char *end = strchrnul(at, ',');
        if ((size_t)(end - at) == length && length && !strncmp(at, package, length)) return 1;
        at = *end ? end + 1 : NULL;
    }
    return 0;
}

/* Whether a file is ours, or a frozen module that imports or starts programs: its time belongs to the code that asks it. */
static int is_internal(const char *file) {
    static const char *const frozen[] = {"<frozen importlib", "<frozen zipimport>", "<frozen runpy>", "<frozen site>"};
    for (size_t at = 0; at < sizeof frozen / sizeof *frozen; at++)
        if (begins_with(file, frozen[at])) return 1;
    return begins_with(file, recording.settings.folder);
}

/* Code made by exec or a template belongs to the file of its globals. */
static enum Origin origin_by_globals(const Frame *frame) {
    PyObject *globals = frame->f_globals;
    const char *file = globals && PyDict_Check(globals) ? utf8(PyDict_GetItemString(globals, "__file__")) : NULL;
    if (!file) return UNKNOWN_ORIGIN;
    return in_library(file) ? LIBRARY : OWN;
}

static enum Origin origin_of(const Function *function, const Frame *frame) {
    const char *file = utf8(function->code->co_filename), *name = function->name;
    size_t package = strcspn(name, "."), main = strlen(recording.settings.main);
    if (is_listed(recording.settings.own, name, package)) return OWN;
    if (begins_with(name, recording.settings.main) && name[main] == '.') return OWN;
    if (!file) return LIBRARY;
    if (is_internal(file)) return INTERNAL;
    if (begins_with(file, "<frozen ")) return LIBRARY; /* os, posixpath, abc, codecs: others are in files */
    if (*file == '<') return origin_by_globals(frame);
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

/* Whether one of the globs, one per line, matches the name or, in the main script, the name under __main__. */
static int matches(const char *globs, const char *name, const char *qualified) {
    for (const char *at = globs; at && *at;) {
        size_t length = strcspn(at, "\n");
        if (matches_one(name, at, length) || (qualified && matches_one(qualified, at, length))) return 1;
        at += length + (at[length] == '\n');
    }
    return 0;
}

/* Whether invocations of a function are observations: its name is what the person wrote, or ends with it after a dot. */
static int is_observed(const char *name, const char *qualified) {
    const char *per = recording.settings.per;
    char ending[1024] = "*.";
    if (!*per || strlen(per) + sizeof "*." > sizeof ending) return 0;
    strcat(ending, per);
    return matches(per, name, qualified) || matches(ending, name, qualified);
}

static enum Mode mode_of(const char *name, const char *qualified, enum Origin origin) {
    const Settings *settings = &recording.settings;
    if (origin == INTERNAL || matches(settings->exclude, name, qualified)) return NEVER;
    if (*settings->select) return matches(settings->select, name, qualified) ? ALWAYS : NEVER;
    return settings->only_own && origin == LIBRARY ? NEVER : ALWAYS;
}

/* Remember the name of a function that is not selected. Those of the main script are the ones that a person looks
 * for. */
static void note_unselected(const char *name) {
    int is_main_script = begins_with(name, recording.settings.main);
    if (recording.unselected_functions++ >= MAX_NAMES && !is_main_script) return;
    if (recording.unselected_names.length > 4096) return;
    text_add_quoted(&recording.unselected_names, name, strlen(name));
    text_add_word(&recording.unselected_names, ", ");
}

/* Whether code is that of a module's file or of a class: it has no fast variables. */
static int is_body(const PyCodeObject *code) {
    const char *file = utf8(code->co_filename);
    return !(code->co_flags & CO_OPTIMIZED) && file && *file != '<';
}

static int is_main_script(const Function *function) {
    const char *name = utf8(function->code->co_qualname);
    return function->is_in_main && name && !strcmp(name, "<module>");
}

enum Origin naming_set_name(Function *function, const Frame *frame) {
    const char *module = module_of(frame);
    function->is_in_main = is_main(module);
    function->name = full_name(function->is_in_main ? recording.settings.main : module, function->code);
    return function->name ? origin_of(function, frame) : LIBRARY;
}

void naming_set_mode(Function *function) {
    enum Origin origin = function->origin;
    char *qualified = function->is_in_main ? full_name("__main__", function->code) : NULL;
    function->is_own = origin == OWN;
    function->is_observed = origin != INTERNAL && is_observed(function->name, qualified);
    function->mode = function->is_observed ? ALWAYS : mode_of(function->name, qualified, origin);
    free(qualified);
    if (function->mode == NEVER && origin != INTERNAL) note_unselected(function->name);
    function->is_left_out_in_imports = origin == LIBRARY && !*recording.settings.select;
    function->is_body = is_body(function->code) && !is_main_script(function);
    function->may_be_counted = function->is_left_out_in_imports && !function->is_observed &&
                               !frame_is_generator(function->code) && budget_is_kept();
}
