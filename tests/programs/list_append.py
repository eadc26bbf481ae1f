"""The list append of Goldsmith et al., FSE'07, §1, that walks the list to find its end. The twin of list_append.c.

list_append.py N LENGTH appends N elements to lists of LENGTH elements each (0: all to one).
"""

import sys


class Node:
    def __init__(self, value):
        self.next = None
        self.value = value


def last_node(n):
    if n is None:
        return None
    while n.next:
        n = n.next
    return n


def append(head, added):
    last = last_node(head)
    if last is None:
        return added
    last.next = added
    return head


def main(n, length):
    head = None
    for i in range(n):
        if length and i % length == 0:
            head = None
        head = append(head, Node(i))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
