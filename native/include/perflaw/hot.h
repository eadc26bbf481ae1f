/* What stands in the program at each probe. While the probe is disabled that is a load, a test and a jump that is
 * not taken. */
#ifndef PERFLAW_HOT_H
#define PERFLAW_HOT_H

#include "write.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct perflaw_start_mark {
    uint64_t begin;
    uint32_t every; /* executions per record; 0 if this one is not measured */
} perflaw_start_mark;

/* Executions per record; 0 if the probe is disabled. */
PERFLAW_HOT uint32_t perflaw_cnt_begin(uint32_t id, uint32_t in_code) {
    uint64_t control = perflaw_control_word(id);
    if (PERFLAW_LIKELY(!(control & PERFLAW_ENABLED))) return 0;
    return perflaw_subsampling(id, PERFLAW_CNT, in_code, control);
}

/* When the execution began; 0 if it is not measured. */
PERFLAW_HOT uint64_t perflaw_lat_begin(uint32_t id, uint32_t in_code) {
    uint64_t control = perflaw_control_word(id);
    if (PERFLAW_LIKELY(!(control & PERFLAW_ENABLED))) return 0;
    uint32_t every = perflaw_subsampling(id, PERFLAW_LAT, in_code, control);
    if (every > 1 && !perflaw_is_due(id, every)) return 0;
    return perflaw_now();
}
PERFLAW_HOT void perflaw_lat_end(uint32_t id, uint64_t began) {
    uint64_t now = perflaw_now();
    perflaw_write_record(id, PERFLAW_LAT, 1, now, now - began, 0);
}

PERFLAW_HOT perflaw_start_mark perflaw_tpt_begin(uint32_t id, uint32_t in_code) {
    perflaw_start_mark mark = {0, 0};
    uint64_t control = perflaw_control_word(id);
    if (PERFLAW_LIKELY(!(control & PERFLAW_ENABLED))) return mark;
    mark.every = perflaw_subsampling(id, PERFLAW_TPT, in_code, control);
    mark.begin = perflaw_now();
    return mark;
}
PERFLAW_HOT void perflaw_tpt_end(uint32_t id, perflaw_start_mark mark) {
    uint64_t now = perflaw_now();
    perflaw_count_execution(id, PERFLAW_TPT, mark.every, now, now - mark.begin);
}

/* ---- SNAPSHOT ---- */

PERFLAW_HOT int perflaw_snapshot_begin(uint32_t id, uint32_t in_code) {
    uint64_t control = perflaw_control_word(id);
    if (PERFLAW_LIKELY(!(control & PERFLAW_ENABLED))) return 0;
    uint32_t every = perflaw_subsampling(id, PERFLAW_SNAPSHOT, in_code, control);
    return every == 1 || perflaw_is_due(id, every);
}
PERFLAW_HOT void perflaw_snapshot_end(uint32_t id, uint32_t count, const uint64_t *values) {
    perflaw_thread *self = perflaw_take_ring();
    if (PERFLAW_UNLIKELY(!self)) return;
    perflaw_record *record = perflaw_next_record(self, id, PERFLAW_SNAPSHOT, count, perflaw_now());
    for (uint32_t at = 0; at < count; at++) record->fields[at] = values[at];
    perflaw_publish_record(self);
    perflaw_give_ring(self);
}

#define PERFLAW_SNAPSHOT_0(id, sc, ...) PERFLAW_SNAP(id, sc, 0, 0, 0, 0, 0, 0, 0)
#define PERFLAW_SNAPSHOT_1(id, sc, a, ...) PERFLAW_SNAP(id, sc, 1, a, 0, 0, 0, 0, 0)
#define PERFLAW_SNAPSHOT_2(id, sc, a, b, ...) PERFLAW_SNAP(id, sc, 2, a, b, 0, 0, 0, 0)
#define PERFLAW_SNAPSHOT_3(id, sc, a, b, c, ...) PERFLAW_SNAP(id, sc, 3, a, b, c, 0, 0, 0)
#define PERFLAW_SNAPSHOT_4(id, sc, a, b, c, d, ...) PERFLAW_SNAP(id, sc, 4, a, b, c, d, 0, 0)
#define PERFLAW_SNAPSHOT_5(id, sc, a, b, c, d, e, ...) PERFLAW_SNAP(id, sc, 5, a, b, c, d, e, 0)
#define PERFLAW_SNAPSHOT_6(id, sc, a, b, c, d, e, f, ...) PERFLAW_SNAP(id, sc, 6, a, b, c, d, e, f)
#define PERFLAW_SNAP(id, sc, count, a, b, c, d, e, f)                                                                 \
    do {                                                                                                              \
        PERFLAW_SITE(id, PERFLAW_SNAPSHOT);                                                                           \
        if (PERFLAW_UNLIKELY(perflaw_snapshot_begin(PERFLAW_ID(id), (uint32_t)(sc)))) {                               \
            const uint64_t perflaw_values[] = {(uint64_t)(a), (uint64_t)(b), (uint64_t)(c),                           \
                                               (uint64_t)(d), (uint64_t)(e), (uint64_t)(f)};                          \
            perflaw_snapshot_end(PERFLAW_ID(id), count, perflaw_values);                                              \
        }                                                                                                             \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
