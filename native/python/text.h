/* A text that grows, with Python literals in it. If memory runs out, the text is cut and `is_cut` says so.
 *
 * Ownership: a Text owns its data until text_free; a zeroed Text is empty. Threads: one at a time; text_add_object
 * needs the GIL. Cost: a copy of what is added, and a reallocation where the text doubles. */
#ifndef PERFLAW_PYTHON_TEXT_H
#define PERFLAW_PYTHON_TEXT_H

#include <stddef.h>
#include <stdint.h>

typedef struct Text {
    char *data;
    size_t length, capacity;
    int is_cut;
} Text;

void text_add(Text *text, const char *more, size_t length);
void text_add_word(Text *text, const char *more);
void text_add_number(Text *text, int64_t number);
/* Add UTF-8 bytes as a Python string literal. */
void text_add_quoted(Text *text, const char *more, size_t length);
/* Add a str object as a literal (void *, so that this header needs no Python.h); anything else becomes ''. Never
 * raises. */
void text_add_object(Text *text, void *object);
void text_free(Text *text);

#endif
