/* From marks to the call tree: which call lies in which. imports/tracks.py and imports/chrome.py do the same in Python.
 *
 * Begins and ends are played as they come. Complete events are nested by their times: a call lies in the shortest one that
 * holds it; a call that overlaps another goes to the first track of its thread where it fits.
 *
 * Ownership: none is kept. Threads: one at a time. Cost: 20 ns a mark beside those of the tree.
 */
#ifndef PERFLAW_NESTING_H
#define PERFLAW_NESTING_H

#include "core/tree/tree.h"
#include "marks.h"

enum { NESTING_MAX_TRACKS = 1024, NESTING_MAX_DEPTH = 1 << 20 }; /* tracks of a thread; calls within each other on a track */

/* How the marks of a process become events. */
typedef struct Meaning {
    const int32_t *codes;    /* number of the function by that of a name, 0 for none */
    const int32_t *sites;    /* call site of each caller, by its code; of no caller at 0 */
    const int32_t *features; /* number of the feature by that of the number's name, 0 for none */
    uint32_t code_count;     /* codes are below */
    int32_t key;             /* mixed into the priorities of calls */
    int64_t tick;            /* ns: an overlap of so much is rounding */
} Meaning;

/* What came of them. */
typedef struct Outcome {
    uint64_t begun_earlier, overlaps, cut, left_out; /* calls; left_out: numbers whose name has no feature */
    int64_t last;                                    /* the last stamp, ns */
    uint64_t frame;                                  /* how many calls were numbered so far */
} Outcome;

/* Add all marks of one thread to the tree. `next` is its first mark, and the first one of the next thread afterwards.
 * are_paired: begins and ends have become calls already. 0 or errno; EOVERFLOW beyond the bounds. */
int nesting_play(Tree *tree, MarkReader *reader, const Mark **next, const Number **numbers, const Meaning *meaning,
                 int are_paired, Outcome *outcome);

/* Turn the begins and ends of the thread that the reader has into calls, which are added to `to`. codes as above. */
int nesting_pair(Marks *to, MarkReader *reader, const int32_t *codes, uint32_t code_count, Outcome *outcome);

#endif
