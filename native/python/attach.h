/* perflaw attach: the recording of a process that runs already.
 *
 * record/attach/injection.py has a thread of the process create a new one, which loads this extension and calls
 * perflaw_attach. That thread takes the GIL to begin the recording and to end it. In between it waits for a lock on a
 * file that the recorder holds, so that the recording ends when the recorder says so or when it dies. */
#ifndef PERFLAW_PYTHON_ATTACH_H
#define PERFLAW_PYTHON_ATTACH_H

#include <stddef.h>
#include <stdint.h>

/* The head of the mapping that the recorder made for the new thread: its layout is also in injection.py. */
typedef struct AttachRequest {
    uint64_t size;       /* of the mapping, which perflaw_attach unmaps */
    uint64_t has_failed; /* 1 if the extension could not be loaded or records nothing; the mapping stays then */
    const char *settings; /* name, value, name, value, and so on, each with a zero byte behind it; then an empty name */
    char *message;        /* why it has failed: room for 4096 bytes */
} AttachRequest;

/* The body of the new thread. Cost: the GIL is held for about a millisecond at the begin, and at the end. */
void *perflaw_attach(AttachRequest *request);

#endif
