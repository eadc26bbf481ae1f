#include "recording.h"

Recording recording = {.active = NO_GENERATION};
__thread Thread *current_thread __attribute__((tls_model("initial-exec")));

void recording_turn(enum State state) {
    recording.active = state == RECORDING ? recording.generation : NO_GENERATION;
    recording.state = (int)state;
    if (state == ENDED && recording.rest) recording.rest();
}

void recording_stop(const char *reason) {
    recording_turn(ENDED);
    if (!recording.stop_reason) recording.stop_reason = reason;
}
