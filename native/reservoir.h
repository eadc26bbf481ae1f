/* The stratified reservoir: a uniform sample of a function's invocations, and some of every power of two of the cost.
 * Both are bottom-k samples (the k smallest priorities), so samples of several runs merge in any order.
 *
 * Ownership: samples lie in the arena and are shared by the two parts, counted by reference. Threads: one at a time.
 * Cost: an invocation that is not kept costs the scramble and two comparisons; one that is, a copy and log k swaps.
 */
#ifndef PERFLAW_RESERVOIR_H
#define PERFLAW_RESERVOIR_H

#include "layout.h"

/* A well-mixed 62-bit priority of a sequence number (SplitMix64's finaliser; Steele et al., OOPSLA'14). */
static inline uint64_t scramble(uint64_t number) {
    uint64_t mixed = number * 0x9E3779B97F4A7C15ull;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9ull;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBull;
    return (mixed ^ mixed >> 31) >> 2;
}

/* Take a completed invocation where a part of its function's sample wants it. bits: the length of its time. */
void reservoir_take(Tree *tree, Code *code, uint64_t sequence, const Frame *done, unsigned bits);

/* Consider it, which is nearly always all: it was not drawn, and its stratum has smaller priorities. sequence: its number
 * in the order of completion. */
static inline void reservoir_offer(Tree *tree, Code *code, uint64_t sequence, const Frame *done, unsigned bits) {
    const Bottom *stratum = code->reservoir ? code->reservoir[1 + bits] : NULL;
    if (!stratum || done->key >= 0 || scramble(sequence ^ tree->seed) < stratum->bound)
        reservoir_take(tree, code, sequence, done, bits);
}

static inline Callee *sample_callees(const Sample *sample) { return (Callee *)(sample + 1); }
static inline Feature *sample_features(const Sample *sample) { return (Feature *)(sample_callees(sample) + sample->callees); }
static inline Cost *sample_costs(const Sample *sample) { return (Cost *)(sample_features(sample) + sample->features); }

#endif
