#include "nodes.h"

#include "table.h"

/* The head of a recursion that would repeat (site, callee) for the third time on this path; ROOT if there is none. */
static int32_t folded(const Tree *tree, int32_t parent, int32_t site, int32_t code) {
    int32_t outermost = ROOT;
    unsigned repeated = 0;
    for (int32_t at = parent; at > ROOT;) {
        const Node *node = node_at(tree, at);
        if (node->site == site && node->code == code) {
            outermost = at;
            repeated++;
        }
        at = node->parent;
    }
    return repeated >= 2 ? outermost : ROOT;
}

Code *nodes_code(Tree *tree, int32_t number) {
    Code **place = grid_reach(&tree->arena, &tree->codes, (uint32_t)number);
    if (!place) return NULL;
    if (!*place && (*place = arena_alloc(&tree->arena, sizeof(Code)))) (*place)->number = number;
    return *place;
}

/* A new node, entered into the index; ROOT if the arena is full. */
static int32_t made(Tree *tree, const Node *parent, int32_t site, int32_t code) {
    uint32_t number = tree->nodes.count;
    Code *sums = nodes_code(tree, code);
    Node *node = sums ? grid_reach(&tree->arena, &tree->nodes, number) : NULL;
    if (!node) return ROOT;
    node->parent = parent->number;
    node->site = site;
    node->code = code;
    node->depth = parent->depth + 1;
    node->number = (int32_t)number;
    node->sums = sums;
    return node->number;
}

static int32_t kept(Tree *tree, const Node *parent, int32_t site, int32_t code, int32_t child) {
    Table *children = &tree->children;
    if (child) table_put(&tree->arena, children, (uint32_t)parent->number, (uint32_t)site, (uint32_t)code, (uint32_t)child);
    return child;
}

/* Beyond the bound there is one node a function, whatever the context. Contexts are not remembered then. */
static Node *elsewhere(Tree *tree, int32_t code) {
    const Node *root = node_at(tree, ROOT);
    int32_t child = (int32_t)table_get(&tree->children, ROOT, (uint32_t)ELSEWHERE, (uint32_t)code);
    if (!child) child = kept(tree, root, ELSEWHERE, code, made(tree, root, ELSEWHERE, code));
    return child ? node_at(tree, child) : NULL;
}

Node *nodes_seek(Tree *tree, Node *parent, int32_t site, int32_t code) {
    int32_t child = (int32_t)table_get(&tree->children, (uint32_t)parent->number, (uint32_t)site, (uint32_t)code);
    if (!child && tree->nodes.count >= tree->limits.nodes) return elsewhere(tree, code);
    if (!child) {
        child = folded(tree, parent->number, site, code);
        if (!child) child = made(tree, parent, site, code);
        if (!kept(tree, parent, site, code, child)) return NULL;
    }
    return parent->hot_child = node_at(tree, child);
}
