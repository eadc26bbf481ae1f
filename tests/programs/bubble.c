/*
 * The bubble sort of Goldsmith et al., FSE'07, §3, its eight locations a line each, on the four kinds of workloads of
 * §6.1.2: bubble random|sorted|reversed|nearly N SEED [BOUND]. Random integers are below BOUND: the fewer values there are,
 * the fewer swaps. Prints how often it swapped. tests/programs/bubble.py is its twin.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long swaps;

static void swap(int *one, int *other)
{
    int kept = *one;
    *one = *other;
    *other = kept;
    swaps++;
}

static void bubble_sort(int n, int *arr)
{
    int i = 0;                          /* location 1: 1 */
    while (i < n) {                     /* location 2: n + 1 */
        int j = i + 1;                  /* location 3: n */
        while (j < n) {                 /* location 4: n (n + 1) / 2 */
            if (arr[j] < arr[i])        /* location 5: n (n - 1) / 2 */
                swap(&arr[i], &arr[j]); /* location 6: depends on the workload */
            j++;                        /* location 7: as 5 */
        }
        i++;                            /* location 8: n */
    }
}

/* A linear congruential generator (Knuth's MMIX), the same in the twin: a number below n. */
static uint64_t state;

static int below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static void fill(const char *kind, int n, int *arr, int bound)
{
    for (int i = 0; i < n; i++)
        arr[i] = strcmp(kind, "reversed") ? i : n - i;
    if (!strcmp(kind, "random"))
        for (int i = 0; i < n; i++)
            arr[i] = below(bound);
    if (!strcmp(kind, "nearly"))        /* O(n) swaps of neighbours: about a pair in four is inverted */
        for (int i = 0; i + 1 < n; i += 2)
            if (below(4) == 0) {
                arr[i]++;
                arr[i + 1]--;
            }
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 5)
        return 2;
    int n = atoi(argv[2]);
    int *arr = malloc((size_t)n * sizeof *arr + 1);
    state = strtoull(argv[3], NULL, 10);
    fill(argv[1], n, arr, argc == 5 ? atoi(argv[4]) : 1 << 30);
    bubble_sort(n, arr);
    printf("%ld\n", swaps);
    free(arr);
    return 0;
}
