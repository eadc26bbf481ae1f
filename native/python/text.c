#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#include "text.h"

static int make_room(Text *text, size_t more) {
    if (text->length + more <= text->capacity) return 1;
    size_t capacity = (text->length + more) * 2 + 64;
    char *data = realloc(text->data, capacity);
    text->is_cut |= !data;
    if (!data) return 0;
    text->data = data;
    text->capacity = capacity;
    return 1;
}

void text_add(Text *text, const char *more, size_t length) {
    if (!length || text->is_cut || !make_room(text, length)) return;
    memcpy(text->data + text->length, more, length);
    text->length += length;
}

void text_add_word(Text *text, const char *more) { text_add(text, more, strlen(more)); }

void text_add_number(Text *text, int64_t number) {
    char digits[24];
    text_add(text, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number));
}

void text_add_quoted(Text *text, const char *more, size_t length) {
    text_add_word(text, "'");
    for (size_t at = 0; at < length; at++) {
        unsigned char byte = (unsigned char)more[at];
        char escaped[8];
        if (byte == '\\' || byte == '\'') text_add(text, (char[]){'\\', (char)byte}, 2);
        else if (byte < ' ' || byte == 127)
            text_add(text, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\x%02x", byte));
        else text_add(text, more + at, 1);
    }
    text_add_word(text, "'");
}

void text_add_object(Text *text, void *object) {
    PyObject *bytes = NULL;
    if (object && PyUnicode_CheckExact((PyObject *)object))
        bytes = PyUnicode_AsEncodedString(object, "utf-8", "backslashreplace"); /* file names may hold lone surrogates */
    if (bytes) text_add_quoted(text, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    else text_add_word(text, "''");
    PyErr_Clear(); /* callers have set the program's own exception aside */
    Py_XDECREF(bytes);
}

void text_free(Text *text) {
    free(text->data);
    *text = (Text){0};
}
