/* How injection begins: in a program that the recorder started, before its main function; in one that runs already, by a thread
 * that the recorder has it create (record/attach/injection.py), and all jumps are written while no thread runs
 * (record/attach/patching.py). */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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
    const char *trouble = modules_inject(wanted, write_jumps);
    if (trouble && process_begin()) define_text("inject", trouble);
}

/* ---- running already ---- */

/* The head of the mapping that the recorder made for the new thread; native/python/attach.h has the same. */
typedef struct AttachRequest {
    uint64_t size, has_failed;
    const char *settings;
} AttachRequest;

static int jumps_file = -1;

static const char *hand_over(const Module *module, const Jump *jumps, size_t count) {
    (void)module;
    size_t size = count * sizeof *jumps;
    jumps_note(jumps, count, sizeof *jumps, offsetof(Jump, original));
    return write(jumps_file, jumps, size) == (ssize_t)size ? NULL : "cannot write to the spool";
}

/* Hand the jumps to the recorder: a file that has its name when it is whole. */
static const char *attach(const char *spool) {
    char part[4096 + 32], whole[4096 + 32];
    snprintf(part, sizeof part, "%s/jumps.part", spool);
    snprintf(whole, sizeof whole, "%s/jumps", spool);
    if (!process_prepare()) return "the recording cannot begin";
    jumps_file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (jumps_file < 0) return "cannot write to the spool";
    const char *trouble = modules_inject(setting("PERFLAW_TARGET_INJECT"), hand_over);
    close(jumps_file);
    if (!begin_thread()) return "the recording cannot begin";
    if (!trouble && rename(part, whole)) trouble = "cannot write to the spool";
    return trouble;
}

__attribute__((visibility("default"))) void *perflaw_attach(AttachRequest *request) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* the program's handlers run in the program's threads */
    pthread_detach(pthread_self());
    settings_take(request->settings); /* the mapping stays, because a forked child reads them too */
    int file = open(setting("PERFLAW_TARGET_LOCK"), O_RDONLY | O_CLOEXEC);
    const char *trouble = attach(setting("PERFLAW_TARGET_SPOOL"));
    if (trouble && process_begin()) define_failure(trouble);
    while (!trouble && file >= 0 && flock(file, LOCK_SH)) continue; /* until the recorder releases it, or dies */
    if (file >= 0) close(file);
    process_finish();
    jumps_end(sizeof(Jump), offsetof(Jump, original));
    threads_drop_rings();
    return NULL;
}
