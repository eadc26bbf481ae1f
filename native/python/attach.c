#include "attach.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "functions.h"
#include "module.h"

/* ---- what the recorder handed over ---- */

static const char *value_of(const char *settings, const char *name) {
    for (const char *at = settings; *at;) {
        const char *value = at + strlen(at) + 1;
        if (!strcmp(at, name)) return value;
        at = value + strlen(value) + 1;
    }
    return "";
}

static PyObject *settings_dict(const char *settings) {
    PyObject *dict = PyDict_New();
    for (const char *at = settings; dict && *at;) {
        const char *value = at + strlen(at) + 1;
        PyObject *text = PyUnicode_DecodeFSDefault(value);
        if (!text || PyDict_SetItemString(dict, at, text)) Py_CLEAR(dict);
        Py_XDECREF(text);
        at = value + strlen(value) + 1;
    }
    return dict;
}

/* Tell the recorder why nothing is recorded. */
static void fail(AttachRequest *request, const char *why) {
    snprintf(request->message, 4096, "%s", why);
    __atomic_store_n(&request->has_failed, 1, __ATOMIC_RELEASE);
}

/* ---- the recording ---- */

static int interpreter_runs(void) {
#if PY_VERSION_HEX < 0x030D0000
    return Py_IsInitialized() && !_Py_IsFinalizing();
#else
    return Py_IsInitialized() && !Py_IsFinalizing();
#endif
}

/* Begin the recording. Gives its number in this process; 0 if there is none, which the recorder is told. */
static uint32_t begin(AttachRequest *request) {
    const char *settings = request->settings, *obstacle = "its interpreter is not running";
    uint32_t begun = 0;
    if (interpreter_runs()) {
        PyGILState_STATE held = PyGILState_Ensure();
        int collects = PyGC_Disable(); /* what it finds is the program's, and belongs into the program's threads */
        PyObject *given = settings_dict(settings);
        obstacle = "there is no memory";
        if (given) obstacle = Py_Version == PY_VERSION_HEX ? module_start(given) : "another Python than it was started with";
        if (!obstacle) begun = recording.process;
        Py_XDECREF(given);
        PyErr_Clear();
        if (collects) PyGC_Enable();
        PyGILState_Release(held);
    }
    if (obstacle) fail(request, obstacle);
    return begun;
}

/* End the recording of this number, unless the program has ended it. */
static void end(uint32_t begun) {
    if (!interpreter_runs()) return;
    PyGILState_STATE held = PyGILState_Ensure();
    if (recording.process == begun) {
        module_finish();
        functions_settle();
    }
    PyGILState_Release(held);
}

/* Wait until the recorder releases its lock, or dies. */
static void wait_for_recorder(int file) {
    while (flock(file, LOCK_SH) && errno == EINTR) continue;
}

/* Close a file, unless the program has closed it and uses its number for another one. */
static void close_own(int file, const struct stat *before) {
    struct stat now;
    if (!fstat(file, &now) && now.st_dev == before->st_dev && now.st_ino == before->st_ino) close(file);
}

__attribute__((visibility("default"))) void *perflaw_attach(AttachRequest *request) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* the program's handlers run in the program's threads */
    pthread_detach(pthread_self());
    const char *lock = value_of(request->settings, "PERFLAW_TARGET_LOCK");
    int file = open(lock, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0 || fstat(file, &about)) {
        fail(request, "its user cannot read the folder of the recording");
        return NULL;
    }
    uint32_t begun = begin(request);
    if (begun) {
        munmap(request, request->size);
        wait_for_recorder(file);
    }
    close_own(file, &about);
    if (begun) end(begun);
    return NULL;
}
