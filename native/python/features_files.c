/* Sizes of the files that arguments name, by one stat each: nothing is opened. */
#include "features_program.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static Py_ssize_t regular_bytes(const char *path) {
    struct stat about;
    int before = errno; /* the target may be about to look at it */
    int failed = stat(path, &about);
    errno = before;
    return failed || !S_ISREG(about.st_mode) ? -1 : (Py_ssize_t)about.st_size;
}

Py_ssize_t file_bytes(PyObject *text) {
    char path[PATH_MAX];
    return utf8_of(text, path, sizeof path) > 0 ? regular_bytes(path) : -1;
}

typedef enum Part { WHOLE, PARTS, RAW, PARTS_OF_PATH } Part;

/* The slots that pathlib keeps a path in: as one text once someone asked for it, in pieces before (3.11; 3.12 on). */
static PyObject *part_name(Part part) {
    static const char *const TEXT_OF[PARTS_OF_PATH] = {[WHOLE] = "_str", [PARTS] = "_parts", [RAW] = "_raw_paths"};
    static PyObject *names[PARTS_OF_PATH];
    if (!names[part] && !PyErr_Occurred()) {
        names[part] = PyUnicode_InternFromString(TEXT_OF[part]); /* kept: pathlib itself holds the same */
        PyErr_Clear();
    }
    return names[part];
}

static PyObject *part_of(PyObject *path, Part part) {
    PyObject *name = part_name(part);
    Py_ssize_t offset = name ? slot_offset(Py_TYPE(path), name) : 0;
    return offset ? slot_value(path, offset) : NULL;
}

/* As os.path.join does it: an absolute piece starts anew. Returns the length of the whole, -1 if it is no path. */
static Py_ssize_t join(char *path, size_t room, size_t used, PyObject *piece) {
    char text[PATH_MAX];
    Py_ssize_t length = utf8_of(piece, text, sizeof text);
    if (length <= 0) return length < 0 ? -1 : (Py_ssize_t)used;
    if (*text == '/') used = 0;
    else if (used && path[used - 1] != '/') path[used++] = '/';
    if (used + (size_t)length + 2 > room) return -1;
    memcpy(path + used, text, (size_t)length + 1);
    return (Py_ssize_t)used + length;
}

static Py_ssize_t joined_bytes(PyObject *pieces) {
    char path[PATH_MAX];
    Py_ssize_t used = 0;
    if (!pieces || !PyList_CheckExact(pieces)) return -1;
    for (Py_ssize_t at = 0; used >= 0 && at < PyList_GET_SIZE(pieces); at++)
        used = join(path, sizeof path, (size_t)used, PyList_GET_ITEM(pieces, at));
    while (used > 1 && path[used - 1] == '/') path[--used] = 0;
    return used > 0 ? regular_bytes(path) : -1;
}

Py_ssize_t path_bytes(PyObject *path) {
    PyObject *whole = part_of(path, WHOLE);
    if (whole && PyUnicode_CheckExact(whole)) return file_bytes(whole);
    PyObject *pieces = part_of(path, RAW);
    return joined_bytes(pieces ? pieces : part_of(path, PARTS));
}
