#include "modules.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiled/definitions.h"
#include "compiled/metrics.h"
#include "compiled/process.h"
#include "compiled/recording.h"
#include "compiled/threads.h"
#include "compiled/vectors.h"
#include "frida.h"
#include "mirror.h"
#include "stubs.h"

enum { SHADOW_STACK_STATUS = 0x5005, MAX_NAME = 4096 };

typedef struct Known {
    Module module;
    char name[256]; /* empty: the program itself */
    int is_loaded, is_new; /* is_new: it was not there when the list was read before */
} Known;

static Known known[MAX_MODULES];
static int count;
static uint64_t changes;      /* of the list of loaded files, when it was read */
static uint64_t last_number; /* given to a file at a place where another one had been */

static int protection_of(const ElfW(Phdr) *segment) {
    return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
           (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

/* Whether a file is none that lay at this place before. Addresses mean functions of the first file that lay there, so another one
 * gets a number by which its functions are told apart. */
static int is_first_time(Known *entry) {
    int is_first_there = 1;
    for (Known *other = known; other < known + count; other++) {
        if (entry->module.end <= other->module.first || other->module.end <= entry->module.first) continue;
        is_first_there = 0;
        if (entry->module.first != other->module.first || entry->module.end != other->module.end) continue;
        if (strcmp(entry->name, other->name)) continue;
        other->is_loaded = 1;
        return 0;
    }
    if (!is_first_there) entry->module.number = ++last_number;
    return last_number < MAX_FILES_AT_A_PLACE;
}

/* Whether the loader will still write into a file's code. */
static int has_text_relocations(const struct dl_phdr_info *about) {
    for (int at = 0; at < about->dlpi_phnum; at++) {
        if (about->dlpi_phdr[at].p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *row = (const ElfW(Dyn) *)(about->dlpi_addr + about->dlpi_phdr[at].p_vaddr);
        for (; row->d_tag != DT_NULL; row++)
            if (row->d_tag == DT_TEXTREL || (row->d_tag == DT_FLAGS && row->d_un.d_val & DF_TEXTREL)) return 1;
    }
    return 0;
}

/* Note a loaded file; `wanted` says whether libraries count. */
static int note(struct dl_phdr_info *about, size_t size, void *wanted) {
    (void)size;
    int is_program = count == 0, libraries = *(int *)wanted;
    changes = about->dlpi_adds + about->dlpi_subs;
    if (count == MAX_MODULES || (!is_program && !libraries)) return 0;
    Known *entry = &known[count];
    *entry = (Known){.is_loaded = 1, .is_new = 1};
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), low = UINTPTR_MAX, high = 0, code_low = UINTPTR_MAX, code_high = 0;
    for (int at = 0; at < about->dlpi_phnum; at++) {
        const ElfW(Phdr) *segment = &about->dlpi_phdr[at];
        if (segment->p_type != PT_LOAD) continue;
        uintptr_t first = (about->dlpi_addr + segment->p_vaddr) & ~(page - 1);
        uintptr_t end = (about->dlpi_addr + segment->p_vaddr + segment->p_memsz + page - 1) & ~(page - 1);
        if (first < low) low = first;
        if (end > high) high = end;
        if (!(segment->p_flags & PF_X) || code_high) continue;
        code_low = first;
        code_high = end;
        entry->module.code_protection = protection_of(segment);
    }
    if (code_high && (is_program || !has_text_relocations(about))) {
        Module *module = &entry->module;
        module->base = module->first = (char *)low;
        module->end = (char *)high;
        module->code_first = (char *)code_low;
        module->code_end = (char *)code_high;
        if (!is_program) snprintf(entry->name, sizeof entry->name, "%s", about->dlpi_name);
        count += is_first_time(entry);
    }
    return 0;
}

/* The path of a loaded file. 0 if it is not known. */
static int path_of(const Known *entry, char name[static MAX_NAME]) {
    ssize_t length = snprintf(name, MAX_NAME, "%s", entry->name);
    if (!length && (length = readlink("/proc/self/exe", name, MAX_NAME - 1)) > 0) name[length] = 0;
    return length > 0;
}

static const char *inject(const Known *entry, WriteJumps write) {
    char name[MAX_NAME], text[MAX_NAME + 16];
    if (!path_of(entry, name)) return NULL;
    snprintf(text, sizeof text, "patches %s", name);
    Answer answer = question_ask(text);
    const char *trouble = patches_apply(&entry->module, answer, write);
    question_drop(answer);
    return trouble;
}

/* Whether the processor checks return addresses, so that they cannot be replaced. */
static int has_shadow_stack(void) {
    unsigned long enabled = 0;
    return !syscall(SYS_arch_prctl, SHADOW_STACK_STATUS, &enabled) && enabled & 1;
}

/* List the loaded files that may be injected. NULL, or why nothing can be. */
static const char *start(const char *wanted) {
    if (has_shadow_stack()) return "nothing is injected into a process with a shadow stack";
    if (!vectors_start()) return "nothing is injected: the processor has no xsave";
    if (!mirror_start((uintptr_t)inject_leave)) return "nothing is injected: the addresses for copies of return addresses are in use";
    int libraries = !strcmp(wanted, "libraries");
    count = 0;
    last_number = 0;
    dl_iterate_phdr(note, &libraries);
    return NULL;
}

const char *modules_inject(const char *wanted, WriteJumps write) {
    const char *trouble = start(wanted);
    if (trouble) return trouble;
    if (!patches_start()) return "nothing is injected: the system allows no new code";
    for (int at = 0; at < count; at++) {
        const char *found = inject(&known[at], write);
        if (found) trouble = found;
    }
    return trouble;
}

static int see_change(struct dl_phdr_info *about, size_t size, void *has_changed) {
    (void)size;
    *(int *)has_changed = about->dlpi_adds + about->dlpi_subs != changes;
    return 1;
}

int modules_have_changed(void) {
    int has_changed = 0;
    dl_iterate_phdr(see_change, &has_changed);
    return has_changed;
}

/* Read the list again. `is_certain`: no change of it was missed, so what was there before and is there now has its jumps. Else it
 * may have been unloaded and loaded again, and what has its jumps is left as it is. */
static void follow(WriteJumps write, int is_certain) {
    int libraries = 1;
    for (int at = 0; at < count; at++) {
        known[at].is_new = !is_certain || !known[at].is_loaded;
        known[at].is_loaded = 0;
    }
    dl_iterate_phdr(note, &libraries);
    for (int at = 0; at < count; at++)
        if (known[at].is_loaded && known[at].is_new) inject(&known[at], write);
}

void modules_follow(WriteJumps write) { follow(write, 0); }

/* ---- what the loader tells ---- */

#if defined(__x86_64__)

enum { CALL_BYTES = 5, WRITABLE_CODE = PROT_READ | PROT_WRITE | PROT_EXEC };

/* How an empty function begins: it returns, and what fills the bytes up to the next function follows. */
static int is_empty_function(const unsigned char *code) {
    static const unsigned char fillings[][CALL_BYTES - 1] = {
        {0x66, 0x66, 0x2e, 0x0f}, {0x66, 0x2e, 0x0f, 0x1f}, {0x66, 0x0f, 0x1f, 0x84}, {0x66, 0x0f, 0x1f, 0x44}, {0x0f, 0x1f, 0x84, 0},
        {0x0f, 0x1f, 0x80, 0}, {0x0f, 0x1f, 0x44, 0}, {0x0f, 0x1f, 0x40, 0}, {0x90, 0x90, 0x90, 0x90}, {0xcc, 0xcc, 0xcc, 0xcc},
    };
    if (!memcmp(code, "\xf3\x0f\x1e\xfa\xc3", CALL_BYTES)) return 1; /* endbr64; ret */
    for (size_t at = 0; at < sizeof fillings / sizeof *fillings; at++)
        if (*code == 0xc3 && !memcmp(code + 1, fillings[at], sizeof *fillings)) return 1;
    return 0;
}

/* The loader has changed its list. No code of a file that it has just loaded has run, and of one that it has unloaded nothing is
 * there any more; the calling thread holds the loader's lock. Time that passes here is not the program's. */
__attribute__((used, externally_visible, visibility("hidden"))) void loader_has_changed(void) {
    KEEP_VECTORS;
    if (_r_debug.r_state != RT_CONSISTENT || recording.state == ENDED || !modules_have_changed()) return;
    int saved = errno;
    Interruptions before;
    signals_hold(&before);
    Thread *thread = current_thread;
    int is_counted = thread && !thread->busy && thread->generation == recording.active;
    if (is_counted) thread->busy = 1;
    Pause pause = is_counted ? metrics_pause(thread) : (Pause){0};
    follow(write_jumps, 1);
    if (is_counted) metrics_go_on(thread, pause);
    if (is_counted) thread->busy = 0;
    signals_release(&before);
    errno = saved;
}

const char *modules_watch(void) {
    unsigned char *told = (unsigned char *)_r_debug.r_brk, jump[CALL_BYTES] = {0xe9};
    uintptr_t page = (uintptr_t)told & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
    int64_t distance = inject_loader - (const char *)told - CALL_BYTES;
    int32_t near = (int32_t)distance;
    if (!told || (uintptr_t)told % 8 || !is_empty_function(told)) return "the loader does not tell of them in a known way";
    if (near != distance) return "the loader lies too far away";
    if (mprotect((void *)page, CALL_BYTES, WRITABLE_CODE)) return "the system allows no change of the loader's code";
    memcpy(jump + 1, &near, sizeof near);
    memcpy(told, jump, sizeof jump);
    mprotect((void *)page, CALL_BYTES, PROT_READ | PROT_EXEC);
    return NULL;
}

#else
const char *modules_watch(void) { return "this is for x86-64"; }
#endif

/* ---- by Frida ---- */

#if defined(__x86_64__)
/* Long enough that nothing else is where Frida writes its jump. */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl perflaw_frida_empty\n"
        ".type perflaw_frida_empty, @function\n"
        "perflaw_frida_empty:\n"
        "    .cfi_startproc\n"
        "    .skip 16, 0x90\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size perflaw_frida_empty, .-perflaw_frida_empty\n");
#endif

const char *modules_attach_frida(const char *wanted) {
    enum { ROOM = 1 << 18 };
    const char *trouble = start(wanted);
    if (trouble) return trouble;
    recording.empty = perflaw_frida_empty;
    char *text = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), name[MAX_NAME];
    if (text == MAP_FAILED) return "there is no memory";
    /* The time makes another question of it, where a program has become another one by exec. */
    int size = snprintf(text, ROOM, "frida %d %llu %p %p %p", getpid(), (unsigned long long)cpu_of_process_ns(),
                        (void *)perflaw_frida_enter, (void *)perflaw_frida_read, (void *)perflaw_frida_empty);
    for (int at = 0; at < count && size < ROOM - MAX_NAME - 32; at++)
        if (path_of(&known[at], name)) size += snprintf(text + size, MAX_NAME + 32, "\n%p %s", (void *)known[at].module.base, name);
    Answer answer = question_ask(text);
    munmap(text, ROOM);
    /* Never given back, because it is text that says why not. */
    return answer.size ? answer.data : NULL;
}
