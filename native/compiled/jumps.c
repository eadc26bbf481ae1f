/* Functions that stand in front of longjmp and of C++'s personality routine and note where the stack lands: what was
 * called from deeper than that has died. Without them the next event would tell it by its place on the stack, but a
 * function with a large frame reaches as deep as what died. */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unwind.h>

#include "invocations.h"

#define EXPORTED __attribute__((visibility("default")))

/* The stack stands at this address from now on. */
static void landed(uintptr_t stack) {
    Thread *thread = current_thread;
    if (!thread || thread->generation != recording.active || stack - thread->stack_low > thread->stack_high - thread->stack_low)
        return;
    thread->busy = 1;
    invocations_bury(thread, stack);
    thread->busy = 0; /* also if a handler's jump has left a hook for good */
}

/* ---- longjmp ---- */

typedef void Jump(void *, int);

/* The stack pointer that setjmp saved. glibc mangles it (an xor with a word of the thread, then a rotation), musl
 * does not. 0 if it is neither. */
static uintptr_t saved_stack(const void *buffer) {
#if defined(__x86_64__)
    const Thread *thread = current_thread;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), plain = ((const uintptr_t *)buffer)[6], guard;
    __asm__("mov %%fs:0x30, %0" : "=r"(guard));
    uintptr_t demangled = (plain >> 17 | plain << 47) ^ guard;
    if (thread && demangled > here && demangled <= thread->stack_high) return demangled;
    return thread && plain > here && plain <= thread->stack_high ? plain : 0;
#else
    (void)buffer;
    return 0; /* the next event tells where the stack stands */
#endif
}

/* Only the linker gets the C library's name: a header may declare that name with another type. */
#define JUMP(name)                                                             \
    static Jump *real_##name;                                                  \
    EXPORTED void our_##name(void *buffer, int value) __asm__(#name);          \
    void our_##name(void *buffer, int value) {                                 \
        uintptr_t stack = saved_stack(buffer);                                   \
        if (stack) landed(stack);                                              \
        if (!real_##name) real_##name = (Jump *)dlsym(RTLD_NEXT, #name);       \
        real_##name(buffer, value);                                            \
    }
JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)
JUMP(__longjmp_chk)

/* The real functions are found before a signal handler may want them, because dlsym is not async-signal-safe. */
__attribute__((constructor)) static void find_jumps(void) {
    real_longjmp = (Jump *)dlsym(RTLD_NEXT, "longjmp");
    real__longjmp = (Jump *)dlsym(RTLD_NEXT, "_longjmp");
    real_siglongjmp = (Jump *)dlsym(RTLD_NEXT, "siglongjmp");
    real___longjmp_chk = (Jump *)dlsym(RTLD_NEXT, "__longjmp_chk");
}

/* ---- exceptions ---- */

typedef _Unwind_Reason_Code Personality(int, _Unwind_Action, _Unwind_Exception_Class, struct _Unwind_Exception *,
                                        struct _Unwind_Context *);
typedef _Unwind_Word StackOf(struct _Unwind_Context *);
static Personality *real_personality;
static StackOf *stack_of; /* where the stack of a frame stood when the frame made its call */

/* Look in every loaded file: a plug-in may have brought the C++ library with it, where RTLD_NEXT does not look. */
static int find_in_file(struct dl_phdr_info *about, size_t size, void *found) {
    (void)size;
    void *library = dlopen(about->dlpi_name, RTLD_LAZY | RTLD_NOLOAD), *symbol = NULL;
    if (*about->dlpi_name && library) symbol = dlsym(library, "__gxx_personality_v0");
    if (library) dlclose(library);
    if (symbol) *(void **)found = symbol;
    return symbol != NULL;
}

static Personality *find_personality(void) {
    if (!real_personality) {
        stack_of = (StackOf *)dlsym(RTLD_DEFAULT, "_Unwind_GetCFA");
        void *found = dlsym(RTLD_NEXT, "__gxx_personality_v0");
        if (!found) dl_iterate_phdr(find_in_file, &found);
        if (!found) abort(); /* the caller is linked with it, so it must be there */
        real_personality = (Personality *)found;
    }
    return real_personality;
}

/* The unwinder calls this for every frame that an exception passes. _URC_INSTALL_CONTEXT says that the frame goes
 * on, at its handler or its clean-up. */
EXPORTED _Unwind_Reason_Code __gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                                  struct _Unwind_Exception *thrown, struct _Unwind_Context *frame) {
    _Unwind_Reason_Code reason = find_personality()(version, actions, kind, thrown, frame);
    if (reason == _URC_INSTALL_CONTEXT && stack_of) landed((uintptr_t)stack_of(frame));
    return reason;
}
