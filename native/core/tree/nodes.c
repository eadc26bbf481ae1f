#include "nodes.h"

/* The outermost node of a recursion that would repeat (site, callee) for the third time on this path; ROOT if there
 * is none. */
static int32_t recursion_head(const Tree *tree, int32_t parent, int32_t site, int32_t code) {
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

Function *nodes_function(Tree *tree, int32_t code) {
    Function **place = grid_ensure(&tree->arena, &tree->functions, (uint32_t)code);
    if (!place) return NULL;
    if (!*place && (*place = arena_alloc(&tree->arena, sizeof(Function)))) (*place)->number = code;
    return *place;
}

/* Make a node. Gives its number, ROOT if the arena is full. */
static int32_t create(Tree *tree, const Node *parent, int32_t site, int32_t code) {
    uint32_t number = tree->nodes.count;
    Function *function = nodes_function(tree, code);
    Node *node = function ? grid_ensure(&tree->arena, &tree->nodes, number) : NULL;
    if (!node) return ROOT;
    node->parent = parent->number;
    node->site = site;
    node->code = code;
    node->depth = parent->depth + 1;
    node->number = (int32_t)number;
    node->function = function;
    return node->number;
}

/* Enter a child into the index. Gives its number. */
static int32_t index_child(Tree *tree, const Node *parent, int32_t site, int32_t code, int32_t child) {
    Table *children = &tree->children;
    if (child) table_put(&tree->arena, children, (uint32_t)parent->number, (uint32_t)site, (uint32_t)code, (uint32_t)child);
    return child;
}

/* Beyond the bound there is one node per function, whatever the context. Contexts are not remembered then. */
static Node *child_elsewhere(Tree *tree, int32_t code) {
    const Node *root = node_at(tree, ROOT);
    int32_t child = (int32_t)table_get(&tree->children, ROOT, (uint32_t)ELSEWHERE, (uint32_t)code);
    if (!child) child = index_child(tree, root, ELSEWHERE, code, create(tree, root, ELSEWHERE, code));
    return child ? node_at(tree, child) : NULL;
}

Node *nodes_find_child(Tree *tree, Node *parent, int32_t site, int32_t code) {
    int32_t child = (int32_t)table_get(&tree->children, (uint32_t)parent->number, (uint32_t)site, (uint32_t)code);
    if (!child && tree->nodes.count >= tree->limits.nodes) return child_elsewhere(tree, code);
    if (!child) {
        child = recursion_head(tree, parent->number, site, code);
        if (!child) child = create(tree, parent, site, code);
        if (!index_child(tree, parent, site, code, child)) return NULL;
    }
    return parent->last_child = node_at(tree, child);
}
