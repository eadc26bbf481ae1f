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

static int32_t made(Arena *arena, int32_t parent, int32_t site, int32_t code) {
    Grid *nodes = &arena->head->tree.nodes;
    Node *node = grid_next(arena, nodes);
    if (!node) return ROOT;
    *node = (Node){.parent = parent, .site = site, .code = code, .depth = node_at(arena, parent)->depth + 1};
    grid_publish(nodes);
    return (int32_t)nodes->count - 1;
}

int32_t nodes_child(Arena *arena, int32_t parent, int32_t site, int32_t code) {
    Node *caller = node_at(arena, parent), *hot = node_at(arena, (int32_t)caller->hot_child);
    if (hot->code == code && hot->site == site && caller->hot_child) return (int32_t)caller->hot_child;
    Table *children = &arena->head->tree.children;
    int32_t child = (int32_t)table_get(arena, children, (uint32_t)parent, (uint32_t)site, (uint32_t)code);
    if (!child) {
        child = folded(arena, parent, site, code);
        if (!child) child = made(arena, parent, site, code);
        if (child) table_put(arena, children, (uint32_t)parent, (uint32_t)site, (uint32_t)code, (uint32_t)child);
    }
    caller->hot_child = (uint32_t)child;
    return child;
}
