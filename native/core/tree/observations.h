/* Calls and own costs of all nodes within one invocation of a function that a person chose (EVENT_OBSERVE): a request of
 * a server is an observation by itself, as a run of a program is. Of invocations within each other the outermost one is
 * observed.
 *
 * It also has the features that were read of calls within it, of each function those of the first call that was read.
 *
 * Its parts are Descendants of all depths, in which `time` is own time and `events` is the own time off the CPU, ns.
 *
 * Ownership: the Invocation's, with which they are set aside while it is suspended. Threads: one at a time. Cost: nothing
 * where no function is observed; else two additions to a Descendants (descendants.h) a call within.
 */
#ifndef PERFLAW_OBSERVATIONS_H
#define PERFLAW_OBSERVATIONS_H

#include "tree.h"

/* Features of an observation, those of the calls within it included. */
enum { MAX_OBSERVED_FEATURES = 512 };

/* The slow ways of the functions below. */
void observations_push(Stack *stack, int is_new);
void observations_spend(Tree *tree, const Stack *stack, const Invocation *top, const Invocation *caller, int64_t spent);
void observations_call(Tree *tree, const Stack *stack, const Node *node);
void observations_keep(Tree *tree, const Stack *stack, Feature feature);

/* An invocation was put on a stack: a new one, or one that was suspended. */
static inline void observations_begin(const Tree *tree, Stack *stack, int is_new) {
    if (tree->is_observing) observations_push(stack, is_new);
}
/* The top of a stack has spent so much time since it was last (re)entered, its callees included. Its changes and whether
 * it is still to be counted are as they were at that time. */
static inline void observations_add(Tree *tree, const Stack *stack, const Invocation *top, const Invocation *caller,
                                    int64_t spent) {
    if (stack->observed) observations_spend(tree, stack, top, caller, spent);
}
/* A call that takes no time was made from the top of a stack. */
static inline void observations_count(Tree *tree, const Stack *stack, const Node *node) {
    if (stack->observed) observations_call(tree, stack, node);
}
/* A feature of the top of a stack was read. */
static inline void observations_read(Tree *tree, const Stack *stack, Feature feature) {
    if (stack->observed) observations_keep(tree, stack, feature);
}

#endif
