/* Writing a record: the slot is filled, then the ring's head is raised; nobody is waited for. */
#ifndef PERFLAW_WRITE_H
#define PERFLAW_WRITE_H

#include "rings.h"

#ifdef __cplusplus
extern "C" {
#endif

PERFLAW_SLOW perflaw_entry *perflaw_prepare(void);
PERFLAW_SLOW perflaw_entry *perflaw_meanwhile(void);
PERFLAW_SLOW perflaw_thread *perflaw_take_slowly(void);

/* The entry's control word: 0 in its lowest byte where the probe is disabled. This is all that a disabled probe does. */
PERFLAW_HOT uint64_t perflaw_control(uint32_t id) {
    perflaw_entry *entries = __atomic_load_n(&perflaw_process.entries, __ATOMIC_ACQUIRE);
    if (PERFLAW_UNLIKELY(!entries)) entries = perflaw_prepare();
    if (PERFLAW_UNLIKELY(!entries)) entries = perflaw_meanwhile();
    if (PERFLAW_UNLIKELY(!entries)) return 0;
    return __atomic_load_n(&entries[id].control, __ATOMIC_RELAXED);
}

/* The thread with its ring, which is taken away from signal handlers until perflaw_give; NULL: the record is lost. */
PERFLAW_HOT perflaw_thread *perflaw_take(void) {
    perflaw_thread *self = perflaw_self;
    if (PERFLAW_UNLIKELY(!self || !self->ring)) self = perflaw_take_slowly();
    if (PERFLAW_UNLIKELY(!self)) return NULL;
    self->ring = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return self;
}
PERFLAW_HOT void perflaw_give(perflaw_thread *self) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->ring = self->home;
}

/* The next slot with all but its fields. What is there may be read until the head says that it is being overwritten, so
 * on processors that reorder stores the head must be seen before the slot changes. */
PERFLAW_HOT perflaw_record *perflaw_slot(perflaw_thread *self, uint32_t id, uint32_t type, uint32_t count, uint64_t now) {
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
PERFLAW_HOT void perflaw_publish(perflaw_thread *self) {
    __atomic_store_n(&self->home->head, self->home->head + 1, __ATOMIC_RELEASE);
}

/* A record of one or two fields. */
PERFLAW_HOT void perflaw_write(uint32_t id, uint32_t type, uint32_t count, uint64_t now, uint64_t first, uint64_t second) {
    perflaw_thread *self = perflaw_take();
    if (PERFLAW_UNLIKELY(!self)) return;
    perflaw_record *record = perflaw_slot(self, id, type, count, now);
    record->fields[0] = first;
    if (count > 1) record->fields[1] = second;
    perflaw_publish(self);
    perflaw_give(self);
}

/* ---- subsampling: a record every so many executions, counted by thread and probe ---- */

PERFLAW_HOT perflaw_tally *perflaw_tally_of(perflaw_thread *self, uint32_t id) {
    if (PERFLAW_UNLIKELY(id < self->from)) self->from = id;
    if (PERFLAW_UNLIKELY(id >= self->to)) self->to = id + 1;
    return self->tallies + id;
}

/* Whether this execution makes a record, of a probe that makes one in `every`. */
PERFLAW_SLOW int perflaw_in_turn(uint32_t id, uint32_t every) {
    perflaw_thread *self = perflaw_self;
    if (!self || !self->home) {
        self = perflaw_take_slowly();
        if (!self) return 0;
    }
    perflaw_tally *tally = perflaw_tally_of(self, id);
    if (++tally->executions < every) return 0;
    tally->executions = 0;
    return 1;
}

/* How many executions make a record: what was asked for from outside, else what the code says. Tells the entry of it. */
PERFLAW_HOT uint32_t perflaw_every(uint32_t id, uint32_t type, uint32_t said, uint64_t control) {
    if (PERFLAW_UNLIKELY(!(control & PERFLAW_TYPED))) perflaw_register(id, type, NULL, NULL, NULL);
    perflaw_entry *entries = said > 1 ? __atomic_load_n(&perflaw_process.entries, __ATOMIC_RELAXED) : NULL;
    if (entries && __atomic_load_n(&entries[id].every, __ATOMIC_RELAXED) != said)
        __atomic_store_n(&entries[id].every, said, __ATOMIC_RELAXED);
    uint32_t asked = (uint32_t)(control >> 32);
    return asked ? asked : said ? said : 1;
}

/* CNT and TPT: one more execution; the record when it is time. */
PERFLAW_HOT void perflaw_add(uint32_t id, uint32_t type, uint32_t every, uint64_t now, uint64_t cycles) {
    perflaw_thread *self = perflaw_take();
    if (PERFLAW_UNLIKELY(!self)) return;
    perflaw_tally *tally = perflaw_tally_of(self, id);
    tally->executions++;
    tally->cycles += cycles;
    if (tally->executions >= every) {
        perflaw_record *record = perflaw_slot(self, id, type, type == PERFLAW_TPT ? 2 : 1, now ? now : perflaw_now());
        record->fields[0] = tally->executions;
        if (type == PERFLAW_TPT) record->fields[1] = tally->cycles;
        perflaw_publish(self);
        tally->executions = tally->cycles = 0;
    }
    perflaw_give(self);
}

/* The executions that this thread's CNT and TPT probes counted since their last records: so that sums are exact. */
PERFLAW_SLOW void perflaw_tell_tallies(void) {
    perflaw_thread *self = perflaw_self;
    if (!self || !self->home || !perflaw_process.head) return;
    for (uint32_t id = self->from; id < self->to; id++) {
        uint32_t type = (uint32_t)(perflaw_control(id) >> 16) & 0xff;
        perflaw_tally counted = self->tallies[id];
        if (!counted.executions || (type != PERFLAW_CNT && type != PERFLAW_TPT)) continue;
        self->tallies[id].executions = self->tallies[id].cycles = 0;
        perflaw_write(id, type, type == PERFLAW_TPT ? 2 : 1, perflaw_now(), counted.executions, counted.cycles);
    }
}

#ifdef __cplusplus
}
#endif
#endif
