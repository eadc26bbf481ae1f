#include "dump.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "nodes.h"

char *dump_sum(Sum sum, char *text) {
    int negative = (__int128)sum < 0;
    Sum rest = negative ? -sum : sum;
    char digits[41], *at = digits + 40;
    *at = 0;
    do *--at = (char)('0' + (int)(rest % 10));
    while (rest /= 10);
    if (negative) *--at = '-';
    return strcpy(text, at);
}

static void print_sums(FILE *out, const Sum *sums, int count) {
    char text[41];
    for (int at = 0; at < count; at++) fprintf(out, " %s", dump_sum(sums[at], text));
}

static int by_pair(const void *a, const void *b) {
    const Pair *x = a, *y = b;
    return x->i != y->i ? (x->i > y->i) - (x->i < y->i) : (x->j > y->j) - (x->j < y->j);
}

static int by_node(const void *a, const void *b) {
    const Link *x = a, *y = b;
    return (x->node > y->node) - (x->node < y->node);
}

/* A sorted copy of a row, the caller frees it; NULL if it is empty. */
static void *sorted(const Arena *arena, Offset row, size_t size, int (*order)(const void *, const void *)) {
    uint32_t count = row_count(arena, row);
    void *copy = count ? malloc(count * size) : NULL;
    if (!copy) return NULL;
    memcpy(copy, row_items(arena, row), count * size);
    qsort(copy, count, size, order);
    return copy;
}

static void dump_pairs(const Arena *arena, uint32_t number, const Node *node, FILE *out) {
    Pair *pairs = sorted(arena, node->pairs, sizeof(Pair), by_pair);
    if (node->local_seen) {
        fprintf(out, "pair %u %d %d", number, LOCAL, LOCAL);
        print_sums(out, &node->local_xx, 1);
        fputc('\n', out);
    }
    for (uint32_t at = 0; pairs && at < row_count(arena, node->pairs); at++) {
        fprintf(out, "pair %u %d %d", number, pairs[at].i, pairs[at].j);
        print_sums(out, &pairs[at].sum_yy, 1);
        fputc('\n', out);
    }
    free(pairs);
}

static void dump_links(const Arena *arena, uint32_t number, const Node *node, FILE *out) {
    Link *links = sorted(arena, node->links, sizeof(Link), by_node);
    for (uint32_t at = 0; links && at < row_count(arena, node->links); at++) {
        const Link *link = &links[at];
        fprintf(out, "link %u %d %" PRIu64 " %" PRIu64 " %" PRIu64, number, link->node, link->n, link->n - link->n_more,
                link->n + link->more_k);
        Sum kk = link->n + link->more_kk, ky = link->sum_y + link->more_ky;
        print_sums(out, (Sum[]){kk, ky, link->sum_y, link->sum_yy, link->sum_yx}, 5);
        fputc('\n', out);
    }
    free(links);
}

static void dump_histogram(const Arena *arena, uint32_t number, const Node *node, FILE *out) {
    const Window *window = node->histogram ? arena_at(arena, node->histogram) : NULL;
    for (uint32_t at = 0; window && at < window->length; at++)
        if (window->counts[at]) fprintf(out, "histogram %u %u %" PRIu64 "\n", number, window->low + at, window->counts[at]);
}

static void dump_waits(const Arena *arena, uint32_t number, const Node *node, FILE *out) {
    const Waits *waits = node->waits ? arena_at(arena, node->waits) : NULL;
    if (!waits || !waits->n) return;
    fprintf(out, "wait %u %" PRIu64, number, waits->n);
    print_sums(out, (Sum[]){waits->sum_w, waits->sum_ww}, 2);
    fprintf(out, " %" PRId64 " %" PRId64 "\n", waits->least, waits->most);
}

static void dump_node(const Arena *arena, uint32_t number, uint64_t standing, FILE *out) {
    const Node *node = node_at(arena, (int32_t)number);
    fprintf(out, "node %u %d %d %d %d", number, node->parent, node->code, node->site, node->depth);
    fprintf(out, " %" PRIu64 " %" PRIu64, node->n, node->open + standing);
    print_sums(out, (Sum[]){node->sum_x, node->sum_xx}, 2);
    fprintf(out, " %" PRId64 " %" PRId64 "\n", node->min_x, node->max_x);
    dump_pairs(arena, number, node, out);
    dump_links(arena, number, node, out);
    dump_histogram(arena, number, node, out);
    dump_waits(arena, number, node, out);
}

static void count_open(const Arena *arena, uint64_t *standing, Offset invocation) {
    const Invocation *open = arena_at(arena, invocation);
    if ((uint32_t)open->node < arena->head->tree.nodes.count) standing[open->node]++;
}

/* Invocations that still stand on stacks or are suspended, by node; the caller frees it. */
static uint64_t *count_standing(const Arena *arena) {
    const Tree *tree = &arena->head->tree;
    uint64_t *standing = calloc(tree->nodes.count + 1, sizeof(uint64_t));
    for (uint32_t at = 0; standing && at < tree->threads.count; at++) {
        const Thread *thread = grid_at(arena, &tree->threads, at);
        const Offset *stack = arena_at(arena, thread->stack);
        for (uint32_t level = 0; level < thread->height; level++) count_open(arena, standing, stack[level]);
    }
    const Slot *suspended = arena_at(arena, tree->suspended.slots);
    for (uint32_t at = 0; standing && at < tree->suspended.capacity; at++)
        if (suspended[at].value) count_open(arena, standing, (Offset)suspended[at].value * 16);
    return standing;
}

static void dump_code(const Arena *arena, uint32_t number, FILE *out) {
    const Code *code = grid_at(arena, &arena->head->tree.codes, number);
    fprintf(out, "code %u", number);
    print_sums(out, (Sum[]){code->total, code->self}, 2);
    fputc('\n', out);
    if (code->reservoir) dump_samples(arena, number, code->reservoir, out);
}

void dump_tree(const Arena *arena, FILE *out) {
    const Header *head = arena->head;
    const Tree *tree = &head->tree;
    fprintf(out, "head %u %" PRIu64 " %" PRIu64 " %u", head->version, tree->calls, tree->lost, head->full);
    fprintf(out, " %" PRId64 " %" PRId64 " %d\n", tree->first, tree->last, (int)tree->busy - 1);
    uint64_t *standing = count_standing(arena);
    for (uint32_t number = 0; standing && number < tree->nodes.count; number++)
        dump_node(arena, number, standing[number], out);
    for (uint32_t number = 1; number < tree->codes.count; number++) dump_code(arena, number, out);
    free(standing);
}
