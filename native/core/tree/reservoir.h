/* The stratified reservoir: a uniform sample of a function's invocations, and some for every power of two of the cost.
 * Both are bottom-k samples (the k smallest priorities), so samples of several runs merge in any order.
 *
 * Ownership: samples lie in the arena, and both parts may share one, which counts its references. Threads: one at a
 * time. Cost: an invocation that is not kept takes the scramble and two comparisons; one that is, a copy and log k
 * swaps.
 */
#ifndef PERFLAW_RESERVOIR_H
#define PERFLAW_RESERVOIR_H

#include "tree.h"

/* A well-mixed priority of 62 bits for a sequence number (SplitMix64's finaliser; Steele et al., OOPSLA'14). */
static inline uint64_t scramble(uint64_t number) {
    uint64_t mixed = number * 0x9E3779B97F4A7C15ull;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9ull;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBull;
    return (mixed ^ mixed >> 31) >> 2;
}

/* The slow way of reservoir_offer. */
void reservoir_take(Tree *tree, Function *function, uint64_t sequence, const Invocation *completed, unsigned stratum);

/* Sample a completed invocation if a part of the function's reservoir wants it. Nearly always none does: it was not
 * drawn for the uniform sample, and its stratum has smaller priorities. sequence: its number in the order of
 * completion. */
static inline void reservoir_offer(Tree *tree, Function *function, uint64_t sequence, const Invocation *completed,
                                   unsigned stratum) {
    const BottomK *sample = function->reservoir ? function->reservoir[1 + stratum] : NULL;
    if (!sample || completed->key >= 0 || scramble(sequence ^ tree->seed) < sample->bound)
        reservoir_take(tree, function, sequence, completed, stratum);
}

static inline Callee *sample_callees(const Sample *sample) { return (Callee *)(sample + 1); }
static inline Feature *sample_features(const Sample *sample) {
    return (Feature *)(sample_callees(sample) + sample->callees);
}
static inline Cost *sample_costs(const Sample *sample) { return (Cost *)(sample_features(sample) + sample->features); }
static inline Callee *sample_parts(const Sample *sample) { return (Callee *)(sample_costs(sample) + sample->costs); }

#endif
