/* Names of variables: their characters, and which of them are counterparts. */
#include "features_program.h"

#include <string.h>

/* One character as UTF-8; what stands for an undecodable byte of a file name is that byte again. 0: no character. */
static int encode(Py_UCS4 sign, char *into) {
    if (sign >= 0xdc80 && sign <= 0xdcff) return into[0] = (char)(sign - 0xdc00), 1;
    if (!sign || (sign >= 0xd800 && sign <= 0xdfff)) return 0;
    if (sign < 0x80) return into[0] = (char)sign, 1;
    int more = sign < 0x800 ? 1 : sign < 0x10000 ? 2 : 3;
    for (int at = more; at; at--, sign >>= 6) into[at] = (char)(0x80 | (sign & 0x3f));
    into[0] = (char)(0xf0 << (3 - more) | sign);
    return more + 1;
}

Py_ssize_t utf8_of(PyObject *text, char *into, size_t room) {
    if (!PyUnicode_CheckExact(text) || length_of(TEXT, text) < 0) return -1;
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    size_t used = 0;
    for (Py_ssize_t at = 0; at < length; at++) {
        if (used + 5 > room) return -1;
        int bytes = encode(PyUnicode_READ_CHAR(text, at), into + used);
        if (!bytes) return -1;
        used += (size_t)bytes;
    }
    into[used] = 0;
    return (Py_ssize_t)used;
}

int is_plain_name(PyObject *name) {
    Py_ssize_t length = PyUnicode_CheckExact(name) ? length_of(TEXT, name) : 0;
    return length > 0 && length <= LONGEST_NAME && PyUnicode_IsIdentifier(name);
}

enum { WORDS = 15 };

/* Low and high ends that go together are of one family. */
static const struct {
    const char *word;
    int8_t family, high;
} WORD[WORDS] = {
    {"begin", 1, 0}, {"start", 1, 0}, {"end", 1, 1},  {"stop", 1, 1}, {"finish", 1, 1},
    {"lo", 2, 0},    {"low", 2, 0},   {"hi", 2, 1},   {"high", 2, 1}, {"first", 3, 0},
    {"last", 3, 1},  {"left", 4, 0},  {"right", 4, 1}, {"min", 5, 0},  {"max", 5, 1},
};

static Edge edge_at(const char *name, size_t start, size_t length) {
    for (int at = 0; at < WORDS; at++)
        if (strlen(WORD[at].word) == length && !strncmp(WORD[at].word, name + start, length))
            return (Edge){WORD[at].family, WORD[at].high, (uint8_t)start, (uint8_t)length};
    return (Edge){0};
}

Edge edge_of(const char *name) {
    if (!strcmp(name, "i") || !strcmp(name, "j")) return (Edge){.family = 6, .high = *name == 'j', .length = 1};
    Edge edge = {0};
    for (size_t start = 0; !edge.family && start < 200;) {
        size_t length = strcspn(name + start, "_");
        edge = edge_at(name, start, length);
        if (!name[start + length]) break;
        start += length + 1;
    }
    return edge;
}

/* Their names are equal before and behind the words. */
int are_counterparts(const Place *low, const Place *high) {
    Edge one = low->edge, other = high->edge;
    if (!one.family || one.family != other.family || one.high || !other.high || one.start != other.start) return 0;
    if (low->origin != high->origin || low->parent != high->parent) return 0;
    char first[4 * LONGEST_NAME + 8], second[4 * LONGEST_NAME + 8];
    if (utf8_of(low->name, first, sizeof first) < 0 || utf8_of(high->name, second, sizeof second) < 0) return 0;
    const char *behind = first + one.start + one.length, *behind_other = second + other.start + other.length;
    return !strncmp(first, second, one.start) && !strcmp(behind, behind_other);
}
