#include "spans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/library/calltree.h"
#include "core/tree/reservoir.h"

enum { KEYS = 0x7FFFFFFF };

static int compare_children(const void *one, const void *other, void *spans) {
    uint32_t place = *(const uint32_t *)one, other_place = *(const uint32_t *)other;
    const TraceSpan *a = (const TraceSpan *)spans + place, *b = (const TraceSpan *)spans + other_place;
    if (a->end != b->end) return a->end > b->end ? -1 : 1; /* one without an end comes first */
    if (a->start != b->start) return a->start > b->start ? -1 : 1;
    return place < other_place ? -1 : 1;
}

/* The callees of a span: those that it waited for, in order of time. The others become roots. */
static void choose(Forest *forest, TraceSpan *span) {
    uint32_t *children = forest->children + span->first_child, count = span->child_count, chosen = 0;
    if (!count) return;
    if (count > 1) qsort_r(children, count, sizeof *children, compare_children, forest->spans);
    int64_t free_until = span->end;
    for (uint32_t at = 0; at < count; at++) {
        const TraceSpan *child = &forest->spans[children[at]];
        int is_outside = child->start < span->start || child->end > span->end;
        if (is_outside || child->end > free_until) {
            *(is_outside ? &forest->outlive : &forest->overlap) += 1;
            forest->roots[forest->root_count++] = children[at];
        } else {
            free_until = child->start;
            children[chosen++] = children[at];
        }
    }
    for (uint32_t at = 0; at < chosen / 2; at++) {
        uint32_t other = children[at];
        children[at] = children[chosen - 1 - at];
        children[chosen - 1 - at] = other;
    }
    span->child_count = chosen;
}

/* A root, its start and its place among them, so that those of one start keep their order. */
typedef struct Root {
    int64_t start;
    uint64_t place;
} Root;
static int compare_roots(const void *one, const void *other) {
    const Root *a = one, *b = other;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return a->place < b->place ? -1 : 1;
}

static int sort_roots(Forest *forest) {
    Root *roots = malloc((forest->root_count + 1) * sizeof *roots);
    uint32_t *sorted = malloc((forest->root_count + 1) * sizeof *sorted);
    if (!roots || !sorted) return free(roots), free(sorted), ENOMEM;
    for (uint64_t at = 0; at < forest->root_count; at++) roots[at] = (Root){forest->spans[forest->roots[at]].start, at};
    qsort(roots, forest->root_count, sizeof *roots, compare_roots);
    for (uint64_t at = 0; at < forest->root_count; at++) sorted[at] = forest->roots[roots[at].place];
    free(roots);
    free(forest->roots);
    forest->roots = sorted;
    return 0;
}

/* Whether each span lies within a root. If not, some are their own ancestors. */
static int reaches_all(const Forest *forest, uint32_t *queue) {
    uint64_t count = forest->root_count;
    memcpy(queue, forest->roots, count * sizeof *queue);
    for (uint64_t at = 0; at < count; at++) {
        const TraceSpan *span = &forest->spans[queue[at]];
        memcpy(queue + count, forest->children + span->first_child, span->child_count * sizeof *queue);
        count += span->child_count;
    }
    return count == forest->count;
}

int forest_choose(Forest *forest, const uint32_t *by_identity) {
    uint64_t count = forest->count;
    forest->children = calloc(count + 1, sizeof(uint32_t));
    forest->roots = calloc(count + 1, sizeof(uint32_t));
    if (!forest->children || !forest->roots) return ENOMEM;
    for (uint64_t at = 0; at < count; at++) {
        TraceSpan *span = &forest->spans[at];
        uint32_t parent = span->parent ? by_identity[span->parent] : 0;
        forest->orphans += span->parent && !parent;
        span->parent = parent; /* its place + 1 from now on */
        if (parent) forest->spans[parent - 1].child_count++;
        else forest->roots[forest->root_count++] = (uint32_t)at;
    }
    uint32_t used = 0;
    for (uint64_t at = 0; at < count; at++) {
        forest->spans[at].first_child = used;
        used += forest->spans[at].child_count;
        forest->spans[at].child_count = 0;
    }
    for (uint64_t at = 0; at < count; at++) {
        uint32_t parent = forest->spans[at].parent;
        if (!parent) continue;
        TraceSpan *above = &forest->spans[parent - 1];
        forest->children[above->first_child + above->child_count++] = (uint32_t)at;
    }
    for (uint64_t at = 0; at < count; at++) choose(forest, &forest->spans[at]);
    uint32_t *queue = malloc((count + 1) * sizeof *queue);
    if (!queue) return ENOMEM;
    int is_forest = reaches_all(forest, queue);
    free(queue);
    return is_forest ? sort_roots(forest) : EBADMSG;
}

