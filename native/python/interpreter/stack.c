#include "stack.h"

#if PY_VERSION_HEX < 0x030C0000

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD_BYTES = 1 << 16 };
static const size_t STACK_BYTES = (size_t)256 << 20; /* of address space; only what is touched takes memory */

void stack_find_bounds(Thread *thread) {
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (!pthread_getattr_np(pthread_self(), &attributes)) {
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
    }
    thread->stack_low = low;
    thread->stack_high = (char *)low + size;
}

#if defined(__x86_64__)
/* Evaluate on the stack below `top`. rbx and rbp outlive the call, and unwinders find the way back by the frame
 * pointer. */
__attribute__((noinline, optimize("no-omit-frame-pointer"))) static PyObject *
call_on(char *top, PyThreadState *state, Frame *frame, int throws) {
    PyObject *result;
    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "movq %[top], %%rsp\n\t"
                     "callq *%[function]\n\t"
                     "movq %%rbx, %%rsp"
                     : "=a"(result), "+D"(state), "+S"(frame), "+d"(throws)
                     : [top] "r"(top), [function] "r"(_PyEval_EvalFrameDefault)
                     : "rbx", "rcx", "r8", "r9", "r10", "r11", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
                       "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return result;
}
static const int can_switch = 1;
#else
static PyObject *call_on(char *top, PyThreadState *state, Frame *frame, int throws) {
    (void)top;
    return _PyEval_EvalFrameDefault(state, frame, throws);
}
static const int can_switch = 0;
#endif

/* Greenlets copy slices of one stack, so programs with greenlets have to stay on it. */
static int is_allowed(void) {
    PyObject *modules = PyImport_GetModuleDict();
    return can_switch && !(modules && PyDict_GetItemString(modules, "greenlet"));
}

static char *map_stack(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
    char *low = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (low == MAP_FAILED) return NULL;
    mprotect(low, GUARD_BYTES, PROT_NONE);
    return low;
}

PyObject *stack_evaluate_near_end(PyThreadState *state, Frame *frame, int throws, Thread *thread) {
    const char *here = __builtin_frame_address(0);
    int is_near = here >= thread->stack_low && here < thread->stack_high && here - STACK_MARGIN < thread->stack_low;
    char *low = is_near && is_allowed() ? map_stack() : NULL;
    if (!low) return _PyEval_EvalFrameDefault(state, frame, throws);
    char *before_low = thread->stack_low, *before_high = thread->stack_high;
    thread->stack_low = low + GUARD_BYTES;
    thread->stack_high = low + STACK_BYTES;
    PyObject *result = call_on(thread->stack_high, state, frame, throws);
    thread->stack_low = before_low;
    thread->stack_high = before_high;
    munmap(low, STACK_BYTES);
    return result;
}

#endif
