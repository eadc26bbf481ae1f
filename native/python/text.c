#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#include "text.h"

static int reach(Text *text, size_t more) {
    if (text->length + more <= text->room) return 1;
    size_t room = (text->length + more) * 2 + 64;
    char *data = realloc(text->data, room);
    text->torn |= !data;
    if (!data) return 0;
    text->data = data;
    text->room = room;
    return 1;
}

void text_add(Text *text, const char *more, size_t length) {
    if (!length || text->torn || !reach(text, length)) return;
    memcpy(text->data + text->length, more, length);
    text->length += length;
}

void text_word(Text *text, const char *more) { text_add(text, more, strlen(more)); }

void text_number(Text *text, int64_t number) {
    char digits[24];
    text_add(text, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number));
}

void text_quote(Text *text, const char *more, size_t length) {
    text_word(text, "'");
    for (size_t at = 0; at < length; at++) {
        unsigned char byte = (unsigned char)more[at];
        char escaped[8];
        if (byte == '\\' || byte == '\'') text_add(text, (char[]){'\\', (char)byte}, 2);
        else if (byte < ' ' || byte == 127)
            text_add(text, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\x%02x", byte));
        else text_add(text, more + at, 1);
    }
    text_word(text, "'");
}

void text_object(Text *text, void *object) {
    PyObject *bytes = NULL;
    if (object && PyUnicode_CheckExact((PyObject *)object))
        bytes = PyUnicode_AsEncodedString(object, "utf-8", "backslashreplace"); /* lone surrogates in file names */
    if (bytes) text_quote(text, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    else text_word(text, "''");
    PyErr_Clear(); /* callers have put the target's exception aside */
    Py_XDECREF(bytes);
}

void text_free(Text *text) {
    free(text->data);
    *text = (Text){0};
}
