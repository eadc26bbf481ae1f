/* The stratified reservoir: a uniform sample of a function's invocations, and some of every power of two of the cost.
 * Both are bottom-k samples (the k smallest priorities), so samples of several runs merge in any order.
 *
 * Ownership: samples lie in the arena and are shared by the two parts, counted by reference. Threads: one at a time.
 * Cost: an invocation that is not kept costs the scramble and two comparisons; one that is, a copy and log k swaps.
 */
#ifndef PERFLAW_RESERVOIR_H
#define PERFLAW_RESERVOIR_H

#include "layout.h"

/* Consider a completed invocation for its function's sample. sequence: its number in the order of completion. */
void reservoir_offer(Tree *tree, Code *code, uint64_t sequence, const Frame *done);
/* A well-mixed 62-bit priority of a sequence number (SplitMix64's finaliser; Steele et al., OOPSLA'14). */
uint64_t scramble(uint64_t number);

static inline Callee *sample_callees(const Sample *sample) { return (Callee *)(sample + 1); }
static inline Feature *sample_features(const Sample *sample) { return (Feature *)(sample_callees(sample) + sample->callees); }
static inline Cost *sample_costs(const Sample *sample) { return (Cost *)(sample_features(sample) + sample->features); }

#endif
