/* A text that grows, with Python literals in it. Memory that runs out cuts it short, and it says so. */
#ifndef PERFLAW_PYTHON_TEXT_H
#define PERFLAW_PYTHON_TEXT_H

#include <stddef.h>
#include <stdint.h>

typedef struct Text {
    char *data;
    size_t length, room;
    int torn;
} Text;

void text_add(Text *text, const char *more, size_t length);
void text_word(Text *text, const char *more);
void text_number(Text *text, int64_t number);
/* A Python string literal of UTF-8 bytes. */
void text_quote(Text *text, const char *more, size_t length);
/* The same of a str object (void * so that this needs no Python.h); anything else becomes ''. Never raises. */
void text_object(Text *text, void *object);
void text_free(Text *text);

#endif
