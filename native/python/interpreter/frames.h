/* What differs between the frames of CPython 3.11, 3.12 and 3.13. Include first: it needs the interpreter's own
 * headers. */
#ifndef PERFLAW_PYTHON_FRAMES_H
#define PERFLAW_PYTHON_FRAMES_H

#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#undef _PyGC_FINALIZED
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>

typedef struct _PyInterpreterFrame Frame;

#if PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_opcode.h>
#include <opcode.h>
#define _PyThreadState_GetCurrent PyThreadState_Get
#else
PyAPI_FUNC(PyThreadState *) _PyThreadState_GetCurrent(void); /* without the check for NULL: events have a thread */
#endif

#if PY_VERSION_HEX < 0x030D0000
static inline Frame *frame_current(void) { return _PyThreadState_GetCurrent()->cframe->current_frame; }
static inline PyCodeObject *frame_code(const Frame *frame) { return frame->f_code; }
#else
static inline Frame *frame_current(void) { return _PyThreadState_GetCurrent()->current_frame; }
static inline PyCodeObject *frame_code(const Frame *frame) { return (PyCodeObject *)frame->f_executable; }
#endif

#if PY_VERSION_HEX < 0x030C0000
static inline PyObject *frame_function(const Frame *frame) { return (PyObject *)frame->f_func; }
/* A frame that is being made is not yet anybody's caller. */
static inline int frame_is_real(const Frame *frame) {
    return frame->owner == FRAME_OWNED_BY_GENERATOR ||
           frame->prev_instr >= _PyCode_CODE(frame->f_code) + frame->f_code->_co_firsttraceable;
}
#else
static inline PyObject *frame_function(const Frame *frame) { return frame->f_funcobj; }
static inline int frame_is_real(const Frame *frame) {
    if (frame->owner == FRAME_OWNED_BY_CSTACK) return 0;
    return frame->owner == FRAME_OWNED_BY_GENERATOR || !_PyFrame_IsIncomplete((Frame *)frame);
}
#endif

/* The frame itself, or the nearest of its callers that is a person's: what f_back would show. NULL at the end. */
static inline Frame *frame_visible(Frame *frame) {
    while (frame && !frame_is_real(frame)) frame = frame->previous;
    return frame;
}

/* The frame that called this one. Before 3.12 a frame that is about to be evaluated is not linked to its caller yet. */
static inline Frame *frame_caller(const Frame *frame) {
#if PY_VERSION_HEX < 0x030C0000
    Frame *current = frame_visible(frame_current());
    if (current != frame) return current;
#endif
    return frame_visible(frame->previous);
}

/* Bytecode offset in bytes, as f_lasti. */
static inline int32_t frame_offset(const Frame *frame) {
    int place = _PyInterpreterFrame_LASTI((Frame *)frame);
#if PY_VERSION_HEX < 0x030C0000
    /* A call that was specialised is made from PRECALL already: one call site has one offset, that of the CALL
     * behind it. */
    if (_PyOpcode_Deopt[_Py_OPCODE(*frame->prev_instr)] == PRECALL) place += 1 + INLINE_CACHE_ENTRIES_PRECALL;
#endif
    return (int32_t)(place * (int)sizeof(_Py_CODEUNIT));
}

static inline int frame_is_generator(const PyCodeObject *code) {
    return (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0;
}

#endif
