/* longjmp and exceptions tell where they land: what was called from deeper than that is dead at once. Without this, the
 * next event would have to tell it by its place on the stack, and a function with a large frame reaches as deep as what died. */
#include "hooks.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unwind.h>

#define EXPORTED __attribute__((visibility("default")))

/* The stack stands at this address from now on. */
static void landed(uintptr_t stack) {
    Thread *thread = current_thread;
    if (!thread || hooks.state != RECORDING || stack - thread->low > thread->high - thread->low) return;
    thread->busy = 1;
    hooks_bury(thread, stack);
    thread->busy = 0; /* also where a handler's jump leaves a hook for good */
}

/* ---- longjmp ---- */

typedef void Jump(void *, int);

/* What setjmp noted: glibc hides the stack pointer (rotated, xor a word of the thread's), musl does not. 0 if neither. */
static uintptr_t target_of(const void *buffer) {
#if defined(__x86_64__)
    const Thread *thread = current_thread;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), noted = ((const uintptr_t *)buffer)[6], guard;
    __asm__("mov %%fs:0x30, %0" : "=r"(guard));
    uintptr_t shown = (noted >> 17 | noted << 47) ^ guard;
    if (thread && shown > here && shown <= thread->high) return shown;
    return thread && noted > here && noted <= thread->high ? noted : 0;
#else
    (void)buffer;
    return 0; /* the next event tells it */
#endif
}

/* The library's own name is given to the linker alone: no header says what it is. */
#define JUMP(name)                                                             \
    static Jump *real_##name;                                                  \
    EXPORTED void our_##name(void *buffer, int value) __asm__(#name);          \
    void our_##name(void *buffer, int value) {                                 \
        uintptr_t stack = target_of(buffer);                                   \
        if (stack) landed(stack);                                              \
        if (!real_##name) real_##name = (Jump *)dlsym(RTLD_NEXT, #name);       \
        real_##name(buffer, value);                                            \
    }
JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)
JUMP(__longjmp_chk)

/* Before any handler may want them: dlsym is not for handlers. */
__attribute__((constructor)) static void find_jumps(void) {
    real_longjmp = (Jump *)dlsym(RTLD_NEXT, "longjmp");
    real__longjmp = (Jump *)dlsym(RTLD_NEXT, "_longjmp");
    real_siglongjmp = (Jump *)dlsym(RTLD_NEXT, "siglongjmp");
    real___longjmp_chk = (Jump *)dlsym(RTLD_NEXT, "__longjmp_chk");
}

/* ---- exceptions ---- */

typedef _Unwind_Reason_Code Personality(int, _Unwind_Action, _Unwind_Exception_Class, struct _Unwind_Exception *,
                                        struct _Unwind_Context *);
typedef _Unwind_Word Stack(struct _Unwind_Context *);
static Personality *personality;
static Stack *stack_of; /* of the frame that is looked at: where it stood when it called */

/* A plug-in may have brought the C++ library with it, where RTLD_NEXT does not look. */
static int seek(struct dl_phdr_info *about, size_t size, void *found) {
    (void)size;
    void *library = dlopen(about->dlpi_name, RTLD_LAZY | RTLD_NOLOAD), *symbol = NULL;
    if (*about->dlpi_name && library) symbol = dlsym(library, "__gxx_personality_v0");
    if (library) dlclose(library);
    if (symbol) *(void **)found = symbol;
    return symbol != NULL;
}

static Personality *the_real(void) {
    if (!personality) {
        stack_of = (Stack *)dlsym(RTLD_DEFAULT, "_Unwind_GetCFA");
        void *found = dlsym(RTLD_NEXT, "__gxx_personality_v0");
        if (!found) dl_iterate_phdr(seek, &found);
        if (!found) abort(); /* who called it is linked with it */
        personality = (Personality *)found;
    }
    return personality;
}

/* Asked of every frame that an exception passes; where it says so, the frame goes on at its handler or its clean-up. */
EXPORTED _Unwind_Reason_Code __gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                                  struct _Unwind_Exception *thrown, struct _Unwind_Context *frame) {
    _Unwind_Reason_Code done = the_real()(version, actions, kind, thrown, frame);
    if (done == _URC_INSTALL_CONTEXT && stack_of) landed((uintptr_t)stack_of(frame));
    return done;
}
