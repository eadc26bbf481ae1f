/* JSON as it comes in pieces: the parts of a text, checked as they are passed over, without a copy of them.
 *
 * A part that reaches the end of the piece is not there yet (JSON_MORE): it is read again when more has come. Lists and
 * objects lie at most JSON_DEPTH deep within each other, and numbers have as many digits as perflaw/bounds.py allows.
 *
 * Ownership: slices point into the piece. Threads: any. Cost: about 1 ns a byte.
 */
#ifndef PERFLAW_JSON_H
#define PERFLAW_JSON_H

#include <stddef.h>
#include <stdint.h>

enum JsonState { JSON_FINE, JSON_MORE, JSON_WRONG };
enum { JSON_DEPTH = 100, JSON_DIGITS = 308 };

typedef struct Slice {
    const char *at;
    size_t size;
} Slice;

typedef struct Scan {
    const char *at, *end;
    enum JsonState state; /* once it is not fine, nothing is read any more and all functions give 0 */
    int depth;            /* lists and objects that are open around the place */
} Scan;

enum JsonKind { JSON_NOTHING, JSON_NULL, JSON_WORD, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT };
/* A value. Text: without its quotes, escapes as they are written; a list or object: with its brackets. */
typedef struct Value {
    Slice text;
    enum JsonKind kind;
    int is_escaped; /* whether a text has escapes */
} Value;

/* The next byte that is no white space, without passing it. */
char json_peek(Scan *scan);
/* Pass this byte, after white space. */
int json_take(Scan *scan, char byte);
/* Pass a text, here with its quotes. */
int json_text(Scan *scan, Value *value);
/* Pass any value. */
int json_value(Scan *scan, Value *value);
/* Pass the name of the next member of an object that was opened, and its colon. 0 too where the object ends, which is
 * passed as well. is_first: no member came before. */
int json_member(Scan *scan, int is_first, Value *name);
/* Write a text without its escapes, as UTF-8; a lone surrogate takes three bytes like any other code. `to` has room for
 * the size of the text. Gives the bytes. */
size_t json_unescape(Slice text, char *to);

#endif
