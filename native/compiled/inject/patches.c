#include "patches.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "compiled/calibration.h"
#include "compiled/recording.h"
#include "core/base/table.h"
#include "stubs.h"

#ifndef MADV_POPULATE_WRITE /* an old C library, on whatever kernel */
#define MADV_POPULATE_WRITE 23
#endif
#define MAGIC 0x3154415046525046ull /* "FPRFPAT1" */

typedef struct PatchTable {
    uint64_t magic;
    uint32_t patches, fixups, bytes, unused;
} PatchTable;
typedef struct Patch {
    uint64_t offset; /* of the function, from where the file is loaded */
    uint32_t first_byte, first_fixup;
    uint8_t original, displaced; /* bytes: overwritten in the function, and of the code that does the same elsewhere */
    uint8_t fixups, loop, unused[4]; /* loop: bytes from the function's first on that jump back to what is overwritten; or 0 */
} Patch;
/* A number of four bytes in displaced code that depends on where the file and the code are. */
typedef struct Fixup {
    uint64_t target; /* from where the file is loaded */
    uint8_t at, kind, behind, unused[5]; /* behind: bytes of the instruction that follow the number */
} Fixup;
enum FixupKind { RELATIVE, LOW_HALF, HIGH_HALF };

_Static_assert(sizeof(PatchTable) == 24 && sizeof(Patch) == 24 && sizeof(Fixup) == 16, "the rows of inject/tables.py");

enum { JUMP_BYTES = 5, STUB_CODE = 2 * sizeof(void *), ALIGNMENT = 32, BLOCK_HEAD = 32, STEP = 1 << 20, NEAR_STEPS = 1900, STUBS_BYTES = 1 << 28, PAGE = 4096,
       OWNED_AT_ONCE = 32 * PAGE };

/* The page before the stubs that were made at once; it stays writable. */
typedef struct Block {
    const void *volatile entry; /* where they jump to */
    struct Block *next;
} Block;
static Block *blocks;

static const char *function_at(const Module *module, uint64_t offset) {
    return module->base + offset + (module->number << ADDRESS_BITS);
}

/* A stub by its function, so that it serves a later recording too. */
typedef struct KnownStub {
    char *stub;
    uint64_t digest; /* of what it was made of */
} KnownStub;
static Arena arena;
static Table stubs;

/* ---- stubs ---- */

/* Memory from which all of a module's code can be reached and that can be reached from there: below it if there is room,
 * because the heap grows above a program. */
