/* Collections of garbage, which run inside whichever call sets them off: a pseudo-callee of that call, and the metric
 * gc.
 *
 * The interpreter tells the callables in a list of collections, and the program sees that list as gc.callbacks. So the
 * interpreter is given another list, which holds our callable alone and which nobody sees; ours calls those in the
 * program's list in turn, as the interpreter does. Whatever the program does to its list has the effect that it has
 * without us.
 *
 * Ownership: one hidden list per process. Threads: the caller holds the GIL. Cost: 0.5 us a collection, most of it
 * the two dicts that the interpreter makes to tell it; our part is two records. */
#ifndef PERFLAW_PYTHON_COLLECTIONS_H
#define PERFLAW_PYTHON_COLLECTIONS_H

/* Be told of collections from now on, if this interpreter keeps its callbacks as known. Calling it again does no
 * harm. */
void collections_start(void);
/* Give the program's list back to the interpreter. */
void collections_stop(void);

#endif
