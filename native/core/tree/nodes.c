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
    if (function->is_library) tree->library_node_count++;
    return node->number;
}

/* Enter a child into the index. Gives its number. */
static int32_t index_child(Tree *tree, const Node *parent, int32_t site, int32_t code, int32_t child) {
    Table *children = &tree->children;
    if (child) table_put(&tree->arena, children, (uint32_t)parent->number, (uint32_t)site, (uint32_t)code, (uint32_t)child);
    return child;
}

/* The one node of a function for all its other contexts below a node. These contexts are not remembered. */
static Node *child_elsewhere(Tree *tree, const Node *above, int32_t code) {
    int32_t child = (int32_t)table_get(&tree->children, (uint32_t)above->number, (uint32_t)ELSEWHERE, (uint32_t)code);
    if (!child) child = index_child(tree, above, ELSEWHERE, code, create(tree, above, ELSEWHERE, code));
    return child ? node_at(tree, child) : NULL;
}

static int is_of_library(const Node *node) { return node->number > ROOT && node->function->is_library; }

/* The outermost node of a library function among its callers, up to the first that is no library's; ROOT if there is
 * none. */
static int32_t library_head(const Tree *tree, const Node *parent, int32_t code) {
    int32_t outermost = ROOT;
    for (const Node *node = parent; is_of_library(node); node = node_at(tree, node->parent))
        if (node->code == code) outermost = node->number;
    return outermost;
}

/* A new context of a library function: see nodes.h. NULL if it may have a node of its own. */
static Node *library_child(Tree *tree, Node *parent, int32_t site, int32_t code) {
    uint64_t used = 4 * (uint64_t)tree->library_node_count, bound = tree->limits.nodes;
    if (used >= 2 * bound && used < 3 * bound) {
        int32_t head = library_head(tree, parent, code);
        return head && index_child(tree, parent, site, code, head) ? node_at(tree, head) : NULL;
    }
    if (used < 3 * bound) return NULL;
    const Node *above = parent;
    while (is_of_library(above)) above = node_at(tree, above->parent);
    return child_elsewhere(tree, used < 4 * bound ? above : node_at(tree, ROOT), code);
}

/* A new context where no more may be added, or a library's; NULL if it may have a node of its own. */
static Node *bounded_child(Tree *tree, Node *parent, int32_t site, int32_t code) {
    const Function *function = nodes_function(tree, code);
    if (function && function->is_library) return library_child(tree, parent, site, code);
    if (tree->nodes.count - tree->library_node_count < tree->limits.nodes) return NULL;
    return child_elsewhere(tree, node_at(tree, ROOT), code);
}

Node *nodes_find_child(Tree *tree, Node *parent, int32_t site, int32_t code) {
    int32_t child = (int32_t)table_get(&tree->children, (uint32_t)parent->number, (uint32_t)site, (uint32_t)code);
    Node *bounded = child ? NULL : bounded_child(tree, parent, site, code);
    if (bounded) return bounded;
    if (!child) {
        child = recursion_head(tree, parent->number, site, code);
        if (!child) child = create(tree, parent, site, code);
        if (!index_child(tree, parent, site, code, child)) return NULL;
    }
    return parent->last_child = node_at(tree, child);
}
