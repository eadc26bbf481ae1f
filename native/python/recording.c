#include "recording.h"

#include <errno.h>

Recording recording;
__thread Thread *current_thread __attribute__((tls_model("initial-exec")));

void recording_stop_unwritten(int error) {
    if (error == EMFILE || error == ENFILE) recording_stop("the program has used up its file descriptors (ulimit -n)");
    else if (error == ENOSPC) recording_stop("cannot write to the spool: the disk is full");
    else recording_stop("cannot write to the spool: is the disk full?");
}

void recording_stop(const char *reason) {
    recording.active = 0;
    if (!recording.stop_reason) recording.stop_reason = reason;
}
