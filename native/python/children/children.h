/* Python programs that the program starts are recorded too: they get in their environment what the program itself got.
 *
 * Only they do. The program's own view of the environment stays as it is, and so does that of any other program. To
 * that end the few built-in functions that start programs are replaced by ones that look at what is started.
 *
 * Ownership: the interpreter's modules hold the replacements. Threads: the caller holds the GIL. Cost: a start of a
 * program takes some 10 us more. */
#ifndef PERFLAW_PYTHON_CHILDREN_H
#define PERFLAW_PYTHON_CHILDREN_H

/* Replace the functions that start programs. */
void children_start(void);

#endif
