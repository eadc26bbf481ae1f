/* A library with probes that is loaded and unloaded; KIND says which. C and C++. */
#include <perflaw.h>

#if KIND == 1
PERFLAW_PROBE(1, "one", "");
#else
PERFLAW_PROBE(1, "another", "");
PERFLAW_PROBE(20, "library", "rows");
#endif

#ifdef __cplusplus
extern "C"
#endif
    void
    execute(int times);

void execute(int times) {
    for (int at = 0; at < times; at++) {
#if KIND == 1
        LAT_PROBE_BEGIN(1, 1);
        LAT_PROBE_END(1);
#else
        CNT_PROBE_BEGIN(1, 1);
        CNT_PROBE_END(1);
        SNAPSHOT_PROBE(20, 1, at);
#endif
    }
}
