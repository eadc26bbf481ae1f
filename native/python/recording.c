#include "recording.h"

Recording recording;
__thread Thread *current_thread __attribute__((tls_model("initial-exec")));

void recording_stop(const char *reason) {
    recording.active = 0;
    if (!recording.stop_reason) recording.stop_reason = reason;
}
