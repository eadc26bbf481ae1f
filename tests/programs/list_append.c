/*
 * The list append of Goldsmith et al., FSE'07, §1, that walks the list to find its end: list_append N LENGTH appends N
 * elements to lists of LENGTH elements each (0: all to one). Where lists grow with the input it is a performance bug, where
 * they stay short it is benign. tests/programs/list_append.py is its twin.
 */
#include <stdio.h>
#include <stdlib.h>

typedef struct node {
    struct node *next;
    int value;
} node;

static node *last_node(node *n)
{
    if (!n)
        return NULL;
    while (n->next)
        n = n->next; /* of one list of n elements: (n - 1)(n - 2) / 2 */
    return n;
}

static node *append(node *list, node *added)
{
    node *last = last_node(list);
    if (!last)
        return added;
    last->next = added;
    return list;
}

static void release(node *list)
{
    while (list) {
        node *next = list->next;
        free(list);
        list = next;
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int n = atoi(argv[1]), length = atoi(argv[2]);
    node *list = NULL;
    for (int i = 0; i < n; i++) {
        if (length && i % length == 0) {
            release(list);
            list = NULL;
        }
        node *added = calloc(1, sizeof *added);
        added->value = i;
        list = append(list, added);
    }
    release(list);
    return 0;
}
