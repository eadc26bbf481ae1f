/* The little that probes need of the system, so that they compile under any standard and feature macro, call nothing
 * that could have probes in it (an allocator, an interposed open), and may run in signal handlers. */
#ifndef PERFLAW_SYSTEM_H
#define PERFLAW_SYSTEM_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

/* There is one copy per program or library, however many of its files include this: hidden, so that libraries do not
 * share it by chance (they share the area instead, through the file), and weak, so that the linker keeps one. */
#define PERFLAW_SINGLE __attribute__((weak, visibility("hidden")))
#define PERFLAW_SLOW __attribute__((weak, visibility("hidden"), noinline, cold, no_instrument_function, nothrow))
#define PERFLAW_HOT static inline __attribute__((always_inline, unused, no_instrument_function))
#define PERFLAW_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define PERFLAW_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__) /* clang says so in another way than gcc */
#define __SANITIZE_THREAD__ 1
#endif
#endif

#ifdef __cplusplus
#include <unistd.h>
extern "C" {
#else
extern long syscall(long, ...); /* <unistd.h> hides it under -std=c11 */
extern int sched_getcpu(void);
#ifndef __x86_64__
extern int clock_gettime(int, struct timespec *);
#endif
#endif

/* Numbers of the kernel that C libraries hide under -std=c11. */
enum {
#ifdef O_NOFOLLOW
    PERFLAW_O_FLAGS = O_CLOEXEC | O_NOFOLLOW,
#else
    PERFLAW_O_FLAGS = __O_CLOEXEC | __O_NOFOLLOW,
#endif
    PERFLAW_ANONYMOUS = 0x20,
    PERFLAW_DONTFORK = 10,
    PERFLAW_WIPEONFORK = 18,
    PERFLAW_HERE = -100 /* AT_FDCWD */
};

/* ---- the clock ---- */

#if defined(__x86_64__) && !defined(PERFLAW_CLOCK_NS)
#define PERFLAW_CLOCK PERFLAW_TSC
/* This is a barrier for the compiler, but not for the processor, which would cost as much again. */
PERFLAW_HOT uint64_t perflaw_now(void) {
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}
#else
#define PERFLAW_CLOCK PERFLAW_NS
PERFLAW_HOT uint64_t perflaw_now(void) {
    struct timespec at;
    clock_gettime(1, &at); /* CLOCK_MONOTONIC */
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}
#endif

/* Read the clock and CLOCK_MONOTONIC at one moment: the closest pair of five. */
PERFLAW_SLOW void perflaw_pair_of_clocks(uint64_t *ticks, int64_t *ns) {
    uint64_t closest = UINT64_MAX;
    for (int round = 0; round < 5; round++) {
        struct timespec at;
        uint64_t before = perflaw_now();
        syscall(SYS_clock_gettime, 1, &at);
        uint64_t after = perflaw_now();
        if (after - before >= closest) continue;
        closest = after - before;
        *ticks = before + closest / 2;
        *ns = (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
    }
}

/* ---- memory, files, signals ---- */

#if defined(__SANITIZE_THREAD__) /* it must see mappings come and go, or it takes new memory for what was there before */
PERFLAW_HOT void *perflaw_map(size_t bytes, int protection, int flags, int file, int64_t offset) {
    void *at = mmap(NULL, bytes, protection, flags, file, offset);
    return at == MAP_FAILED ? NULL : at;
}
PERFLAW_HOT void perflaw_unmap(void *at, size_t bytes) { munmap(at, bytes); }
#else
PERFLAW_HOT void *perflaw_map(size_t bytes, int protection, int flags, int file, int64_t offset) {
    long at = syscall(SYS_mmap, 0L, bytes, (long)protection, (long)flags, (long)file, offset);
    return at == -1 ? NULL : (void *)at;
}
PERFLAW_HOT void perflaw_unmap(void *at, size_t bytes) { syscall(SYS_munmap, at, bytes); }
#endif
PERFLAW_HOT void perflaw_close(int file) { syscall(SYS_close, (long)file); }

/* Private memory that is all zeros in a fork's child, so that the child cannot take its parent's rings for its own. */
PERFLAW_HOT void *perflaw_map_private(size_t bytes) {
    void *at = perflaw_map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | PERFLAW_ANONYMOUS, -1, 0);
    if (at) syscall(SYS_madvise, at, bytes, (long)PERFLAW_WIPEONFORK);
    return at;
}

/* Allocate space on disk before anything is written to a mapping: a full disk is an error here, and would be a
 * SIGBUS there. 0 if it fails. */
PERFLAW_SLOW int perflaw_allocate(int file, int64_t from, int64_t bytes) {
    static const char zeros[4096] = {0};
    if (!syscall(SYS_fallocate, (long)file, 0L, from, bytes)) return 1;
    if (errno != EOPNOTSUPP && errno != ENOSYS) return 0;
    for (int64_t done = 0; done < bytes;) {
        int64_t left = bytes - done, part = left < 4096 ? left : 4096;
        long wrote = syscall(SYS_pwrite64, (long)file, zeros, part, from + done);
        if (wrote <= 0) return 0;
        done += wrote;
    }
    return 1;
}

PERFLAW_HOT uint64_t perflaw_block_signals(void) {
    uint64_t all = ~0ull, before = 0;
    syscall(SYS_rt_sigprocmask, 2L, &all, &before, 8L); /* SIG_SETMASK */
    return before;
}
PERFLAW_HOT void perflaw_restore_signals(uint64_t before) {
    syscall(SYS_rt_sigprocmask, 2L, &before, (void *)NULL, 8L);
}

/* ---- texts, without the C library's formatting ---- */

typedef struct perflaw_text {
    char *at, *end; /* the end is where the last zero byte may stand */
} perflaw_text;

PERFLAW_SLOW void perflaw_text_add(perflaw_text *text, const char *words) {
    while (*words && text->at < text->end) *text->at++ = *words++;
    *text->at = 0;
}
PERFLAW_SLOW void perflaw_text_add_number(perflaw_text *text, uint64_t number) {
    char digits[24], *at = digits + sizeof digits - 1;
    *at = 0;
    do {
        *--at = (char)('0' + number % 10);
    } while (number /= 10);
    perflaw_text_add(text, at);
}
PERFLAW_SLOW uint64_t perflaw_parse_number(const char *words) {
    uint64_t number = 0;
    while (words && *words >= '0' && *words <= '9') number = number * 10 + (uint64_t)(*words++ - '0');
    return number;
}
/* A variable of the environment, NULL if it is empty. A program that runs with rights that its user does not have
 * sees none. */
PERFLAW_SLOW const char *perflaw_environment(const char *name) {
    const char *value = getauxval(AT_SECURE) ? NULL : getenv(name);
    return value && *value ? value : NULL;
}

#ifdef __cplusplus
}
#endif
#endif
