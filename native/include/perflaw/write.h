/* Writing a record: its slot is filled, and then the ring's head moves on. Nobody waits. */
#ifndef PERFLAW_WRITE_H
#define PERFLAW_WRITE_H

#include "rings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* lifecycle.h defines these. */
PERFLAW_SLOW perflaw_entry *perflaw_prepare(void);
PERFLAW_SLOW perflaw_entry *perflaw_parent_entries(void);
PERFLAW_SLOW perflaw_thread *perflaw_take_ring_slow(void);

/* The control word of an entry, whose lowest byte is 0 if the probe is disabled. This is all that a disabled probe
 * does. */
PERFLAW_HOT uint64_t perflaw_control_word(uint32_t id) {
    perflaw_entry *entries = __atomic_load_n(&perflaw_process.entries, __ATOMIC_ACQUIRE);
    if (PERFLAW_UNLIKELY(!entries)) entries = perflaw_prepare();
    if (PERFLAW_UNLIKELY(!entries)) entries = perflaw_parent_entries();
    if (PERFLAW_UNLIKELY(!entries)) return 0;
    return __atomic_load_n(&entries[id].control, __ATOMIC_RELAXED);
}

/* Take the thread's ring away from signal handlers until perflaw_give_ring. NULL if the record is lost. */
PERFLAW_HOT perflaw_thread *perflaw_take_ring(void) {
    perflaw_thread *self = perflaw_self;
    if (PERFLAW_UNLIKELY(!self || !self->ring)) self = perflaw_take_ring_slow();
    if (PERFLAW_UNLIKELY(!self)) return NULL;
    self->ring = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return self;
}
PERFLAW_HOT void perflaw_give_ring(perflaw_thread *self) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->ring = self->home;
}

/* The next record, of which all but the fields is written. The old record in its slot may be read until the head
 * says that it is being overwritten; so on processors that reorder stores the head must be seen before the slot
 * changes. */
PERFLAW_HOT perflaw_record *perflaw_next_record(perflaw_thread *self, uint32_t id, uint32_t type, uint32_t count, uint64_t now) {
    perflaw_ring *ring = self->home;
    uint64_t cpu = (uint64_t)(PERFLAW_LIKELY(self->cpu != NULL) ? *self->cpu : (uint32_t)sched_getcpu()) & 0xffff;
#if !defined(__x86_64__)
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
    perflaw_record *record = ring->records + (ring->head & self->mask);
    record->timestamp = now;
    record->what = ((uint64_t)id | (uint64_t)type << 16 | (uint64_t)count << 20) | cpu << 24 | self->who;
    return record;
}
PERFLAW_HOT void perflaw_publish_record(perflaw_thread *self) {
    __atomic_store_n(&self->home->head, self->home->head + 1, __ATOMIC_RELEASE);
}

/* Write a record of one or two fields. */
PERFLAW_HOT void perflaw_write_record(uint32_t id, uint32_t type, uint32_t count, uint64_t now, uint64_t first, uint64_t second) {
    perflaw_thread *self = perflaw_take_ring();
    if (PERFLAW_UNLIKELY(!self)) return;
    perflaw_record *record = perflaw_next_record(self, id, type, count, now);
    record->fields[0] = first;
    if (count > 1) record->fields[1] = second;
    perflaw_publish_record(self);
    perflaw_give_ring(self);
}

/* ---- subsampling: a record every so many executions, which are counted by thread and probe ---- */

PERFLAW_HOT perflaw_tally *perflaw_tally_of(perflaw_thread *self, uint32_t id) {
    if (PERFLAW_UNLIKELY(id < self->from)) self->from = id;
    if (PERFLAW_UNLIKELY(id >= self->to)) self->to = id + 1;
    return self->tallies + id;
}

/* Whether this execution makes a record, if one in `every` does. */
PERFLAW_SLOW int perflaw_is_due(uint32_t id, uint32_t every) {
    perflaw_thread *self = perflaw_self;
    if (!self || !self->home) {
        self = perflaw_take_ring_slow();
        if (!self) return 0;
    }
    perflaw_tally *tally = perflaw_tally_of(self, id);
    if (++tally->executions < every) return 0;
    tally->executions = 0;
    return 1;
}

/* How many executions make a record: what is requested from outside, else what the code says, which the entry is
 * told. */
PERFLAW_HOT uint32_t perflaw_subsampling(uint32_t id, uint32_t type, uint32_t in_code, uint64_t control) {
    if (PERFLAW_UNLIKELY(!(control & PERFLAW_TYPED))) perflaw_register(id, type, NULL, NULL, NULL);
    perflaw_entry *entries = in_code > 1 ? __atomic_load_n(&perflaw_process.entries, __ATOMIC_RELAXED) : NULL;
    if (entries && __atomic_load_n(&entries[id].every, __ATOMIC_RELAXED) != in_code)
        __atomic_store_n(&entries[id].every, in_code, __ATOMIC_RELAXED);
    uint32_t outside = (uint32_t)(control >> 32);
    return outside ? outside : in_code ? in_code : 1;
}

/* CNT and TPT: count one more execution, and write the record if it is due. */
PERFLAW_HOT void perflaw_count_execution(uint32_t id, uint32_t type, uint32_t every, uint64_t now, uint64_t cycles) {
    perflaw_thread *self = perflaw_take_ring();
    if (PERFLAW_UNLIKELY(!self)) return;
    perflaw_tally *tally = perflaw_tally_of(self, id);
    tally->executions++;
    tally->cycles += cycles;
    if (tally->executions >= every) {
        perflaw_record *record = perflaw_next_record(self, id, type, type == PERFLAW_TPT ? 2 : 1, now ? now : perflaw_now());
        record->fields[0] = tally->executions;
        if (type == PERFLAW_TPT) record->fields[1] = tally->cycles;
        perflaw_publish_record(self);
        tally->executions = tally->cycles = 0;
    }
    perflaw_give_ring(self);
}

/* Write what this thread's CNT and TPT probes counted since their last records, so that sums are exact. */
PERFLAW_SLOW void perflaw_write_tallies(void) {
    perflaw_thread *self = perflaw_self;
    if (!self || !self->home || !perflaw_process.head) return;
    for (uint32_t id = self->from; id < self->to; id++) {
        uint32_t type = (uint32_t)(perflaw_control_word(id) >> 16) & 0xff;
        perflaw_tally counted = self->tallies[id];
        if (!counted.executions || (type != PERFLAW_CNT && type != PERFLAW_TPT)) continue;
        self->tallies[id].executions = self->tallies[id].cycles = 0;
        perflaw_write_record(id, type, type == PERFLAW_TPT ? 2 : 1, perflaw_now(), counted.executions, counted.cycles);
    }
}

#ifdef __cplusplus
}
#endif
#endif
