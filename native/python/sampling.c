/* Which invocations are candidates for the uniform sample (skips.h), and which have their features read. */
#include "tracer.h"

#include <stdlib.h>

enum { SHARE = 100, LONGEST_GAP = 4096 }; /* features beyond the sample: at most a hundredth of the time */

/* Whether reading this function's features on a call that is not sampled stays within its share of the time. */
static int is_cheap(Function *function) {
    int cheap = !recorder.settings.fake && function->reading_ns * SHARE <= clock_ns(&recorder.clock) - recorder.started;
    function->gap = cheap ? 0 : function->gap < LONGEST_GAP ? function->gap * 2 + 1 : LONGEST_GAP;
    return cheap;
}

int32_t sampling_enter(Thread *thread, Function *function, int *read) {
    int32_t key = -1;
    if (!function->skips && !(function->skips = calloc(1, sizeof *function->skips))) return -1;
    function->until_key -= function->span;
    if (function->until_key <= 0) {
        key = skips_draw(function->skips, &thread->chance);
        function->until_key = skips_next(function->skips, &thread->chance);
    } else {
        function->until_key--;
    }
    *read = is_cheap(function) || key >= 0;
    function->span = function->until_key < function->gap ? function->until_key : function->gap;
    function->countdown = function->span;
    return key;
}
