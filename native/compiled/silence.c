#include "silence.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "functions.h"
#include "metrics.h"
#include "threads.h"
#include "vectors.h"

#if defined(__x86_64__)

enum { CALL_BYTES = 5, LONG_CALL_BYTES = 6, STUB_BYTES = 16 };
enum { MAX_TRIES = 32 }; /* for each function and thread: beyond them, its places are not such that can be changed */

static const unsigned char NOTHING[CALL_BYTES] = {0x0f, 0x1f, 0x44, 0, 0}, LONG_NOTHING[LONG_CALL_BYTES] = {0x66, 0x0f, 0x1f, 0x44, 0, 0};
static const unsigned char RETURN[LONG_CALL_BYTES] = {0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};

static int is_futile; /* the system allows no change */

/* ---- the program's code ---- */

/* The kernel reads, because bytes that look like an address may be none. */
static int read_memory(const void *from, void *to, size_t size) {
    struct iovec local = {to, size}, remote = {(void *)(uintptr_t)from, size};
    return syscall(SYS_process_vm_readv, getpid(), &local, 1ul, &remote, 1ul, 0ul) == (long)size;
}

/* The kernel writes too: so nothing changes in how the pages are protected. */
static void write_code(const char *at, const unsigned char *code, size_t size) {
    long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_WRONLY | O_CLOEXEC, 0);
    if (file < 0 || syscall(SYS_pwrite64, file, code, size, at) != (long)size) is_futile = 1;
    if (file >= 0) syscall(SYS_close, file);
    unsigned leaf = 0, other;
    __asm__ volatile("cpuid" : "+a"(leaf), "=b"(other), "=c"(other), "=d"(other)::"memory"); /* forget what was decoded */
}

static int has_one_thread(void) {
    struct stat about;
    return !stat("/proc/self/task", &about) && about.st_nlink == 3;
}

/* What the four bytes of a jump or call name, which end here. */
static const char *named_before(const char *end) {
    int32_t distance;
    memcpy(&distance, end - sizeof distance, sizeof distance);
    return end + distance;
}

static int holds(const void *place, const void *hook) {
    const void *held;
    return read_memory(place, &held, sizeof held) && held == hook;
}

/* Whether what stands at this address is the hook, or a stub of the linker that jumps to it. */
static int is_hook(const char *target, const void *hook) {
    if (target == hook) return 1;
    char stub[STUB_BYTES], *at = stub;
    if (!read_memory(target, stub, sizeof stub)) return 0;
    if (!memcmp(at, "\xf3\x0f\x1e\xfa", 4)) at += 4; /* endbr64 */
    if (*at == (char)0xf2) at++;                     /* bnd */
    return !memcmp(at, "\xff\x25", 2) && holds(named_before(target + (at - stub) + LONG_CALL_BYTES), hook);
}

/* Bytes of the instruction that ends here if it calls or jumps to the hook: with this opcode directly, or with this one by a place
 * in memory. 0 if it does neither. */
static size_t leads_to_hook(const char *end, const void *hook, unsigned char direct, unsigned char by_place) {
    const unsigned char *code = (const unsigned char *)end;
    if (code[-CALL_BYTES] == direct && is_hook(named_before(end), hook)) return CALL_BYTES;
    int is_by_place = code[-LONG_CALL_BYTES] == 0xff && code[-CALL_BYTES] == by_place;
    return is_by_place && holds(named_before(end), hook) ? LONG_CALL_BYTES : 0;
}

/* ---- one place ---- */

/* The function has jumped to the exit hook: it has one such jump, or it is not known which one. */
static int silence_jump(KnownFunction *known, const void *hook) {
    const char *first = known->function, *end = first + known->size, *found = NULL;
    size_t size = 0;
    for (const char *at = first + LONG_CALL_BYTES; at <= end; at++) {
        size_t bytes = leads_to_hook(at, hook, 0xe9, 0x25);
        if (bytes && found) return known->countdown = -MAX_TRIES, 0;
        if (bytes) found = at, size = bytes;
    }
    if (found) write_code(found - size, RETURN, size);
    else known->countdown -= MAX_TRIES / 4;
    return found != NULL;
}

/* Whether the place was changed. */
static int silence_place(KnownFunction *known, const char *returns, const void *hook, int is_exit) {
    uintptr_t offset = (uintptr_t)returns - (uintptr_t)known->function;
    int is_own = offset >= LONG_CALL_BYTES && offset <= known->size;
    size_t called = leads_to_hook(returns, hook, 0xe8, 0x15);
    if (!called) return is_exit && !is_own && silence_jump(known, hook);
    if (!is_own && !functions_are_apart(returns - called)) return 0;
    write_code(returns - called, called == CALL_BYTES ? NOTHING : LONG_NOTHING, called);
    return 1;
}

/* Signals are held meanwhile: a handler may not see code that is half written. */
static __attribute__((noinline)) void try(Thread *thread, KnownFunction *known, const char *returns, const void *hook, int is_exit) {
    KEEP_VECTORS;
    Interruptions before;
    int error = errno;
    Pause pause = metrics_pause(thread);
    signals_hold(&before);
    if (!has_one_thread() || !silence_place(known, returns, hook, is_exit)) known->countdown--;
    signals_release(&before);
    metrics_go_on(thread, pause); /* on a busy machine, much of this is time off the CPU */
    errno = error;
}

void silence(Thread *thread, const void *function, const char *returns, const void *hook, int is_exit) {
    if (is_futile || recording.is_attached || !recording.has_selection) return;
    KnownFunction *known = function_find(thread, function);
    if (known && known->size < INT32_MAX && known->countdown > -MAX_TRIES) try(thread, known, returns, hook, is_exit);
}

#else

void silence(Thread *thread, const void *function, const char *returns, const void *hook, int is_exit) {
    (void)thread, (void)function, (void)returns, (void)hook, (void)is_exit;
}

#endif
