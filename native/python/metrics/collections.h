/* Collections of garbage, which run inside whichever call sets them off: a pseudo-callee of that call, and the metric
 * gc.
 *
 * The interpreter tells the callables in a list of collections, and the program sees that list as gc.callbacks. So the
 * interpreter is given another list, which holds our callable alone and which nobody sees; ours calls those in the
 * program's list in turn, as the interpreter does. Whatever the program does to its list has the effect that it has
 * without us.
 *
 * Ownership: one hidden list per process, which is kept. Threads: the caller holds the GIL. Cost: 0.5 us a collection,
 * most of it the two dicts that the interpreter makes to tell it; our part is two records. */
#ifndef PERFLAW_PYTHON_COLLECTIONS_H
#define PERFLAW_PYTHON_COLLECTIONS_H

/* Be told of collections from now on, if this interpreter keeps its callbacks as known. Calling it again does no
 * harm. */
void collections_start(void);
/* Count from 0: another process begins. */
void collections_forget(void);
/* Write the counts of the process to its definitions: collections above the youngest generation, objects promoted to
 * the oldest, full collections that the interpreter began, objects that these visited, their wall and CPU time. */
void collections_define(void);
/* Give the program's list back to the interpreter. */
void collections_stop(void);

#endif
