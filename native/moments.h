/* Exact raw moments of one call-tree node (specs: Moments). Integers only; nothing is ever rounded.
 *
 * Ownership: all sums lie in the arena. Threads: one at a time. Cost of moments_add: a leaf writes its node and one
 * bucket; else a 48-byte pair per two touched children and 48 bytes of a link per descendant within max_distance.
 */
#ifndef PERFLAW_MOMENTS_H
#define PERFLAW_MOMENTS_H

#include "layout.h"

/* Own cost of an invocation: without its kids. */
typedef struct Own {
    int64_t time, events;
} Own;

/* Take in a completed invocation, whatever it is. caller: learns of what is below it; NULL for the root, which needs to know
 * nothing. stack: that it is the top of; NULL if it is set aside. The node's batches (alike.h) are to be settled. */
Own moments_add(Tree *tree, Stack *stack, Frame *done, Frame *caller);
/* Take in how long a completed generator or coroutine was suspended. */
void moments_wait(Tree *tree, Node *node, int64_t waited);

/* Count it in a histogram, whose bucket is log_bucket's. */
void moments_count(Arena *arena, Window **histogram, unsigned bucket);

/* The parts of moments_add, a file each. rare_add takes what lanes other than time and events give. */
void pairs_add(Tree *tree, Node *node, const Bag *kids, Own own);
void links_add(Tree *tree, Stack *stack, const Frame *done, Frame *caller);
void rare_add(Tree *tree, Frame *done, Frame *caller);

/* ---- for rare_add ---- */

/* The parts of an invocation's cost that are kept apart: LOCAL, kids and perhaps OTHER, in order of their numbers. */
typedef struct Part {
    int32_t node;
    uint32_t kid; /* its position in the bag */
    int64_t time;
} Part;
enum { MAX_PARTS = MAX_KIDS_APART + 1 };
unsigned pairs_gather(Part *parts, const Bag *kids, int64_t local);
/* The pair of two parts of a node, made if new. *times: how often its product counts, 2 where it stands for both orders
 * in (OTHER, OTHER) because no more pairs may be made. NULL if the arena is full. */
Pair *pairs_of(Tree *tree, Node *node, int32_t i, int32_t j, uint32_t *cursor, unsigned *times);
/* Note the places of the pairs with a kid in the node's last: LOCAL's and its own. Whether both are there. */
int pairs_find(const Tree *tree, Node *node, int32_t kid);
/* Position of the link to a descendant among a node's, -1 if there is none. */
int64_t links_find(const Tree *tree, const Node *node, int32_t below);

static inline unsigned bit_length(int64_t x) {
    uint64_t size = x < 0 ? -(uint64_t)x : (uint64_t)x;
    return size ? 64u - (unsigned)__builtin_clzll(size) : 0;
}

/* Bucket of a log histogram: four to a power of two. A quarter of it is the stratum. */
static inline unsigned log_bucket(int64_t x) {
    unsigned bits;
    if (x >= 4) return bits = 61u - (unsigned)__builtin_clzll((uint64_t)x), bits * 4 + (unsigned)(x >> bits) + 8; /* the usual way */
    bits = bit_length(x);
    return bits * 4 + (bits >= 3 ? (unsigned)(x >> (bits - 3)) & 3 : 0);
}

/* Widen extremes by a value, the first of all where n is 0. The most is at least 0. */
static inline void extremes_see(Extremes *extremes, uint64_t n, int64_t x) {
    if (!n || x < extremes->least) extremes->least = x;
    if (x > extremes->most) extremes->most = x;
}

#endif
