/* Spans of distributed traces, and which of them are calls within others; imports/spans.py says how, and does the same.
 *
 * Ownership: forest_free gives everything back. Threads: one at a time. Cost: some 500 ns a span beside those of the tree.
 */
#ifndef PERFLAW_TRACES_SPANS_H
#define PERFLAW_TRACES_SPANS_H

#include "core/tree/tree.h"
#include "names.h"

enum SpanText { SPAN_NUMBER, SPAN_TEXT };
typedef struct Attribute {
    uint32_t key, kind;
    double value; /* of a text: its number among the texts, 0 if it was not kept */
} Attribute;

typedef struct TraceSpan {
    int64_t start, end; /* ns; the end is INT64_MAX where there is none */
    uint64_t first_attribute;
    uint32_t attribute_count;
    uint32_t component; /* number among the components */
    uint32_t group;     /* number of its service and name */
    uint32_t identity, parent; /* numbers; the parent is 0 for a root */
    uint32_t links, failed;
    uint32_t first_child, child_count; /* places in `children`; after forest_choose: of the callees */
} TraceSpan;

typedef struct Forest {
    TraceSpan *spans;
    Attribute *attributes;
    uint32_t *children, *roots;
    uint8_t *failing;  /* by group: whether any span of it has failed */
    uint64_t count, room, attribute_count, attribute_room, root_count, duplicates, orphans, outlive, overlap;
    int64_t frame; /* of the last call that was added to a tree */
} Forest;

/* How the spans become events: numbers of functions by component, of features by key: 0 for none, -1 where one
 * is left out because there are too many. */
typedef struct SpanMeaning {
    const int32_t *codes, *sites, *features, *category_features;
    const double *categories; /* value of a text that is of a category */
    int32_t failed, links;    /* numbers of these two features, 0 for none */
    int32_t key;              /* mixed into the priorities of calls */
} SpanMeaning;

/* Find the parent of each span and choose its callees. by_identity: place + 1 of the span of each identity, 0 for none. 0 or
 * errno; EBADMSG where spans are their own ancestors. */
int forest_choose(Forest *forest, const uint32_t *by_identity);
/* Add the calls of all spans to the tree. outcome: the last stamp, values that were left out. 0 or errno. */
int forest_play(Forest *forest, Tree *tree, const SpanMeaning *meaning, int64_t *outcome);
/* Drop all spans, and keep what was counted. */
void forest_clear(Forest *forest);
void forest_free(Forest *forest);

#endif
