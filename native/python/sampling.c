/* Which invocations are candidates for the uniform sample, and which have their features read.
 *
 * A bottom-k sample draws a priority for every invocation and keeps the KEYS smallest. Drawn here instead is how many
 * invocations come before the next whose priority is small enough (Vitter's skips; geometric, for the bound is fixed in
 * between), so that all the others only count down. */
#include "tracer.h"

#include <math.h>
#include <stdlib.h>

enum { SHARE = 100, LONGEST_GAP = 4096 }; /* features beyond the sample: at most a hundredth of the time */

static uint64_t next_chance(Thread *thread) {
    uint64_t mixed = thread->chance += 0x9e3779b97f4a7c15ull; /* SplitMix64 */
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
    return mixed ^ mixed >> 31;
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Remember a priority; at 2 * KEYS of them all but the smallest KEYS are forgotten and the bound sinks. */
static void keep(Function *function, uint32_t key) {
    if (function->kept == function->room) {
        uint32_t room = function->room ? function->room * 2 : 16;
        uint32_t *keys = realloc(function->keys, room * sizeof *keys);
        if (!keys) return;
        function->keys = keys;
        function->room = room;
    }
    function->keys[function->kept++] = key;
    if (function->kept < 2 * KEYS) return;
    qsort(function->keys, function->kept, sizeof *function->keys, ascending);
    function->kept = KEYS;
    function->bound = function->keys[KEYS - 1] + 1;
}

/* How many ordinary calls come before the next candidate. */
static int64_t skips(Thread *thread, const Function *function) {
    if (function->bound >> KEY_BITS) return 0;
    double chance = (double)function->bound / (double)(1u << KEY_BITS);
    double uniform = ((double)(next_chance(thread) >> 11) + 0.5) * 0x1p-53;
    double gap = log(uniform) / log1p(-chance);
    return gap < 1e15 ? (int64_t)gap : (int64_t)1e15;
}

/* Whether reading this function's features on a call that is not sampled stays within its share of the time. */
static int is_cheap(Function *function) {
    int cheap = !recorder.settings.fake && function->reading_ns * SHARE <= clock_ns(&recorder.clock) - recorder.started;
    function->gap = cheap ? 0 : function->gap < LONGEST_GAP ? function->gap * 2 + 1 : LONGEST_GAP;
    return cheap;
}

int32_t sampling_enter(Thread *thread, Function *function, int *read) {
    int32_t key = -1;
    function->until_key -= function->span;
    if (function->until_key <= 0) {
        key = (int32_t)(next_chance(thread) % function->bound);
        keep(function, (uint32_t)key);
        function->until_key = skips(thread, function);
    } else {
        function->until_key--;
    }
    *read = is_cheap(function) || key >= 0;
    function->span = function->until_key < function->gap ? function->until_key : function->gap;
    function->countdown = function->span;
    return key;
}
