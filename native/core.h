/* The call-tree core as the recorder process uses it, by ctypes: rings go in, tables come out.
 *
 * Ownership: a handle is the opener's until core_close. Threads: one at a time for a handle; none of it needs the GIL.
 * Rings may hold anything, for they are written by somebody else's process: nonsense is counted as lost.
 * Not covered: a ring file that is truncated while it is mapped.
 */
#ifndef PERFLAW_CORE_H
#define PERFLAW_CORE_H

#include <stddef.h>
#include <stdint.h>

typedef struct Core Core;

/* A core without rings; NULL if there is no memory. max_distance: how far links reach, 0 for none. */
Core *core_open(uint64_t seed, uint32_t max_distance);
/* Other bounds than the usual ones. Before the first step. */
void core_limits(Core *core, uint32_t nodes, uint32_t links, uint32_t pairs, uint32_t components, uint32_t spans);
/* Read this ring too from now on. 0 or errno; EPROTO if it is no ring of this version. */
int core_ring(Core *core, const char *path);
/* There are so many metrics from now on, time, cpu and events included. */
void core_metrics(Core *core, uint32_t count);
/* Keep durations by call path too (paths.h), in at most so many bytes; of CPU time where clocks is 2. Before the first
 * step. 0 or errno. */
int core_paths(Core *core, uint32_t clocks, uint64_t bytes);
/* Take up to `most` records, some of each ring in turn; how many there were. Does not wait. */
uint64_t core_step(Core *core, uint64_t most);
/* Whether a record waits for rings that are not attached yet: attach them, and step again. It is taken in then anyway. */
int core_asks(const Core *core);
/* Ask the writers of all rings to write no more. */
void core_stop(Core *core);
/* Let go of all rings: what is open on their threads' stacks is counted so. The tree stays, and other rings may come. */
void core_leave(Core *core);
/* Leave, and count what is suspended as open. No step after this. */
void core_finish(Core *core);
/* Bytes of a table (export.h); its rows are copied if they fit into size bytes at buffer. */
size_t core_export(Core *core, uint32_t table, void *buffer, size_t size);
/* Bytes of one row; 0 if there is no such table. */
size_t core_row_size(uint32_t table);
/* Fields of an Event as text: name, offset and bytes, one a line. */
const char *core_event_layout(void);
/* How wall and CPU time are known on this machine, in words: "clock" or "cpu". Calibrates, 5 ms. */
const char *core_way(const char *of);
/* Step of this machine's clock, ns, see clock_tick. Calibrates, 5 ms. */
double core_tick(void);
void core_close(Core *core);

#endif
