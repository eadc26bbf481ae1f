/* How injection begins: in a program that the recorder started, before its main function; in one that runs already, by a thread
 * that the recorder has it create (record/attach/injection.py), and all jumps are written while no thread runs
 * (record/attach/patching.py). */
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiled/branches.h"
#include "compiled/definitions.h"
#include "compiled/events.h"
#include "compiled/process.h"
#include "compiled/settings.h"
#include "compiled/threads.h"
#include "mirror.h"
#include "modules.h"

/* ---- started by the recorder ---- */

__attribute__((constructor)) static void begin(void) {
    const char *wanted = setting("PERFLAW_TARGET_INJECT");
    if (!*wanted || !process_prepare()) return;
    recording.entered_ns = cpu_of_process_ns();
    recording.by_frida = !strcmp(setting("PERFLAW_TARGET_INJECTOR"), "frida");
    const char *trouble = recording.by_frida ? modules_attach_frida(wanted) : modules_inject(wanted, write_jumps), *unheard = NULL;
    if (!trouble && !recording.by_frida && !strcmp(wanted, "libraries")) unheard = modules_watch();
    if (trouble && process_begin()) define_failure(trouble);
    if (unheard && process_begin()) define_text("opened", unheard);
    if (recording.by_frida && !trouble) begin_thread(); /* within an event, Frida would tell of no call that calibration makes */
}

/* ---- running already ---- */

/* The head of the mapping that the recorder made for the new thread; native/python/attach.h has the same. */
typedef struct AttachRequest {
    uint64_t size, has_failed; /* has_failed: 1 if the library was not loaded or records nothing, 2 if it records already */
    const char *settings;
    char *message; /* why it has failed: room for 4096 bytes */
} AttachRequest;

enum { TAKE_BACK_US = 1000000, SETTLE_US = 10000000, PAUSE_US = 1000, FOLLOW_US = 20000 };

static int jumps_file = -1, jumps_number;

static const char *hand_over(const Module *module, const Jump *jumps, size_t count) {
    size_t size = count * sizeof *jumps;
    jumps_note(jumps, count, sizeof *jumps, offsetof(Jump, original));
    patches_own_pages(module, jumps, count);
    return write(jumps_file, jumps, size) == (ssize_t)size ? NULL : "cannot write to the spool";
}

/* Begin a file of jumps, which the recorder sees when it is whole. 0 if that cannot be. */
static int begin_jumps(void) {
    char part[4096 + 32];
    snprintf(part, sizeof part, "%s/jumps.part", setting("PERFLAW_TARGET_SPOOL"));
    jumps_file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return jumps_file >= 0;
}

/* Hand it to the recorder. 0 if that cannot be. */
static int end_jumps(void) {
    const char *spool = setting("PERFLAW_TARGET_SPOOL");
    char part[4096 + 32], whole[4096 + 32];
    snprintf(part, sizeof part, "%s/jumps.part", spool);
    snprintf(whole, sizeof whole, "%s/jumps-%d", spool, jumps_number);
    close(jumps_file);
    jumps_number++;
    return !rename(part, whole);
}

static const char *attach(void) {
    if (!process_prepare()) return "there is no memory";
    jumps_number = 0;
    if (!begin_jumps()) return "cannot write to the spool";
    const char *trouble = modules_inject(setting("PERFLAW_TARGET_INJECT"), hand_over);
    if (!begin_thread()) return recording.stop_reason ? recording.stop_reason : "it may not have memory or files for a recording";
    patches_rest();
    if (!trouble && !end_jumps()) trouble = "cannot write to the spool";
    return trouble;
}

/* Wait until the recorder says that all jumps are written, or has released its lock or died; then record. */
static void await_jumps(int lock) {
    const char *spool = setting("PERFLAW_TARGET_SPOOL");
    char written[4096 + 32], recorded[4096 + 32];
    snprintf(written, sizeof written, "%s/written", spool);
    snprintf(recorded, sizeof recorded, "%s/recorded", spool);
    while (rename(written, recorded)) {
        if (!flock(lock, LOCK_SH | LOCK_NB)) return;
        usleep(PAUSE_US);
    }
    patches_wake();
    if (recording.state == ENDED) patches_rest(); /* another thread has ended it just now */
}

/* Whether the recorder has released its lock, or died. Meanwhile, libraries that the program opens are followed. */
static int is_over(int lock) {
    if (strcmp(setting("PERFLAW_TARGET_INJECT"), "libraries")) return !flock(lock, LOCK_SH);
    if (!flock(lock, LOCK_SH | LOCK_NB)) return 1;
    usleep(FOLLOW_US);
    if (modules_have_changed() && begin_jumps()) {
        modules_follow(hand_over);
        end_jumps();
    }
    return 0;
}

/* Wait until the recorder has taken its jumps back, which it does at once unless it was killed, and until no thread is within an
 * event. 0 if the second takes too long. */
static int settle(void) {
    int taken_back = 0, quiet = 0;
    /* The recording is over for every thread when this returns, and what is busy then has begun before. */
    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
    for (int waited = 0; waited < SETTLE_US && !(taken_back && quiet); waited += PAUSE_US) {
        usleep(PAUSE_US);
        taken_back = taken_back || jumps_end(sizeof(Jump), offsetof(Jump, original)) || waited >= TAKE_BACK_US;
        quiet = threads_are_quiet();
    }
    jumps_leave();
    return quiet;
}

__attribute__((visibility("default"))) void *perflaw_attach(AttachRequest *request) {
    static int is_used, has_recorded;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* the program's handlers run in the program's threads */
    pthread_detach(pthread_self());
    if (__atomic_exchange_n(&is_used, 1, __ATOMIC_ACQ_REL)) {
        request->has_failed = 2;
        return NULL;
    }
    settings_take(request->settings);
    recording.is_attached = 1;
    uint64_t build = strtoull(setting("PERFLAW_TARGET_BUILD"), NULL, 16);
    mirror_offer(COPY_RECORDS, (uintptr_t)perflaw_attach, build);
    if (has_recorded) recording_turn(NOT_BEGUN);
    int file = open(setting("PERFLAW_TARGET_LOCK"), O_RDONLY | O_CLOEXEC);
    const char *trouble = attach();
    if (trouble) {
        snprintf(request->message, 4096, "%s", trouble);
        __atomic_store_n(&request->has_failed, 1, __ATOMIC_RELEASE);
    }
    if (!trouble) define_text("agent", has_recorded ? "used again: an earlier recording has loaded it" : "loaded for this recording");
    has_recorded = 1;
    if (!trouble && file >= 0) await_jumps(file);
    while (!trouble && file >= 0 && !is_over(file)) continue;
    if (file >= 0) close(file);
    mirror_offer(COPY_ENDS, (uintptr_t)perflaw_attach, build);
    process_finish();
    int is_quiet = settle();
    threads_drop_rings();
    /* What counts branches is within the program's blocks, outside of events. Such a copy is never offered again. */
    if (!is_quiet || branches_wanted) {
        mirror_offer(COPY_RECORDS, (uintptr_t)perflaw_attach, build);
        return NULL;
    }
    process_forget();
    settings_take("");
    if (!trouble) munmap(request, request->size);
    __atomic_store_n(&is_used, 0, __ATOMIC_RELEASE);
    mirror_offer(COPY_IS_FREE, (uintptr_t)perflaw_attach, build);
    return NULL;
}
