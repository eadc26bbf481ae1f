/* One recording per process: its folder, its end, and what a fork makes of it; the recording of each of its threads.
 *
 * Ownership: the one Recording. Threads: the caller holds the GIL. Cost: thread_get is a load once the thread has
 * begun; the first event of a thread makes its ring. */
#ifndef PERFLAW_PYTHON_PROCESS_H
#define PERFLAW_PYTHON_PROCESS_H

#include "recording.h"

/* Read the settings of the recording, a dict of strings. */
void process_read_settings(PyObject *given);
/* Forget an earlier recording of this process. */
void process_forget(void);
/* Start the clock; gives how it is known, in words. */
const char *process_start_clock(void);
/* Begin the recording of this process. 0 if it cannot be recorded. */
int process_begin(void);
/* What is called at the first event in a forked child of a program that was attached to, instead of recording it. */
void process_leave_children(void (*let_go)(void));
/* Write how the recording ends, which goes on if what was about to end it fails; then that line is taken back. Gives
 * whether it was written: there may be no recording. */
int process_write_end(const char *how);
void process_take_back_end(void);

/* The slow way of thread_get. */
Thread *thread_begin(void);
/* The state of the calling thread, begun if it is new; NULL if it cannot be recorded. The first call in a forked
 * child begins the child's own recording. */
static inline Thread *thread_get(void) { return current_thread ? current_thread : thread_begin(); }

#endif
