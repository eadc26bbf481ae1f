/* The name that a function goes by, whose it is, and whether it is recorded; _perflaw_functions.py says the same in
 * Python.
 *
 * Ownership: names are the caller's to free. Threads: the caller holds the GIL. Cost: some string searches per
 * function, and a match per glob. */
#ifndef PERFLAW_PYTHON_NAMING_H
#define PERFLAW_PYTHON_NAMING_H

#include "recording.h"

/* Whose a function is. UNKNOWN_ORIGIN: its code was made by exec or a template, without a file of its own; it
 * belongs to whoever runs it. INTERNAL: the interpreter's modules that import and start, and ours. */
enum Origin { OWN, LIBRARY, INTERNAL, UNKNOWN_ORIGIN };

/* Find out where libraries are. */
void naming_start(void);
/* Set the function's name, and give whose it is. The name is NULL if there is no memory. */
enum Origin naming_set_name(Function *function, const Frame *frame);
/* Set whether a function with a name and a known origin is recorded, by the settings of now. */
void naming_set_mode(Function *function);

#endif
