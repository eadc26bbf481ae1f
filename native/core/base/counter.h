/* Counters that belong to no language: what the kernel counts of a thread, and those of other packages (plug-ins).
 *
 * Threads: each reads only its own. Cost: a getrusage() of the thread takes about 0.2 us. */
#ifndef PERFLAW_COUNTER_H
#define PERFLAW_COUNTER_H

#include <stdint.h>

/* Gives the cumulative counter of the calling thread, which never falls. */
typedef int64_t (*ReadCounter)(void);

int64_t counter_context_switches(void);
int64_t counter_page_faults(void);

/* Whether a line of PERFLAW_TARGET_METRICS names a plug-in. */
int counter_is_plugin(const char *line);
/* Load the plug-in that a line names: plugin:NAME:UNIT:LIBRARY:SYMBOL, where the path of the library may hold colons. The
 * line is cut into its parts. NULL, with the reason, where it cannot be read. */
ReadCounter counter_open_plugin(char *line, const char **name, const char **unit, const char **reason);

#endif
