"""The bubble sort of Goldsmith et al., FSE'07, §3, on the four kinds of workloads of §6.1.2. The twin of bubble.c.

bubble.py random|sorted|reversed|nearly N SEED [BOUND]. Random integers are below BOUND: the fewer values there are, the
fewer swaps. Prints how often it swapped.
"""

import sys

swaps = 0


def swap(arr, i, j):
    global swaps
    arr[i], arr[j] = arr[j], arr[i]
    swaps += 1


def bubble_sort(n, arr):
    i = 0
    while i < n:
        j = i + 1
        while j < n:
            if arr[j] < arr[i]:
                swap(arr, i, j)
            j += 1
        i += 1


def draws(seed):
    """Knuth's MMIX generator, the same in bubble.c."""
    while True:
        seed = (seed * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        yield seed >> 33


def filled(kind, n, seed, bound):
    arr = [n - i if kind == "reversed" else i for i in range(n)]
    numbers = draws(seed)
    if kind == "random":
        arr = [next(numbers) % bound for _ in range(n)]
    if kind == "nearly":
        for i in range(0, n - 1, 2):
            if next(numbers) % 4 == 0:
                arr[i], arr[i + 1] = arr[i + 1], arr[i]
    return arr


if __name__ == "__main__":
    kind, n, seed, bound = sys.argv[1], *map(int, [*sys.argv[2:], 1 << 30][:3])
    bubble_sort(n, filled(kind, n, seed, bound))
    print(swaps)
