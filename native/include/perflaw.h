/* perflaw.h: probes for C and C++ (Table 1 of Go and Colmenares, "Enabling Performance Exploration and Analysis for
 * Multi-parametric Systems", 2016). Header-only; nothing to link (but -pthread with glibc before 2.34).
 *
 *     #include <perflaw.h>                          // cc $(perflaw --cflags) ...
 *     PERFLAW_PROBE(7, "query", "");                // at file level: a name, and the unit of its values
 *     ...
 *     LAT_PROBE_BEGIN(7, 1);                        // id 0..1023: a number, macro or enumerator; each execution
 *     answer = query(text);
 *     LAT_PROBE_END(7);                             // in the same function
 *
 * All probes are disabled until they are enabled from outside: by `perflaw probes enable`, by `perflaw record --collect
 * probes`, or by PERFLAW_PROBES_ENABLE="*" in the environment (or names and ids, separated by commas). A disabled probe
 * costs less than a nanosecond. BEGIN declares a variable, so it cannot be the whole body of an `if`, and END must be
 * where that variable is visible. An execution that leaves in between, by return, exception or longjmp, makes no
 * record.
 *
 * Records go to a ring of the thread, in memory shared with the collector; the oldest ones are overwritten, and nothing
 * ever waits. If there can be no probes (a full disk, no /dev/shm, another system than 64-bit Linux), the program runs
 * without them. -DPERFLAW_PROBES_OFF leaves them out at compile time.
 *
 *     perflaw/layout.h    the shared area                    perflaw/write.h      writing a record
 *     perflaw/system.h    what is needed of the system       perflaw/hot.h        what stands at a probe
 *     perflaw/process.h   what the program knows of itself   perflaw/counters.h   what kernel and processor count
 *     perflaw/area.h      making the area                    perflaw/lifecycle.h  beginning and end
 *     perflaw/register.h  which probes there are             perflaw/off.h        no probes
 *     perflaw/rings.h     a thread's ring
 */
#ifndef PERFLAW_H
#define PERFLAW_H

#if defined(PERFLAW_PROBES_OFF) || !defined(__linux__) || !defined(__LP64__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#include "perflaw/off.h"
#else

#include "perflaw/lifecycle.h"
#include "perflaw/counters.h"

/* An id, checked by the compiler. */
#define PERFLAW_ID(id) ((uint32_t)(id))

/* Leave in the program that a probe stands here. This is assembly, which works in templates and inline functions
 * too; it executes nothing. */
#if defined(__clang__) && __clang_major__ >= 13
#define PERFLAW_SECTION_FLAGS "aR" /* lld drops sections that nothing refers to unless they are marked */
#else
#define PERFLAW_SECTION_FLAGS "a"
#endif
#define PERFLAW_SITE(id, type)                                                                                        \
    PERFLAW_ASSERT((unsigned long long)(id) < PERFLAW_MAX_PROBES, "ids of probes are 0 to 1023");                    \
    __asm__ volatile(".pushsection perflaw_sites,\"" PERFLAW_SECTION_FLAGS "\"\n.balign 4\n.long %c0, %c1\n.popsection"      \
                     ::"i"((int)(id)), "i"((int)(type)))

/* ---- names ---- */

/* At file level: the name and unit of a probe. Two names for one id do not compile; in two files, they mark the
 * entry as a conflict. */
#define PERFLAW_PROBE(id, name, unit) PERFLAW_DEFINE(called, id, name, unit, NULL)
/* At file level: the names of a SNAPSHOT probe's values, as one text with commas between. */
#define PERFLAW_FIELDS(id, names) PERFLAW_DEFINE(fields, id, NULL, NULL, names)

#define PERFLAW_DEFINE(kind, id, its_name, its_unit, its_fields)                                                     \
    static __attribute__((constructor(102), used, cold, no_instrument_function)) void perflaw_##kind##_##id(void) {   \
        PERFLAW_ASSERT((unsigned long long)(id) < PERFLAW_MAX_PROBES, "ids of probes are 0 to 1023");                \
        perflaw_on_load();                                                                                             \
        perflaw_register(PERFLAW_ID(id), 0, its_name, its_unit, its_fields);                                          \
    }                                                                                                                 \
    struct perflaw_semicolon

/* ---- CNT: how often the enclosed code was executed since the last record: {executions} ---- */

#define CNT_PROBE_BEGIN(id, sc)                                                                                       \
    const uint32_t perflaw_cnt_##id = perflaw_cnt_begin(PERFLAW_ID(id), (uint32_t)(sc));                              \
    PERFLAW_SITE(id, PERFLAW_CNT)
