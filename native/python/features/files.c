#include "files.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "names.h"
#include "slots.h"

static Py_ssize_t regular_bytes(const char *path) {
    struct stat about;
    int before = errno; /* the program may be about to look at it */
    int failed = stat(path, &about);
    errno = before;
    return failed || !S_ISREG(about.st_mode) ? -1 : (Py_ssize_t)about.st_size;
}

Py_ssize_t bytes_of_named_file(PyObject *text) {
    char path[PATH_MAX];
    return utf8_of(text, path, sizeof path) > 0 ? regular_bytes(path) : -1;
}

typedef enum PathSlot { WHOLE, PARTS, RAW, PATH_SLOTS } PathSlot;

/* The names of the slots in which pathlib keeps a path: as one text once that was asked for, in pieces before (3.11;
 * 3.12 on). */
static PyObject *slot_name(PathSlot slot) {
    static const char *const TEXT_OF[PATH_SLOTS] = {[WHOLE] = "_str", [PARTS] = "_parts", [RAW] = "_raw_paths"};
    static PyObject *names[PATH_SLOTS];
    if (!names[slot] && !PyErr_Occurred()) {
        names[slot] = PyUnicode_InternFromString(TEXT_OF[slot]); /* never freed, because pathlib itself holds the same */
        PyErr_Clear();
    }
    return names[slot];
}

static PyObject *read_slot(PyObject *path, PathSlot slot) {
    PyObject *name = slot_name(slot);
    Py_ssize_t offset = name ? slot_offset(Py_TYPE(path), name) : 0;
    return offset ? slot_value(path, offset) : NULL;
}

/* Join a piece to a path as os.path.join does: an absolute piece starts anew. Gives the length of the whole, -1 if
 * it is no path. */
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

Py_ssize_t bytes_of_path(PyObject *path) {
    PyObject *whole = read_slot(path, WHOLE);
    if (whole && PyUnicode_CheckExact(whole)) return bytes_of_named_file(whole);
    PyObject *pieces = read_slot(path, RAW);
    return joined_bytes(pieces ? pieces : read_slot(path, PARTS));
}