static char *map_near(const Module *module, size_t size) {
    uintptr_t low = (uintptr_t)module->first & ~(uintptr_t)(STEP - 1), span = (uintptr_t)(module->end - module->first);
    for (int above = 0; above < 2; above++)
        for (uintptr_t step = 1; step < NEAR_STEPS - span / STEP; step++) {
            uintptr_t far = above ? NEAR_STEPS - step : step;
            uintptr_t wanted = above ? low + far * STEP : low - far * STEP - size;
            if (!above && wanted > low) break;
            void *mapped = mmap((void *)wanted, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (mapped == (void *)wanted) return mapped;
            if (mapped != MAP_FAILED) munmap(mapped, size);
            else if (errno == EPERM && !above) break; /* lower than the system allows */
        }
    return NULL;
}

static char *put(char *to, const void *bytes, size_t count) { return (char *)memcpy(to, bytes, count) + count; }

static char *put_relative(char *to, uintptr_t target) {
    int32_t distance = (int32_t)(target - (uintptr_t)to - 4);
    return put(to, &distance, sizeof distance);
}

/* The stub of a function up to its displaced code. `block`: where the address of inject_entry stands. */
static char *put_stub(char *to, const void *function, const char *block) {
    const char *behind = to + STUB_HEAD;
    to = put(to, &function, sizeof function);
    const char *place = to;
    to = put(to, &behind, sizeof behind);
    to = put(to, "\x48\x8d\x64\x24\x80", 5); /* lea -128(%rsp), %rsp */
    to = put(to, "\xff\x35", 2);             /* push place(%rip) */
    to = put_relative(to, (uintptr_t)place);
    to = put(to, "\xff\x25", 2);             /* jmp *block(%rip) */
    to = put_relative(to, (uintptr_t)block);
    return put(to, "\x48\x8d\xa4\x24\x80\0\0\0", STUB_RISE); /* lea 128(%rsp), %rsp */
}

static void fix(char *code, const Fixup *fixup, const char *base) {
    uintptr_t target = (uintptr_t)base + fixup->target, at = (uintptr_t)code + fixup->at;
    uint32_t number = (uint32_t)(fixup->kind == RELATIVE     ? target - at - 4 - fixup->behind
                                 : fixup->kind == LOW_HALF ? target
                                                           : target >> 32);
    memcpy(code + fixup->at, &number, sizeof number);
}

static char *aligned(char *at) { return (char *)(((uintptr_t)at + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1)); }

/* ---- tables ---- */

static const char *trouble_of(const PatchTable *table, size_t size, const Module *module) {
    if (size < sizeof *table || table->magic != MAGIC) return "the recorder gave no patches";
    const Patch *patches = (const Patch *)(table + 1);
    const Fixup *fixups = (const Fixup *)(patches + table->patches);
    uint64_t whole = sizeof *table + table->patches * (uint64_t)sizeof(Patch) + table->fixups * (uint64_t)sizeof(Fixup);
    if (whole + table->bytes > size) return "the recorder's patches are cut off";
    for (uint32_t at = 0; at < table->patches; at++) {
        const Patch *patch = &patches[at];
        uint64_t code = (uint64_t)(module->code_first - module->base), end = (uint64_t)(module->code_end - module->base);
        int is_inside = patch->offset >= code && patch->offset + patch->original <= end &&
                        patch->original >= JUMP_BYTES && patch->original <= MAX_JUMP;
        int has_bytes = patch->first_byte + (uint64_t)patch->original + patch->displaced <= table->bytes;
        int has_fixups = patch->first_fixup + (uint64_t)patch->fixups <= table->fixups;
        if (!is_inside || !has_bytes || !has_fixups) return "the recorder's patches are of another file";
        for (uint32_t fixup = 0; fixup < patch->fixups; fixup++)
            if (fixups[patch->first_fixup + fixup].at + 4 > patch->displaced) return "the recorder's patches are damaged";
    }
    return NULL;
}

/* The patches of a module that the recorder gave. */
typedef struct Given {
    const Module *module;
    const Patch *patches;
    const Fixup *fixups;
    const char *bytes;
    uint32_t count;
} Given;

static uint64_t digest_of(uint64_t hash, const void *data, size_t size) {
    for (const unsigned char *at = data, *end = at + size; at < end; at++) hash = (hash ^ *at) * 0x100000001b3ull; /* FNV-1a */
    return hash;
}

/* Of all that a stub depends on but its own place. */
static uint64_t digest_of_patch(const Given *given, const Patch *patch) {
    const uint64_t head[] = {(uintptr_t)given->module->base, patch->original, patch->displaced, patch->fixups};
    uint64_t hash = digest_of(0xcbf29ce484222325ull, head, sizeof head);
    hash = digest_of(hash, given->bytes + patch->first_byte, (size_t)patch->original + patch->displaced);
    return digest_of(hash, given->fixups + patch->first_fixup, patch->fixups * sizeof(Fixup));
}

static KnownStub *known_stub(const char *function) {
    uint32_t number = table_get(&stubs, (uint32_t)(uintptr_t)function, (uint32_t)((uintptr_t)function >> 32), 0);
    return number ? arena_block(&arena, number) : NULL;
}

/* The stub that an earlier recording made for the same; NULL if there is none. */
static char *stub_for(const Given *given, const Patch *patch) {
    const KnownStub *known = known_stub(function_at(given->module, patch->offset));
    return known && known->digest == digest_of_patch(given, patch) ? known->stub : NULL;
}

/* A stub that cannot be noted is made again the next time. */
static void note_stub(const Given *given, const Patch *patch, char *stub) {
    const char *function = function_at(given->module, patch->offset);
    if (!arena.base && arena_create(&arena, STUBS_BYTES)) return;
    KnownStub *known = known_stub(function), *new = known ? known : arena_alloc(&arena, sizeof *new);
    if (!new) return;
    *new = (KnownStub){stub, digest_of_patch(given, patch)};
    if (!known)
        table_put(&arena, &stubs, (uint32_t)(uintptr_t)function, (uint32_t)((uintptr_t)function >> 32), 0, arena_number(&arena, new));
}

/* Write the stub of a patch; gives what is behind it. */
static char *put_patch(char *stub, const Given *given, const Patch *patch, const char *block) {
    char *code = put_stub(stub, function_at(given->module, patch->offset), block);
    memcpy(code, given->bytes + patch->first_byte + patch->original, patch->displaced);
    for (uint32_t at = 0; at < patch->fixups; at++) fix(code, &given->fixups[patch->first_fixup + at], given->module->base);
    return code + patch->displaced;
}

static int write_through_kernel(const char *content, char *at, size_t size) {
    int file = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
    int written = file >= 0 && pwrite(file, content, size, (off_t)(uintptr_t)at) == (ssize_t)size;
    if (file >= 0) close(file);
    return written;
}

/* Some services let no memory become code that could be written before (systemd's MemoryDenyWriteExecute). There, other memory
 * takes its place that is code from its beginning, which the kernel writes. */
static int make_executable(char *at, size_t size) {
    if (!mprotect(at, size, PROT_READ | PROT_EXEC)) return 1;
    char *content = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (content == MAP_FAILED) return 0;
    memcpy(content, at, size);
    void *code = mmap(at, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    int made = code == at && write_through_kernel(content, at, size);
    munmap(content, size);
    return made;
}

/* Make the stubs that are missing. NULL, or why that cannot be. */
static const char *make_stubs(const Given *given) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = page;
    for (uint32_t at = 0; at < given->count; at++)
        if (!stub_for(given, &given->patches[at])) size += STUB_HEAD + given->patches[at].displaced + ALIGNMENT;
    if (size == page) return NULL;
    size = (size + page - 1) & ~(page - 1);
    char *block = map_near(given->module, size), *to = block + page;
    if (!block) return "there is no free memory near it";
    blocks = memcpy(block, &(Block){inject_entry, blocks}, sizeof(Block));
    for (uint32_t at = 0; at < given->count; at++) {
        const Patch *patch = &given->patches[at];
        if (stub_for(given, patch)) continue;
        char *stub = aligned(to);
        to = put_patch(stub, given, patch, block);
        note_stub(given, patch, stub);
    }
    return make_executable(block + page, size - page) ? NULL : "the system allows no new code";
}

static Jump jump_to(const char *stub, const Given *given, const Patch *patch) {
    const char *function = given->module->base + patch->offset;
    Jump jump = {.address = (uintptr_t)function, .size = patch->original, .loop = patch->loop};
    int32_t distance = (int32_t)(stub + STUB_CODE - function - JUMP_BYTES);
    memcpy(jump.original, given->bytes + patch->first_byte, patch->original);
    memset(jump.jump, 0xcc, patch->original); /* int3 */
    jump.jump[0] = (char)0xe9;
    memcpy(jump.jump + 1, &distance, sizeof distance);
    return jump;
}

/* The kernel reads, because the library may be closed meanwhile. */
static int is_as_expected(const Jump *jump) {
    char now[MAX_JUMP];
    struct iovec to = {now, jump->size}, from = {(void *)(uintptr_t)jump->address, jump->size};
    return syscall(SYS_process_vm_readv, getpid(), &to, 1ul, &from, 1ul, 0ul) == (long)jump->size &&
           !memcmp(now, jump->original, jump->size);
}

const char *patches_apply(const Module *module, Answer answer, WriteJumps write) {
    const PatchTable *table = answer.data;
    const char *trouble = trouble_of(table, answer.size, module);
    if (trouble || !table->patches) return trouble;
    const Patch *patches = (const Patch *)(table + 1);
    const Fixup *fixups = (const Fixup *)(patches + table->patches);
    const Given given = {module, patches, fixups, (const char *)(fixups + table->fixups), table->patches};
    if ((trouble = make_stubs(&given))) return trouble;
    size_t room = table->patches * sizeof(Jump), count = 0;
    Jump *jumps = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (jumps == MAP_FAILED) return "there is no memory";
    for (uint32_t at = 0; at < table->patches; at++) {
        const char *stub = stub_for(&given, &patches[at]);
        if (!stub) continue; /* it could not be noted */
        jumps[count] = jump_to(stub, &given, &patches[at]);
        /* Something else may have changed the function, or it is another file of the same name. */
        count += is_as_expected(&jumps[count]);
    }
    trouble = write(module, jumps, count);
    munmap(jumps, room);
    return trouble;
}

void patches_rest(void) {
    for (Block *block = blocks; block; block = block->next) block->entry = inject_rest;
}

int patches_lead_from(const char *function) {
    const KnownStub *known = known_stub(function);
    int32_t distance;
    if (!known || *function != (char)0xe9) return 0;
    memcpy(&distance, function + 1, sizeof distance);
    return function + JUMP_BYTES + distance == known->stub + STUB_CODE;
}

void patches_wake(void) {
    for (Block *block = blocks; block; block = block->next) block->entry = inject_entry;
}

static uintptr_t page_of(const Jump *jump) { return (uintptr_t)jump->address & ~(uintptr_t)(PAGE - 1); }

/* A stretch of code that the process is to have its own copy of. */
typedef struct Pages {
    const Module *module;
    uintptr_t first, size;
} Pages;

/* Called while the loader neither loads nor unloads: at the same place no other memory can lie. */
static int own_pages(struct dl_phdr_info *about, size_t size, void *wanted) {
    const Pages *pages = wanted;
    uintptr_t low = UINTPTR_MAX;
    (void)size;
    for (int at = 0; at < about->dlpi_phnum; at++)
        if (about->dlpi_phdr[at].p_type == PT_LOAD && about->dlpi_addr + about->dlpi_phdr[at].p_vaddr < low)
            low = about->dlpi_addr + about->dlpi_phdr[at].p_vaddr;
    if ((low & ~(uintptr_t)(PAGE - 1)) != (uintptr_t)pages->module->base) return 0;
    void *first = (void *)pages->first;
    if (mprotect(first, pages->size, pages->module->code_protection | PROT_WRITE)) return 1;
    madvise(first, pages->size, MADV_POPULATE_WRITE); /* since Linux 5.14 */
    mprotect(first, pages->size, pages->module->code_protection);
    return 1;
}

/* Whoever opens a library, or throws an exception, waits for the loader's lock, so it is taken for few pages at a time. */
void patches_own_pages(const Module *module, const Jump *jumps, size_t count) {
    for (size_t at = 0, end; at < count; at = end) {
        uintptr_t first = page_of(&jumps[at]), last = first;
        for (end = at + 1; end < count && page_of(&jumps[end]) - last <= PAGE && last - first < OWNED_AT_ONCE; end++)
            last = page_of(&jumps[end]);
        dl_iterate_phdr(own_pages, &(Pages){module, first, last + PAGE - first});
    }
}

const char *write_jumps(const Module *module, const Jump *jumps, size_t count) {
    size_t code = (size_t)(module->code_end - module->code_first);
    if (mprotect(module->code_first, code, module->code_protection | PROT_WRITE)) return "the system allows no change of its code";
    for (size_t at = 0; at < count; at++) memcpy((char *)jumps[at].address, jumps[at].jump, jumps[at].size);
    mprotect(module->code_first, code, module->code_protection);
    return NULL;
}

/* ---- calibration ---- */

int patches_start(void) {
    if (recording.empty) return 1;
    recording.rest = patches_rest;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *block = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return 0;
    const void *entry = inject_entry, *body = calibration_body;
    memcpy(block, &entry, sizeof entry);
    char *stub = block + BLOCK_HEAD, *code = stub + STUB_CODE, *behind = put_stub(stub, code, block);
    *behind = (char)0xc3; /* ret */
    char *around = aligned(behind + 1);
    behind = put_stub(around, code, block);
    behind = put(behind, "\xff\x25\0\0\0", 6); /* jmp *0(%rip) */
    put(behind, &body, sizeof body);
    if (!make_executable(block, page)) return 0;
    recording.empty = (void (*)(void))code;
    recording.around_body = (long (*)(long))(around + STUB_CODE);
    return 1;
}