/* ---- events ---- */

typedef struct Call {
    uint32_t span, next; /* next: how many of its callees were entered */
    int64_t frame;
} Call;
typedef struct Writer {
    const Forest *forest;
    Tree *tree;
    const SpanMeaning *meaning;
    EventSource source;
    Call *calls; /* that are open */
    uint32_t height, room;
    int64_t frame, last, left_out;
} Writer;

static void tell(Writer *writer, int64_t frame, int32_t feature, double value) {
    Event told = {0, frame, feature, -1, -1, EVENT_FEATURE};
    memcpy(&told.value, &value, sizeof value);
    if (feature > 0) calltree_feed(writer->tree, &writer->source, &told);
    writer->left_out += feature < 0;
}

static int enter(Writer *writer, uint32_t number) {
    if (writer->height == writer->room) {
        uint32_t room = writer->room ? writer->room * 2 : 64;
        Call *larger = realloc(writer->calls, room * sizeof(Call));
        if (!larger) return ENOMEM;
        writer->calls = larger;
        writer->room = room;
    }
    const TraceSpan *span = &writer->forest->spans[number];
    const SpanMeaning *meaning = writer->meaning;
    const TraceSpan *caller = writer->height ? &writer->forest->spans[writer->calls[writer->height - 1].span] : NULL;
    int64_t frame = ++writer->frame;
    int32_t key = (int32_t)(scramble((uint64_t)frame) & KEYS) ^ meaning->key;
    int32_t site = meaning->sites[caller ? meaning->codes[caller->component] : 0];
    const Event entered = {span->start, frame, meaning->codes[span->component], site, key, EVENT_ENTER};
    calltree_feed(writer->tree, &writer->source, &entered);
    const Attribute *attribute = writer->forest->attributes + span->first_attribute;
    for (uint32_t at = 0; at < span->attribute_count; at++, attribute++) {
        if (attribute->kind == SPAN_NUMBER) tell(writer, frame, meaning->features[attribute->key], attribute->value);
        else tell(writer, frame, meaning->category_features[attribute->key], meaning->categories[(uint32_t)attribute->value]);
    }
    if (writer->forest->failing[span->group]) tell(writer, frame, meaning->failed, span->failed);
    if (span->links) tell(writer, frame, meaning->links, span->links);
    if (span->start > writer->last) writer->last = span->start;
    writer->calls[writer->height++] = (Call){number, 0, frame};
    return 0;
}

static void leave(Writer *writer) {
    const Call *top = &writer->calls[--writer->height];
    int64_t end = writer->forest->spans[top->span].end;
    if (end == INT64_MAX) return;
    const Event left = {end, top->frame, 1, -1, -1, EVENT_EXIT};
    calltree_feed(writer->tree, &writer->source, &left);
    if (end > writer->last) writer->last = end;
}

/* A root and all that lies within it. */
static int write_root(Writer *writer, uint32_t root) {
    int error = enter(writer, root);
    while (writer->height && !error) {
        Call *top = &writer->calls[writer->height - 1];
        const TraceSpan *span = &writer->forest->spans[top->span];
        if (top->next < span->child_count) error = enter(writer, writer->forest->children[span->first_child + top->next++]);
        else leave(writer);
    }
    if (writer->forest->spans[root].end == INT64_MAX) calltree_end(writer->tree, &writer->source); /* it stays open */
    return error;
}

int forest_play(Forest *forest, Tree *tree, const SpanMeaning *meaning, int64_t *outcome) {
    Writer writer = {.forest = forest, .tree = tree, .meaning = meaning, .frame = forest->frame, .last = INT64_MIN};
    int error = 0;
    for (uint64_t at = 0; at < forest->root_count && !error; at++) error = write_root(&writer, forest->roots[at]);
    calltree_end(tree, &writer.source);
    free(writer.calls);
    forest->frame = writer.frame;
    outcome[0] = writer.last;
    outcome[1] = writer.left_out;
    return error;
}

void forest_clear(Forest *forest) {
    free(forest->children);
    free(forest->roots);
    forest->children = forest->roots = NULL;
    forest->count = forest->attribute_count = forest->root_count = 0;
}

void forest_free(Forest *forest) {
    void *all[] = {forest->spans, forest->attributes, forest->children, forest->roots, forest->failing};
    for (size_t which = 0; which < sizeof all / sizeof *all; which++) free(all[which]);
}
