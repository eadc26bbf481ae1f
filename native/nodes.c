#include "nodes.h"

#include "table.h"

/* The head of a recursion that would repeat (site, callee) for the third time on this path; ROOT if there is none. */
static int32_t folded(const Arena *arena, int32_t parent, int32_t site, int32_t code) {
    int32_t outermost = ROOT;
    unsigned repeated = 0;
    for (int32_t at = parent; at > ROOT; at = node_at(arena, at)->parent)
        if (node_at(arena, at)->site == site && node_at(arena, at)->code == code) {
            outermost = at;
            repeated++;
        }
    return repeated >= 2 ? outermost : ROOT;
}

static int32_t made(Arena *arena, const Node *parent, int32_t site, int32_t code) {
    Grid *nodes = &arena->head->tree.nodes;
    Code *sums = grid_reach(arena, &arena->head->tree.codes, (uint32_t)code);
    Node *node = sums ? grid_next(arena, nodes) : NULL;
    if (!node) return ROOT;
    *node = (Node){
        .parent = (int32_t)parent->number, .site = site, .code = code, .depth = parent->depth + 1,
        .number = nodes->count, .sums = (Offset)((uint8_t *)sums - arena->base),
    };
    grid_publish(nodes);
    return (int32_t)node->number;
}

Node *nodes_seek(Arena *arena, Node *parent, int32_t site, int32_t code) {
    Table *children = &arena->head->tree.children;
    int32_t child = (int32_t)table_get(arena, children, parent->number, (uint32_t)site, (uint32_t)code);
    if (!child) {
        child = folded(arena, (int32_t)parent->number, site, code);
        if (!child) child = made(arena, parent, site, code);
        if (!child) return NULL;
        table_put(arena, children, parent->number, (uint32_t)site, (uint32_t)code, (uint32_t)child);
    }
    Node *node = node_at(arena, child);
    parent->hot_child = (Offset)((uint8_t *)node - arena->base);
    return node;
}
