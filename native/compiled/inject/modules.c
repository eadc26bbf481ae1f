#include "modules.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiled/definitions.h"
#include "compiled/process.h"
#include "compiled/recording.h"
#include "compiled/vectors.h"
#include "mirror.h"
#include "stubs.h"

enum { SHADOW_STACK_STATUS = 0x5005, MAX_NAME = 4096 };

typedef struct Known {
    Module module;
    char name[256]; /* empty: the program itself */
    int is_loaded;
} Known;

static Known known[MAX_MODULES];
static int count;
static uint64_t changes; /* of the list of loaded files, when it was read */

static int protection_of(const ElfW(Phdr) *segment) {
    return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
           (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

/* Whether nothing of this recording was loaded where a file lies. If the file itself was, it is there again. */
static int is_first_there(const Known *entry) {
    int is_first = 1;
    for (Known *other = known; other < known + count; other++) {
        if (entry->module.end <= other->module.first || other->module.end <= entry->module.first) continue;
        is_first = 0;
        int is_same = entry->module.first == other->module.first && entry->module.end == other->module.end;
        if (is_same && !strcmp(entry->name, other->name)) other->is_loaded = 1;
    }
    return is_first;
}

/* Note a loaded file; `wanted` says whether libraries count. */
static int note(struct dl_phdr_info *about, size_t size, void *wanted) {
    (void)size;
    int is_program = count == 0, libraries = *(int *)wanted;
    changes = about->dlpi_adds + about->dlpi_subs;
    if (count == MAX_MODULES || (!is_program && !libraries)) return 0;
    Known *entry = &known[count];
    *entry = (Known){.is_loaded = 1};
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
    if (code_high) {
        Module *module = &entry->module;
        module->base = module->first = (char *)low;
        module->end = (char *)high;
        module->code_first = (char *)code_low;
        module->code_end = (char *)code_high;
        if (!is_program) snprintf(entry->name, sizeof entry->name, "%s", about->dlpi_name);
        count += is_first_there(entry);
    }
    return 0;
}

static const char *inject(const Known *entry, WriteJumps write) {
    char name[MAX_NAME], text[MAX_NAME + 16];
    snprintf(name, sizeof name, "%s", entry->name);
    if (!*name) {
        ssize_t length = readlink("/proc/self/exe", name, sizeof name - 1);
        if (length <= 0) return NULL;
        name[length] = 0;
    }
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

const char *modules_inject(const char *wanted, WriteJumps write) {
    if (has_shadow_stack()) return "nothing is injected into a process with a shadow stack";
    if (!vectors_start()) return "nothing is injected: the processor has no xsave";
    if (!mirror_start((uintptr_t)inject_leave)) return "nothing is injected: the addresses for copies of return addresses are in use";
    if (!patches_start()) return "nothing is injected: the system allows no new code";
    int libraries = !strcmp(wanted, "libraries");
    const char *trouble = NULL;
    count = 0;
    dl_iterate_phdr(note, &libraries);
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

void modules_follow(WriteJumps write) {
    int libraries = 1;
    for (int at = 0; at < count; at++) known[at].is_loaded = 0;
    dl_iterate_phdr(note, &libraries);
    /* Also what was there before: it may have been unloaded and loaded again. What has its jumps is left as it is. */
    for (int at = 0; at < count; at++)
        if (known[at].is_loaded) inject(&known[at], write);
}