#define CNT_PROBE_END(id)                                                                                             \
    do {                                                                                                              \
        if (PERFLAW_UNLIKELY(perflaw_cnt_##id)) perflaw_count_execution(PERFLAW_ID(id), PERFLAW_CNT, perflaw_cnt_##id, 0, 0);     \
    } while (0)

/* ---- LAT: how long the enclosed code took: {cycles} ---- */

#define LAT_PROBE_BEGIN(id, sc)                                                                                       \
    const uint64_t perflaw_lat_##id = perflaw_lat_begin(PERFLAW_ID(id), (uint32_t)(sc));                              \
    PERFLAW_SITE(id, PERFLAW_LAT)
#define LAT_PROBE_END(id)                                                                                             \
    do {                                                                                                              \
        if (PERFLAW_UNLIKELY(perflaw_lat_##id)) perflaw_lat_end(PERFLAW_ID(id), perflaw_lat_##id);                    \
    } while (0)

/* ---- TPT: how often the enclosed code was executed since the last record, and how long that took: {executions, cycles} ---- */

#define TPT_PROBE_BEGIN(id, sc)                                                                                       \
    const perflaw_start_mark perflaw_tpt_##id = perflaw_tpt_begin(PERFLAW_ID(id), (uint32_t)(sc));                          \
    PERFLAW_SITE(id, PERFLAW_TPT)
#define TPT_PROBE_END(id)                                                                                             \
    do {                                                                                                              \
        if (PERFLAW_UNLIKELY(perflaw_tpt_##id.every)) perflaw_tpt_end(PERFLAW_ID(id), perflaw_tpt_##id);              \
    } while (0)

/* ---- what the kernel and the processor count for this thread while the enclosed code runs ---- */

#define LLC_PROBE_BEGIN(id, sc) PERFLAW_COUNTS_BEGIN(llc, id, PERFLAW_LLC, sc, 0) /* {references, misses} */
#define LLC_PROBE_END(id) PERFLAW_COUNTS_END(llc, id, PERFLAW_LLC)
#define FLT_PROBE_BEGIN(id, sc) PERFLAW_COUNTS_BEGIN(flt, id, PERFLAW_FLT, sc, 0) /* {minor, major} page faults */
#define FLT_PROBE_END(id) PERFLAW_COUNTS_END(flt, id, PERFLAW_FLT)
#define CTXSW_PROBE_BEGIN(id, sc) PERFLAW_COUNTS_BEGIN(ctxsw, id, PERFLAW_CTXSW, sc, 0) /* {voluntary, involuntary} */
#define CTXSW_PROBE_END(id) PERFLAW_COUNTS_END(ctxsw, id, PERFLAW_CTXSW)
#define PERFCNTR_PROBE_BEGIN(id, sc, pcid) PERFLAW_COUNTS_BEGIN(perfcntr, id, PERFLAW_PERFCNTR, sc, pcid) /* {value} */
#define PERFCNTR_PROBE_END(id) PERFLAW_COUNTS_END(perfcntr, id, PERFLAW_PERFCNTR)
/* Set what counter `pcid` (0 to 7) counts, by the processor's numbers: (0, 0x2E, 0x41) are misses of the last-level
 * cache. */
#define SET_PERFCNTR(pcid, event, mask) perflaw_set_counter((uint32_t)(pcid), (uint64_t)(event), (uint64_t)(mask))

#define PERFLAW_COUNTS_BEGIN(kind, id, type, sc, counter)                                                               \
    const perflaw_counts perflaw_##kind##_##id =                                                                        \
        perflaw_counts_begin(PERFLAW_ID(id), type, (uint32_t)(sc), (uint32_t)(counter) % PERFLAW_COUNTERS);             \
    PERFLAW_SITE(id, type)
#define PERFLAW_COUNTS_END(kind, id, type)                                                                              \
    do {                                                                                                              \
        if (PERFLAW_UNLIKELY(perflaw_##kind##_##id.is_measured)) perflaw_counts_end(PERFLAW_ID(id), type, &perflaw_##kind##_##id); \
    } while (0)

/* ---- SNAPSHOT_PROBE(id, sc, v0, ...): up to 6 values of the program, as integers of 64 bits. They are evaluated only when a record
 * is made. ---- */

#define SNAPSHOT_PROBE(...)                                                                                           \
    PERFLAW_NTH(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0, none, 0)                                                            \
    (__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define PERFLAW_NTH(id, sc, v0, v1, v2, v3, v4, v5, count, ...) PERFLAW_SNAPSHOT_##count

#include "perflaw/hot.h"
#endif
#endif
