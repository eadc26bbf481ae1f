/* Questions to the recorder about code that is met for the first time: names and types are its matter. A question is a file
 * <digest>.ask in the spool's folder `answers`, and the recorder puts the answer beside it.
 *
 * Ownership: an answer is mapped until it is dropped. Threads: any. Cost: a millisecond or more, for which
 * the caller waits. errno is not kept. */
#ifndef PERFLAW_COMPILED_QUESTIONS_H
#define PERFLAW_COMPILED_QUESTIONS_H

#include <stddef.h>

typedef struct Answer {
    const void *data; /* NULL if the recorder gives none */
    size_t size;
} Answer;

Answer question_ask(const char *text);
/* Unmap an answer, which may have no data. */
void question_drop(Answer answer);

#endif
