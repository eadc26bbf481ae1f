#include "positions.h"

enum { NO_LOCATION = 15, LONG_FORM = 14, NO_COLUMNS = 13, ONE_LINE = 10 };

static unsigned varint(const uint8_t **at) {
    unsigned value = 0, shift = 0, byte;
    do {
        byte = *(*at)++;
        value |= (byte & 63) << shift;
        shift += 6;
    } while (byte & 64);
    return value;
}

static int line_delta(const uint8_t *entry) {
    unsigned kind = *entry >> 3 & 15;
    entry++;
    if (kind == LONG_FORM || kind == NO_COLUMNS) {
        unsigned value = varint(&entry);
        return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
    }
    return kind >= ONE_LINE && kind < NO_COLUMNS ? (int)kind - ONE_LINE : 0;
}

/* The position that an entry of the table gives, whose line is known already. */
static Position position_at(const uint8_t *entry, int line) {
    unsigned kind = *entry >> 3 & 15;
    Position found = {line, -1, line, -1};
    if (kind == NO_LOCATION) return (Position){-1, -1, -1, -1};
    entry++;
    if (kind < ONE_LINE) {
        found.column = (int)(kind << 3 | *entry >> 4);
        found.end_column = found.column + (*entry & 15);
    } else if (kind < NO_COLUMNS) {
        found.column = entry[0];
        found.end_column = entry[1];
    } else if (kind == LONG_FORM) {
        varint(&entry);
        found.end_line = line + (int)varint(&entry);
        found.column = (int)varint(&entry) - 1;
        found.end_column = (int)varint(&entry) - 1;
    }
    return found;
}

static const uint8_t *next_entry(const uint8_t *at, const uint8_t *end) {
    do at++;
    while (at < end && !(*at & 128)); /* only the first byte of an entry has its high bit set */
    return at;
}

void positions_of(PyCodeObject *code, Position *positions, int units) {
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(code->co_linetable);
    const uint8_t *end = at + PyBytes_GET_SIZE(code->co_linetable);
    int line = code->co_firstlineno, unit = 0;
    for (; at < end; at = next_entry(at, end)) {
        line += line_delta(at);
        Position position = position_at(at, line);
        for (int length = (*at & 7) + 1; length-- && unit < units; unit++) positions[unit] = position;
    }
    for (; unit < units; unit++) positions[unit] = (Position){-1, -1, -1, -1};
}

static void add_range(Text *text, int first, int last, int line) {
    if (first == last || line < 0) return;
    text_add_word(text, "(");
    text_add_number(text, first);
    text_add_word(text, ", ");
    text_add_number(text, last);
    text_add_word(text, ", ");
    text_add_number(text, line);
    text_add_word(text, "), ");
}

void positions_add_lines(PyCodeObject *code, Text *text) {
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(code->co_linetable);
    const uint8_t *end = at + PyBytes_GET_SIZE(code->co_linetable);
    int computed = code->co_firstlineno, offset = 0, first = 0, shown = -1;
    while (at < end) {
        computed += line_delta(at);
        int line = (*at >> 3 & 15) == NO_LOCATION ? -1 : computed;
        if (line != shown) {
            add_range(text, first, offset, shown);
            first = offset;
            shown = line;
        }
        offset += ((*at & 7) + 1) * (int)sizeof(_Py_CODEUNIT);
        at = next_entry(at, end);
    }
    add_range(text, first, offset, shown);
}
