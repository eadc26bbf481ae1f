/* The call-tree core as the recorder process uses it by ctypes: rings go in, tables come out.
 *
 * Rings may hold anything, because another process writes them: nonsense is counted as lost. A ring file that is
 * truncated while it is mapped counts as damaged (guard.h), and SIGBUS has a handler of ours from the first ring on.
 *
 * Ownership: a handle is the opener's until core_close. Threads: one at a time per handle; nothing here needs the GIL.
 * Cost: core_step takes 30 to 60 ns a record, the others little.
 */
#ifndef PERFLAW_CORE_H
#define PERFLAW_CORE_H

#include <stddef.h>
#include <stdint.h>

typedef struct Core Core;
struct Tree;

/* A core without rings; NULL if there is no memory. max_distance: how far links reach, 0 for none. */
Core *core_open(uint64_t seed, uint32_t max_distance);
/* Set other bounds than the usual ones, before the first step. */
void core_limits(Core *core, uint32_t nodes, uint32_t links, uint32_t pairs, uint32_t components, uint32_t spans);
/* Read this ring too from now on. 0 or errno; EPROTO if it is no ring of this version. */
int core_attach(Core *core, const char *path);
/* There are so many metrics from now on, time, cpu and events included. */
void core_metrics(Core *core, uint32_t count);
/* Keep durations by call path too (paths.h), in at most so many bytes; CPU time as well if clocks is 2. Before the
 * first step. 0 or errno. */
int core_paths(Core *core, uint32_t clocks, uint64_t bytes);
/* Take up to `max` records, some of each ring in turn. Gives how many there were; it does not wait. */
uint64_t core_step(Core *core, uint64_t max);
/* Whether a record waits for rings that are not attached yet. Attach them and step again; it is taken then anyway. */
int core_awaits_ring(const Core *core);
/* The tree itself, for events that come from no ring (traces/). */
struct Tree *core_tree(Core *core);
/* Ask the writers of all rings to write no more. */
void core_stop(Core *core);
/* Unmap all rings, and count what is open on their threads' stacks as open. The tree stays, and other rings may
 * come. */
void core_detach(Core *core);
/* Detach, and count what is suspended as open. No step may follow. */
void core_finish(Core *core);
/* Bytes of a table (rows.h). Its rows are copied to `buffer` if they fit into `size` bytes. */
size_t core_export(Core *core, uint32_t table, void *buffer, size_t size);
/* Bytes of a row; 0 if there is no such table. */
size_t core_row_size(uint32_t table);
/* The fields of an Event as text: name, offset and bytes, one per line. */
const char *core_event_layout(void);
/* How the wall clock ("clock") or the CPU time ("cpu") is known on this machine, in words. Calibrates, 5 ms. */
const char *core_clock_source(const char *which);
/* The step of this machine's clock in ns (clock_step_ns). Calibrates, 5 ms. */
double core_clock_step(void);

/* As filters.h has them: of a filter of system calls of another process. */
const char *core_filter_obstacle(const void *program, size_t count);
uint32_t core_filter_action(const void *program, size_t count, int number, const uint64_t *arguments);
/* Give everything back. */
void core_close(Core *core);

#endif
