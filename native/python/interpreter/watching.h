/* Events of chosen code beside calls and returns: branches, lines and jumps. On Python 3.12 and later they are
 * sys.monitoring's (PEP 669) and set for each code object; on 3.11 a trace function sees them (branches_trace.c,
 * lines_trace.c).
 *
 * Ownership: one tool identifier per process, which is given to the program when it wants that one. Threads: the caller holds the GIL. Cost: a call of sys.monitoring per
 * code object. */
#ifndef PERFLAW_PYTHON_WATCHING_H
#define PERFLAW_PYTHON_WATCHING_H

#include "python/recording.h"

enum Watch { WATCH_BRANCHES = 1, WATCH_LINES = 2, WATCH_JUMPS = 4 };

#if PY_VERSION_HEX >= 0x030C0000

/* Have these events (a sum of Watch) of the function's code told, beside those that are told already. */
void watch(Function *function, int events);
/* Have no such event told any more. */
void unwatch(Function *function);
/* Have the events of the function's code told that were told under another tool identifier. */
void watch_again(Function *function);

/* ---- for monitoring.c ---- */

/* The callable of an event: a bare vectorcall, which spares the interpreter the checks of a built-in function's
 * arguments. */
typedef PyObject *(*Handler)(PyObject *callback, PyObject *const *arguments, size_t count, PyObject *names);

/* What a handler returns for an event that the interpreter is not to tell of this instruction again. */
extern PyObject *monitoring_disable;

/* Take a tool identifier of sys.monitoring other than `except`. 0 if there is none. */
int monitoring_open(int except);
/* The identifier; negative: none. */
int monitoring_tool(void);
/* Have `make_way` called when the program is about to use the identifier. */
void monitoring_guard(void (*make_way)(void));
/* Have a handler called for an event, "PY_START" for instance. *events gets the event's bit. 0 if that failed. */
int monitoring_register(const char *event, Handler handler, long *events);
/* The events that are told of all code. 0 if that failed. */
int monitoring_set(long events);
/* Give the tool identifier back. */
void monitoring_close(void);
/* After that, make the code of this function and those behind it as quick as it was before, of at most `most` of them.
 * Gives the next one, NULL at the end. Otherwise each is made so when it is executed next, superinstructions.h apart. */
Function *monitoring_settle(Function *function, int most);

#else
static inline void watch(Function *function, int events) { (void)function, (void)events; }
static inline void unwatch(Function *function) { (void)function; }
#endif

#endif
