#include "names.h"

#include <string.h>

#include "sizes.h"

/* Write one character as UTF-8; a surrogate that stands for an undecodable byte of a file name becomes that byte.
 * Gives the number of bytes, 0 if it is no character. */
static int encode(Py_UCS4 character, char *buffer) {
    if (character >= 0xdc80 && character <= 0xdcff) return buffer[0] = (char)(character - 0xdc00), 1;
    if (!character || (character >= 0xd800 && character <= 0xdfff)) return 0;
    if (character < 0x80) return buffer[0] = (char)character, 1;
    int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    for (int at = more; at; at--, character >>= 6) buffer[at] = (char)(0x80 | (character & 0x3f));
    buffer[0] = (char)(0xf0 << (3 - more) | character);
    return more + 1;
}

Py_ssize_t utf8_of(PyObject *text, char *buffer, size_t room) {
    if (!PyUnicode_CheckExact(text) || length_of(TEXT, text) < 0) return -1;
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    size_t used = 0;
    for (Py_ssize_t at = 0; at < length; at++) {
        if (used + 5 > room) return -1;
        int bytes = encode(PyUnicode_READ_CHAR(text, at), buffer + used);
        if (!bytes) return -1;
        used += (size_t)bytes;
    }
    buffer[used] = 0;
    return (Py_ssize_t)used;
}

int is_plain_name(PyObject *name) {
    Py_ssize_t length = PyUnicode_CheckExact(name) ? length_of(TEXT, name) : 0;
    return length > 0 && length <= MAX_NAME_CHARACTERS && PyUnicode_IsIdentifier(name);
}

enum { WORDS = 15 };

/* Words for lower and upper bounds; those that go together are of one family. */
static const struct {
    const char *word;
    int8_t family, is_upper;
} WORD[WORDS] = {
    {"begin", 1, 0}, {"start", 1, 0}, {"end", 1, 1},  {"stop", 1, 1}, {"finish", 1, 1},
    {"lo", 2, 0},    {"low", 2, 0},   {"hi", 2, 1},   {"high", 2, 1}, {"first", 3, 0},
    {"last", 3, 1},  {"left", 4, 0},  {"right", 4, 1}, {"min", 5, 0},  {"max", 5, 1},
};

static BoundWord word_at(const char *name, size_t start, size_t length) {
    for (int at = 0; at < WORDS; at++)
        if (strlen(WORD[at].word) == length && !strncmp(WORD[at].word, name + start, length))
            return (BoundWord){WORD[at].family, WORD[at].is_upper, (uint8_t)start, (uint8_t)length};
    return (BoundWord){0};
}

BoundWord bound_word_of(const char *name) {
    if (!strcmp(name, "i") || !strcmp(name, "j")) return (BoundWord){.family = 6, .is_upper = *name == 'j', .length = 1};
    BoundWord word = {0};
    for (size_t start = 0; !word.family && start < 200;) {
        size_t length = strcspn(name + start, "_");
        word = word_at(name, start, length);
        if (!name[start + length]) break;
        start += length + 1;
    }
    return word;
}

int are_counterparts(const Place *lower, const Place *upper) {
    BoundWord one = lower->bound, other = upper->bound;
    if (!one.family || one.family != other.family || one.is_upper || !other.is_upper || one.start != other.start) return 0;
    if (lower->origin != upper->origin || lower->parent != upper->parent) return 0;
    char first[4 * MAX_NAME_CHARACTERS + 8], second[4 * MAX_NAME_CHARACTERS + 8];
    if (utf8_of(lower->name, first, sizeof first) < 0 || utf8_of(upper->name, second, sizeof second) < 0) return 0;
    const char *behind = first + one.start + one.length, *behind_other = second + other.start + other.length;
    return !strncmp(first, second, one.start) && !strcmp(behind, behind_other);
}
