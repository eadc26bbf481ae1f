#include "unwinding.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "mirror.h"

#if defined(__x86_64__)

/* Numbers of registers in the tables. */
enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, RETURN = 16, REGISTERS };
enum { MAX_DEPTH = 1024, MAX_REMEMBERED = 8, TABLE_START = 12 };
/* How addresses are written, in all files that GNU's and LLVM's linkers make. */
enum { POINTER_FROM_HERE = 0x1b, COUNT_OF_4 = 0x03, TABLE_FROM_HEAD = 0x3b };

/* ---- reading the tables ---- */

typedef struct Reader {
    const uint8_t *at, *end;
} Reader;

static uint64_t number(Reader *reader, unsigned bytes) {
    uint64_t value = 0;
    if ((size_t)(reader->end - reader->at) < bytes) return reader->at = reader->end, 0;
    memcpy(&value, reader->at, bytes);
    reader->at += bytes;
    return value;
}

/* Numbers of variable length (LEB128). */
static uint64_t plain(Reader *reader) {
    uint64_t value = 0;
    for (unsigned shift = 0; reader->at < reader->end && shift < 64; shift += 7) {
        uint8_t byte = *reader->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128)) break;
    }
    return value;
}
static int64_t with_sign(Reader *reader) {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte = 0;
    while (reader->at < reader->end && shift < 64) {
        byte = *reader->at++;
        value |= (uint64_t)(byte & 127) << shift;
        shift += 7;
        if (!(byte & 128)) break;
    }
    if (shift < 64 && byte & 64) value |= ~0ull << shift;
    return (int64_t)value;
}

/* A part of a reader, behind which it goes on. */
static Reader part(Reader *reader, uint64_t size) {
    if (size > (uint64_t)(reader->end - reader->at)) size = (uint64_t)(reader->end - reader->at);
    Reader inner = {reader->at, reader->at + size};
    reader->at += size;
    return inner;
}

/* The table of one function. */
typedef struct Entry {
    uintptr_t first, size;
    Reader common, own; /* instructions: of several functions, and of this one */
    uint64_t code_step;
    int64_t data_step;
    int is_of_signal;
} Entry;

static int read_common(const uint8_t *at, Entry *entry) {
    Reader head = {at, at + 4};
    head.end += number(&head, 4);
    number(&head, 4); /* its id */
    uint64_t version = number(&head, 1);
    const char *letters = (const char *)head.at;
    size_t length = strnlen(letters, (size_t)(head.end - head.at));
    head.at += length;
    number(&head, 1);
    entry->code_step = plain(&head);
    entry->data_step = with_sign(&head);
    uint64_t returns = version == 1 ? number(&head, 1) : plain(&head);
    if (*letters != 'z' || returns != RETURN) return 0;
    Reader more = part(&head, plain(&head));
    uint8_t encoding = 0;
    for (const char *letter = letters + 1; *letter; letter++) {
        if (*letter == 'R') encoding = (uint8_t)number(&more, 1);
        else if (*letter == 'L') number(&more, 1);
        else if (*letter == 'S') entry->is_of_signal = 1;
        else if (*letter == 'P') {
            unsigned form = number(&more, 1) & 15;
            number(&more, form == 2 || form == 10 ? 2 : form == 3 || form == 11 ? 4 : 8);
        } else return 0;
    }
    entry->common = head;
    return encoding == POINTER_FROM_HERE;
}

static int read_entry(const uint8_t *at, Entry *entry) {
    Reader head = {at, at + 4};
    uint64_t size = number(&head, 4);
    if (!size || size == UINT32_MAX) return 0;
    head.end += size;
    const uint8_t *place = head.at;
    *entry = (Entry){0};
    if (!read_common(place - number(&head, 4), entry)) return 0;
    place = head.at;
    entry->first = (uintptr_t)place + (uintptr_t)(intptr_t)(int32_t)number(&head, 4);
    entry->size = number(&head, 4);
    part(&head, plain(&head));
    entry->own = head;
    return 1;
}

typedef struct Wanted {
    uintptr_t place;
    const uint8_t *head; /* of the table of all functions of the file that has the place */
} Wanted;

