/* The area that a process with probes shares with whoever collects their records.
 *
 *     | Head 4096 B | Entry[1024] x 128 B | (Ring 128 B + Record[ring_records] x 64 B) x rings |
 *
 * Numbers are little-endian. src/perflaw/record/probes/layout.py has the same, and a test compares the two. One thread
 * writes a ring; the bytes "enabled" and "subsample" of entries are written from outside, and everything else by this
 * process alone.
 */
#ifndef PERFLAW_LAYOUT_H
#define PERFLAW_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define PERFLAW_MAGIC 0x5077616c66726570ull /* "perflawP" */
#define PERFLAW_MAX_FIELDS 6

enum { PERFLAW_VERSION = 1, PERFLAW_MAX_PROBES = 1024, PERFLAW_MAX_RINGS = 256, PERFLAW_RING_RECORDS = 4096 };
enum { PERFLAW_TSC = 1, PERFLAW_NS = 2 };
enum { PERFLAW_RING_FREE, PERFLAW_RING_IN_USE, PERFLAW_RING_ENDED };
enum {
    PERFLAW_CNT = 1,
    PERFLAW_LAT,
    PERFLAW_TPT,
    PERFLAW_LLC,
    PERFLAW_FLT,
    PERFLAW_CTXSW,
    PERFLAW_PERFCNTR,
    PERFLAW_SNAPSHOT
};

typedef struct perflaw_head {
    uint64_t magic;
    uint32_t version, pid, rings, ring_records, probes, clock;
    uint64_t tsc0; /* the clock at some moment */
    int64_t ns0;   /* CLOCK_MONOTONIC at that moment */
    uint64_t lost_no_ring;
    uint32_t conflicts, enable_all;
    char language[16];
    uint64_t image;    /* random bytes that the kernel gives a program: another program in the same process (exec) has others */
    uint32_t copies;   /* how many of the process's programs and libraries use this area now */
    uint32_t serial;   /* how many ever did */
    uint32_t used;     /* how many rings were ever claimed */
    char refusal[156]; /* why a hardware counter cannot be read; empty if none was refused */
    char free[1792];
    uint64_t claims[PERFLAW_MAX_RINGS]; /* by ring: serial << 32 | thread; 0 if it is free */
} perflaw_head;

typedef struct perflaw_entry {
    uint64_t control; /* from the low end: enabled, registered, type, conflict (a byte each), subsample (32 bits) */
    char name[48], unit[16], fields[48];
    uint32_t every;   /* the subsampling that the code asks for; 0 if it is every execution, as far as seen */
    uint32_t refused; /* executions without a record, because a counter cannot be read */
} perflaw_entry;

typedef struct perflaw_record {
    uint64_t timestamp;
    uint64_t what; /* from the low end: probe (16 bits), type (4), number of fields (4), CPU (16), thread (24) */
    uint64_t fields[PERFLAW_MAX_FIELDS];
} perflaw_record;

typedef struct perflaw_ring {
    uint32_t state, thread;
    uint64_t lost_nested;
    char apart[48];
    uint64_t head; /* records ever written; record i is in slot i modulo ring_records */
    char beside[56];
    perflaw_record records[1]; /* as many as ring_records */
} perflaw_ring;

enum {
    PERFLAW_ENABLED = 0xff,
    PERFLAW_TYPED = 0xff0000,
    PERFLAW_TABLE_BYTES = PERFLAW_MAX_PROBES * 128,
    PERFLAW_FRONT_BYTES = 4096 + PERFLAW_TABLE_BYTES, /* head and entries */
    PERFLAW_RING_HEAD_BYTES = 128
};

#ifdef __cplusplus
#define PERFLAW_ASSERT(condition, words) static_assert(condition, words)
#else
#define PERFLAW_ASSERT(condition, words) __extension__ _Static_assert(condition, words)
#endif
PERFLAW_ASSERT(sizeof(perflaw_head) == 4096 && offsetof(perflaw_head, claims) == 2048, "layout of the head");
PERFLAW_ASSERT(sizeof(perflaw_entry) == 128, "layout of an entry");
PERFLAW_ASSERT(sizeof(perflaw_record) == 64, "a record is a cache line");
PERFLAW_ASSERT(offsetof(perflaw_ring, head) == 64 && offsetof(perflaw_ring, records) == 128, "layout of a ring");

#endif
