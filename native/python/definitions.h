/* Lines of the definitions file, which say what the numbers in the records stand for (record/tree/records.py reads
 * them).
 *
 * Each line is a Python tuple whose first item is its kind. Ownership: the mapped file is kept here, one a process.
 * Threads: the caller holds the GIL. Cost: a line is a copy; a file that doubles is mapped anew. If a line cannot be
 * written, the recording stops. */
#ifndef PERFLAW_PYTHON_DEFINITIONS_H
#define PERFLAW_PYTHON_DEFINITIONS_H

#include "recording.h"

void define_component(const Function *function, int32_t number);
/* A component for work that the interpreter does aside. */
void define_aside(int32_t number, const char *name);
void define_feature(const Function *function, int32_t number, const char *name);
void define_type(int32_t number, const char *name, size_t length);
/* Priorities in the uniform sample of a function have at most so many bits from here on, and count only up to there. */
void define_sample(const Function *function, uint32_t bits);
void define_metric(int32_t number, const char *name, const char *unit);
/* A part of the time off the CPU, which samples hold; its changes are told as those of a metric. */
void define_mark(int32_t number, const char *name);
/* A text about one topic, for the manifest of the run; the last one about a topic counts. */
void define_text(const char *topic, const char *text);
/* Add a note to the text about a topic, unless it stands there already. `notes` keeps what was said so far. */
void define_note(Text *notes, const char *topic, const char *note);
/* The process and its command line; this comes first. */
void define_process(void);
/* CPU time of the process at a moment: "entered", before anything of the tracer; "begun" and "ended", of the recording. */
void define_cpu(const char *moment, int64_t ns);
/* The recording begins: the clock, what events cost, and the version of Python. */
void define_start(void);
/* The recording ends. how: by what, if not as usual. */
void define_end(int64_t overhead_ns, int64_t lost_records, const char *how);

/* Unmap the file, after the last line of a recording. */
void definitions_close(void);

/* Lines of another kind: begin one, add items to it ("a, b" without the outer brackets), and write it. */
Text definition_begin(const char *kind);
void definition_add_number(Text *line, int64_t number);
void definition_add_text(Text *line, const char *text);
void definition_write(Text *line);

#endif