static int find_head(struct dl_phdr_info *about, size_t size, void *given) {
    (void)size;
    Wanted *wanted = given;
    const uint8_t *head = NULL;
    int is_inside = 0;
    for (int at = 0; at < about->dlpi_phnum; at++) {
        const ElfW(Phdr) *segment = &about->dlpi_phdr[at];
        uintptr_t first = about->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && wanted->place - first < segment->p_memsz) is_inside = 1;
        if (segment->p_type == PT_GNU_EH_FRAME) head = (const uint8_t *)first;
    }
    if (is_inside) wanted->head = head;
    return is_inside;
}

/* The table of the function that has this place. 0 if there is none. */
static int find_entry(uintptr_t place, Entry *entry) {
    Wanted wanted = {place, NULL};
    dl_iterate_phdr(find_head, &wanted);
    const uint8_t *head = wanted.head;
    if (!head || head[0] != 1 || head[1] != POINTER_FROM_HERE || head[2] != COUNT_OF_4 || head[3] != TABLE_FROM_HEAD) return 0;
    uint32_t count, low = 0;
    memcpy(&count, head + 8, sizeof count);
    const int32_t(*rows)[2] = (const int32_t(*)[2])(head + TABLE_START);
    for (uint32_t high = count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if ((uintptr_t)head + (uintptr_t)(intptr_t)rows[middle][0] <= place) low = middle + 1;
        else high = middle;
    }
    return low && read_entry(head + rows[low - 1][1], entry) && place - entry->first < entry->size;
}

/* ---- the rules of one place ---- */

enum How { SAME, AT_OFFSET, AT_REGISTER, UNKNOWN };
/* Where the caller's value of a register stands. AT_REGISTER: so far from a register of this frame; `is_there`: at that address
 * stands an address. */
typedef struct Rule {
    uint8_t how, reg, is_there;
    int64_t offset;
} Rule;
typedef struct Rules {
    Rule frame; /* of the address above the return address: always by a register */
    Rule of[REGISTERS];
} Rules;

/* A register and an offset, and perhaps what stands there: all that compilers write and C libraries for signals. */
static Rule expression(Reader code) {
    uint64_t operation = number(&code, 1), reg = operation - 0x70; /* DW_OP_breg0 */
    Rule rule = {AT_REGISTER, (uint8_t)reg, 0, with_sign(&code)};
    if (code.at < code.end && *code.at == 0x06) rule.is_there = 1, code.at++; /* DW_OP_deref */
    return reg < RETURN && code.at == code.end ? rule : (Rule){.how = UNKNOWN};
}

static void set(Rules *rules, uint64_t reg, Rule rule) {
    if (reg < REGISTERS) rules->of[reg] = rule;
}

static Rule at_offset(int64_t offset) { return (Rule){AT_OFFSET, 0, 0, offset}; }

/* Follow instructions up to a place, so far from the function's first byte. 0 if one is not known. */
static int follow(const Entry *entry, Reader code, uint64_t place, Rules *rules, const Rules *initial) {
    Rules kept[MAX_REMEMBERED];
    int remembered = 0;
    for (uint64_t now = 0; code.at < code.end && now <= place;) {
        uint8_t byte = *code.at++, low = byte & 63;
        uint64_t reg;
        switch (byte & 192) {
            case 64: now += low * entry->code_step; continue;
            case 128: set(rules, low, at_offset((int64_t)plain(&code) * entry->data_step)); continue;
            case 192: if (low < REGISTERS) rules->of[low] = initial->of[low]; continue;
        }
        switch (low) {
            case 0x00: break;
            case 0x02: now += number(&code, 1) * entry->code_step; break;
            case 0x03: now += number(&code, 2) * entry->code_step; break;
            case 0x04: now += number(&code, 4) * entry->code_step; break;
            case 0x05: reg = plain(&code), set(rules, reg, at_offset((int64_t)plain(&code) * entry->data_step)); break;
            case 0x06: if ((reg = plain(&code)) < REGISTERS) rules->of[reg] = initial->of[reg]; break;
            case 0x07: set(rules, plain(&code), (Rule){.how = UNKNOWN}); break;
            case 0x08: set(rules, plain(&code), (Rule){.how = SAME}); break;
            case 0x0a:
                if (remembered == MAX_REMEMBERED) return 0;
                kept[remembered++] = *rules;
                break;
            case 0x0b:
                if (!remembered) return 0;
                *rules = kept[--remembered];
                break;
            case 0x0c: reg = plain(&code), rules->frame = (Rule){AT_REGISTER, (uint8_t)reg, 0, (int64_t)plain(&code)}; break;
            case 0x0d: rules->frame.reg = (uint8_t)plain(&code); break;
            case 0x0e: rules->frame.offset = (int64_t)plain(&code); break;
            case 0x0f: rules->frame = expression(part(&code, plain(&code))); break;
            case 0x10: reg = plain(&code), set(rules, reg, expression(part(&code, plain(&code)))); break;
            case 0x11: reg = plain(&code), set(rules, reg, at_offset(with_sign(&code) * entry->data_step)); break;
            case 0x14: reg = plain(&code), plain(&code), set(rules, reg, (Rule){.how = UNKNOWN}); break;
            case 0x16: reg = plain(&code), part(&code, plain(&code)), set(rules, reg, (Rule){.how = UNKNOWN}); break;
            case 0x2e: plain(&code); break;
            default: return 0;
        }
    }
    return 1;
}

