#include "json.h"

#include <string.h>

static int stop(Scan *scan, enum JsonState state) {
    if (scan->state == JSON_FINE) scan->state = state;
    return 0;
}

char json_peek(Scan *scan) {
    if (scan->state != JSON_FINE) return 0;
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r'))
        scan->at++;
    return scan->at < scan->end ? *scan->at : (char)stop(scan, JSON_MORE);
}

int json_take(Scan *scan, char byte) {
    char next = json_peek(scan);
    if (scan->state != JSON_FINE) return 0;
    if (next != byte) return stop(scan, JSON_WRONG);
    scan->at++;
    return 1;
}

static int hex_of(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    digit |= 32;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

int json_text(Scan *scan, Value *value) {
    if (!json_take(scan, '"')) return 0;
    const char *at = scan->at, *end = scan->end;
    value->kind = JSON_TEXT;
    value->is_escaped = 0;
    for (;; at++) {
        while (at < end && (unsigned char)*at >= ' ' && *at != '"' && *at != '\\') at++;
        if (at == end) return stop(scan, JSON_MORE);
        if (*at == '"') break;
        if (*at != '\\') return stop(scan, JSON_WRONG);
        value->is_escaped = 1;
        if (++at == end) return stop(scan, JSON_MORE);
        if (*at == 'u') {
            for (int digit = 0; digit < 4; digit++) {
                if (++at == end) return stop(scan, JSON_MORE);
                if (hex_of(*at) < 0) return stop(scan, JSON_WRONG);
            }
        } else if (!*at || !strchr("\"\\/bfnrt", *at)) {
            return stop(scan, JSON_WRONG);
        }
    }
    value->text = (Slice){scan->at, (size_t)(at - scan->at)};
    scan->at = at + 1;
    return 1;
}

static const char *pass_digits(const char *at, const char *end) {
    while (at < end && *at >= '0' && *at <= '9') at++;
    return at;
}

/* A number is not there yet where it reaches the end: a digit may follow. */
static int number(Scan *scan, Value *value) {
    const char *at = scan->at, *end = scan->end, *digits = at += *at == '-';
    at = pass_digits(at, end);
    if (at - digits > JSON_DIGITS || (at - digits > 1 && *digits == '0')) return stop(scan, JSON_WRONG);
    if (at == digits) return stop(scan, at == end ? JSON_MORE : JSON_WRONG);
    if (at < end && *at == '.') {
        const char *fraction = ++at;
        at = pass_digits(at, end);
        if (at == fraction) return stop(scan, at == end ? JSON_MORE : JSON_WRONG);
        if (at - digits > 2 * JSON_DIGITS) return stop(scan, JSON_WRONG);
    }
    if (at < end && (*at | 32) == 'e') {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        const char *exponent = at;
        at = pass_digits(at, end);
        if (at == exponent) return stop(scan, at == end ? JSON_MORE : JSON_WRONG);
        if (at - exponent > 3) return stop(scan, JSON_WRONG);
    }
    if (at == end) return stop(scan, JSON_MORE);
    value->kind = JSON_NUMBER;
    value->text = (Slice){scan->at, (size_t)(at - scan->at)};
    scan->at = at;
    return 1;
}

/* A word without quotes. NaN and Infinity are none of JSON's, but written by Python among others. */
static int word(Scan *scan, Value *value) {
    static const char *const WORDS[] = {"null", "true", "false", "NaN", "Infinity", "-Infinity"};
    size_t left = (size_t)(scan->end - scan->at);
    for (size_t which = 0; which < sizeof WORDS / sizeof *WORDS; which++) {
        size_t size = strlen(WORDS[which]);
        if (memcmp(scan->at, WORDS[which], size < left ? size : left)) continue;
        if (size > left) return stop(scan, JSON_MORE);
        value->kind = which ? JSON_WORD : JSON_NULL;
        value->text = (Slice){scan->at, size};
        scan->at += size;
        return 1;
    }
    return stop(scan, JSON_WRONG);
}

static int scalar(Scan *scan, char first, Value *value) {
    if (first == '"') return json_text(scan, value);
    int is_number = first == '-' && scan->at + 1 < scan->end ? scan->at[1] != 'I' : first == '-' || (first >= '0' && first <= '9');
    return is_number ? number(scan, value) : word(scan, value);
}

int json_member(Scan *scan, int is_first, Value *name) {
    char next = json_peek(scan);
    if (next == '}') {
        scan->at++;
        return 0;
    }
    if (!is_first && !json_take(scan, ',')) return 0;
    return json_text(scan, name) && json_take(scan, ':');
}

/* Pass a list or an object. What is open is kept as the bytes that close it. */
static int pass_nested(Scan *scan) {
    char closing[JSON_DEPTH];
    int open = 0, is_first = 1;
    Value ignored;
    do {
        char next = json_peek(scan);
        if (scan->state != JSON_FINE) return 0;
        if (open && next == closing[open - 1]) { /* a comma before it was refused below */
            scan->at++;
            open--;
            is_first = 0;
            continue;
        }
        if (open && !is_first) {
            if (!json_take(scan, ',')) return 0;
            next = json_peek(scan);
            if (next == closing[open - 1]) return stop(scan, JSON_WRONG);
        }
        if (open && closing[open - 1] == '}') {
            if (!json_text(scan, &ignored) || !json_take(scan, ':')) return 0;
            next = json_peek(scan);
        }
        if (scan->state != JSON_FINE) return 0;
        if (next == '{' || next == '[') {
            if (scan->depth + open == JSON_DEPTH) return stop(scan, JSON_WRONG);
            closing[open++] = next == '{' ? '}' : ']';
            scan->at++;
            is_first = 1;
        } else {
            if (!scalar(scan, next, &ignored)) return 0;
            is_first = 0;
        }
    } while (open);
    return 1;
}

int json_value(Scan *scan, Value *value) {
    char first = json_peek(scan);
    if (scan->state != JSON_FINE) return 0;
    if (first != '{' && first != '[') return scalar(scan, first, value);
    value->kind = first == '{' ? JSON_OBJECT : JSON_LIST;
    value->text.at = scan->at;
    if (!pass_nested(scan)) return 0;
    value->text.size = (size_t)(scan->at - value->text.at);
    return 1;
}

static uint32_t code_at(const char *hex) {
    return (uint32_t)(hex_of(hex[0]) << 12 | hex_of(hex[1]) << 8 | hex_of(hex[2]) << 4 | hex_of(hex[3]));
}

static char *put_code(char *to, uint32_t code) {
    if (code < 0x80) return *to = (char)code, to + 1;
    if (code < 0x800) return to[0] = (char)(0xC0 | code >> 6), to[1] = (char)(0x80 | (code & 63)), to + 2;
    if (code < 0x10000) {
        to[0] = (char)(0xE0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 63));
        to[2] = (char)(0x80 | (code & 63));
        return to + 3;
    }
    to[0] = (char)(0xF0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 63));
    to[2] = (char)(0x80 | (code >> 6 & 63));
    to[3] = (char)(0x80 | (code & 63));
    return to + 4;
}

size_t json_unescape(Slice text, char *to) {
    char *begin = to;
    for (const char *at = text.at, *end = at + text.size; at < end;) {
        if (*at != '\\') {
            *to++ = *at++;
        } else if (at[1] == 'u') {
            uint32_t code = code_at(at + 2);
            at += 6;
            if (code >> 10 == 0x36 && end - at >= 6 && at[0] == '\\' && at[1] == 'u' && code_at(at + 2) >> 10 == 0x37) {
                code = 0x10000 + ((code & 0x3FF) << 10) + (code_at(at + 2) & 0x3FF);
                at += 6;
            }
            to = put_code(to, code);
        } else {
            static const char FROM[] = "\"\\/bfnrt", PLAIN[] = "\"\\/\b\f\n\r\t";
            *to++ = PLAIN[strchr(FROM, at[1]) - FROM];
            at += 2;
        }
    }
    return (size_t)(to - begin);
}
