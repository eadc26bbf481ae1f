/* Traces of other tools as the import uses them by ctypes: pieces of a file go in, the call tree of each process comes out.
 *
 * A file may hold anything: what cannot be read is an error, and the Python reader (imports/chrome.py) tells which.
 *
 * Ownership: a handle is the opener's until trace_close. Threads: one at a time per handle; nothing here needs the GIL.
 */
#ifndef PERFLAW_TRACES_H
#define PERFLAW_TRACES_H

#include "core/library/core.h"

typedef struct Trace Trace;

/* A trace-event JSON. file: descriptor of an empty file that takes what has no room in memory; it stays the caller's. NULL
 * if there is no memory. */
Trace *trace_open(int file);
/* Read the next piece of the file. 0 or errno; EBADMSG where it is not what it should be. */
int trace_feed(Trace *trace, const char *piece, uint64_t size);
/* The file has ended: sort its calls. 0 or errno. */
int trace_finish(Trace *trace);
/* Bytes and events that were read: the place of an error. */
void trace_place(const Trace *trace, uint64_t *bytes, uint64_t *events);
/* Flags (chrome.h). */
uint32_t trace_flags(const Trace *trace);
/* A table of texts: all of them, one after the other, and where each ends. 0: names, 1: names of numbers, 2: identities,
 * 3: components, 4: uses of numbers (each two numbers of 32 bits, of a process and of a name). Gives their count. */
uint32_t trace_texts(const Trace *trace, uint32_t table, const char **bytes, const uint64_t **ends);
/* Six words of a process: first stamp, calls left out because they are asynchronous, numbers left out, number of its
 * identity and of its name, whether it has calls. 0 where there is no such process. */
int trace_process(const Trace *trace, uint32_t process, int64_t *words);
/* Add the calls of a process to the tree of a core. codes: by name, from 0; sites: by code; features: by name of the number.
 * outcome: calls begun earlier, overlapping, cut; numbers left out; last stamp; calls. 0 or errno; EOVERFLOW beyond the
 * bounds (nesting.h). */
int trace_play(Trace *trace, uint32_t process, Core *core, const int32_t *codes, const int32_t *sites, uint32_t code_count,
               const int32_t *features, int32_t key, int64_t tick, int64_t *outcome);
void trace_close(Trace *trace);

#endif