/* ---- the way up ---- */

typedef struct Walk {
    uintptr_t registers[REGISTERS], low, high;
} Walk;

static int read_word(const Walk *walk, uintptr_t at, uintptr_t *word) {
    if (at % sizeof *word || at < walk->low || at > walk->high - sizeof *word) return 0;
    *word = *(const uintptr_t *)at;
    return 1;
}

/* What a rule by a register says. 0 if that cannot be read. */
static int address_of(const Walk *walk, const Rule *rule, uintptr_t *address) {
    if (rule->how != AT_REGISTER || rule->reg >= RETURN) return 0;
    *address = walk->registers[rule->reg] + (uintptr_t)rule->offset;
    return !rule->is_there || read_word(walk, *address, address);
}

/* Go to the caller; `slot` is where its address stands. 0 if the way ends. */
static int go_up(Walk *walk, const Entry *entry, uint64_t place, uintptr_t *slot) {
    Rules rules = {0}, initial;
    memset(&initial, 0, sizeof initial);
    if (!follow(entry, entry->common, UINT64_MAX, &rules, &initial)) return 0;
    initial = rules;
    if (!follow(entry, entry->own, place, &rules, &initial)) return 0;
    uintptr_t frame;
    if (!address_of(walk, &rules.frame, &frame) || frame <= walk->registers[RSP] || frame > walk->high) return 0;
    const Walk old = *walk;
    walk->registers[RSP] = frame;
    for (int reg = 0; reg < REGISTERS; reg++) {
        const Rule *rule = &rules.of[reg];
        uintptr_t at = frame + (uintptr_t)rule->offset;
        if (rule->how == SAME && reg != RETURN) continue;
        int is_known = rule->how == AT_OFFSET || address_of(&old, rule, &at);
        if (reg == RETURN) *slot = at;
        if ((!is_known || !read_word(&old, at, &walk->registers[reg])) && (reg == RETURN || reg == RSP)) return 0;
    }
    return 1;
}

__attribute__((noinline)) int frames_find(uintptr_t high, int (*is_wanted)(const char *), OpenFrame *found, int most) {
    Walk walk = {.high = high};
    __asm__ volatile("leaq 0(%%rip), %%rax\n"
                     "movq %%rax, 128(%0)\n"
                     "movq %%rbx, 24(%0)\n"
                     "movq %%rbp, 48(%0)\n"
                     "movq %%rsp, 56(%0)\n"
                     "movq %%r12, 96(%0)\n"
                     "movq %%r13, 104(%0)\n"
                     "movq %%r14, 112(%0)\n"
                     "movq %%r15, 120(%0)\n" ::"r"(walk.registers)
                     : "rax", "memory");
    walk.low = walk.registers[RSP];
    int count = 0, is_call = 0; /* whether the place is behind a call, and not the next instruction itself */
    for (int depth = 0; depth < MAX_DEPTH && count < most; depth++) {
        Entry entry;
        uintptr_t place = walk.registers[RETURN] - (uintptr_t)is_call, slot;
        if (!place || !find_entry(place, &entry) || !go_up(&walk, &entry, place - entry.first, &slot)) break;
        if (mirror_leaves(walk.registers[RETURN])) walk.registers[RETURN] = *mirror_of(slot);
        const char *function = (const char *)entry.first;
        if (!entry.is_of_signal && is_wanted(function))
            found[count++] = (OpenFrame){function, slot, (const void *)walk.registers[RETURN]};
        is_call = !entry.is_of_signal;
    }
    return count;
}

#else

int frames_find(uintptr_t high, int (*is_wanted)(const char *), OpenFrame *found, int most) {
    (void)high, (void)is_wanted, (void)found, (void)most;
    return 0;
}

#endif
