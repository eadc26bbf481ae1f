/* What the recorder asks for: in the environment of a program that it started, or given to one that runs already.
 *
 * Ownership: whoever gave them; they stay where they are. Threads: any, when they were taken. Cost: a search. */
#ifndef PERFLAW_COMPILED_SETTINGS_H
#define PERFLAW_COMPILED_SETTINGS_H

/* Take settings instead of those in the environment: name, value, and so on, each with a zero byte behind it; then an empty name. */
void settings_take(const char *given);
/* What the recorder asks for under a name; empty if it asks for nothing. */
const char *setting(const char *name);

#endif
