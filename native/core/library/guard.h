/* Rings that the program truncates while they are read.
 *
 * Whoever may write a file may also make it shorter, and memory of it that lies beyond its end is a SIGBUS at the next look:
 * root's recorder would end by what another user does. While a thread is between guard_enter and guard_leave, such a ring
 * gets memory of its own instead, all zero, and is marked as damaged; the look goes on.
 *
 * Threads: each guards what it reads itself. Cost: two stores; the handler of the signal is set when a ring is attached.
 */
#ifndef PERFLAW_GUARD_H
#define PERFLAW_GUARD_H

#include "order.h"

/* Have SIGBUS handled; one that is nobody's goes to whoever handled it before. */
void guard_start(void);
/* From now on this thread looks into these rings. */
void guard_enter(Feeds *feeds);
/* It no longer does. */
void guard_leave(void);

#endif
