#include "read.h"

#include <math.h>
#include <string.h>

#include "compiled/threads.h"
#include "dynamic_types.h"
#include "memory.h"

typedef uint64_t __attribute__((aligned(1), may_alias)) Word;
enum { FIRST_ADDRESS = 4096 }; /* nothing is mapped below: a null pointer, or a member of what one points to */

/* What a thread needs to read a call. */
typedef struct Reading {
    char block[BLOCK_BYTES + 8]; /* a number's last byte may be the block's, and eight bytes are read */
    char chunk[CHUNK_BYTES];
    Copies copies;
    uint64_t failed; /* a bit for each read */
} Reading;

static uint64_t word_at(const Reading *reading, uint32_t at) {
    uint64_t word;
    memcpy(&word, reading->block + at, sizeof word);
    return word;
}

static int has_failed(const Reading *reading, uint8_t read) { return read != ALWAYS && reading->failed >> read & 1; }

/* ---- reads ---- */

/* Copy bytes of the thread's own stack. Not memcpy: that of a program with AddressSanitizer ends the program where a struct
 * is read that reaches beyond a variable. */
static void copy_from_stack(char *to, const volatile char *from, uint32_t size) {
    uint32_t at = 0;
    for (uint64_t word; at + sizeof word <= size; at += (uint32_t)sizeof word) {
        word = *(const volatile Word *)(from + at);
        memcpy(to + at, &word, sizeof word);
    }
    for (; at < size; at++) to[at] = from[at];
}

static void read_at(Reading *reading, const Read *read, uint8_t number, uintptr_t stack, uintptr_t stack_high) {
    uintptr_t address = (uintptr_t)(word_at(reading, read->pointer) + (uint64_t)read->offset);
    char *to = reading->block + read->to;
    if (has_failed(reading, read->needs) || word_at(reading, read->pointer) < FIRST_ADDRESS) {
        reading->failed |= 1ull << number;
    } else if (address >= stack && address < stack_high && stack_high - address >= read->size) {
        copy_from_stack(to, (const volatile char *)address, read->size);
    } else {
        Copies *copies = &reading->copies;
        copies->to[copies->count] = (struct iovec){to, read->size};
        copies->from[copies->count] = (struct iovec){(void *)address, read->size};
        copies->of[copies->count++] = number;
    }
}

static void read_all(Reading *reading, const CallProgram *program, uintptr_t stack, uintptr_t stack_high) {
    for (uint8_t at = 0; at < program->read_count;) {
        uint8_t level = program->reads[at].level;
        reading->copies.count = 0;
        for (; at < program->read_count && program->reads[at].level == level; at++)
            read_at(reading, &program->reads[at], at, stack, stack_high);
        if (reading->copies.count) reading->failed |= memory_copy(&reading->copies);
    }
}

/* ---- numbers ---- */

static uint64_t unsigned_at(const Reading *reading, uint32_t at, uint32_t size) {
    uint64_t word = word_at(reading, at);
    return size < sizeof word ? word & ((1ull << 8 * size) - 1) : word;
}

static int64_t signed_at(const Reading *reading, uint32_t at, uint32_t size) {
    uint32_t unused = 64 - 8 * size;
    return (int64_t)(word_at(reading, at) << unused) >> unused;
}

static double floating_at(const Reading *reading, uint32_t at, uint32_t size) {
    float single;
    double value = NAN;
    if (size == sizeof single) {
        memcpy(&single, reading->block + at, sizeof single);
        return single;
    }
    if (size == sizeof value) memcpy(&value, reading->block + at, sizeof value);
#if defined(__x86_64__)
    long double extended = 0;
    if (size == sizeof extended) {
        memcpy(&extended, reading->block + at, 10);
        return (double)extended;
    }
#endif
    return value;
}

static double number_at(const Reading *reading, const Feature *feature, uint32_t at, FeatureKind kind) {
    if (kind == FLOATING) return floating_at(reading, at, feature->size);
    uint32_t unused = feature->bits ? 64u - feature->bits : 0;
    if (feature->bits && kind == SIGNED) return (double)((int64_t)(word_at(reading, at) >> feature->shift << unused) >> unused);
    if (feature->bits) return (double)(word_at(reading, at) >> feature->shift << unused >> unused);
    if (kind == SIGNED) return (double)signed_at(reading, at, feature->size);
    return (double)unsigned_at(reading, at, feature->size);
}

static double sum_of(const Reading *reading, const Feature *feature) {
    double sum = 0;
    FeatureKind kind = (FeatureKind)(feature->kind - UNSIGNED_SUM + UNSIGNED);
    for (uint32_t at = 0; at < feature->count; at++)
        sum += number_at(reading, feature, feature->at + at * feature->size, kind);
    return sum;
}

static double combination_of(const Reading *reading, const CallProgram *program, const Feature *feature) {
    int64_t sum = feature->constant;
    for (uint32_t at = 0; at < feature->terms; at++) {
        const Term *term = &program->terms[feature->first_term + at];
        if (has_failed(reading, term->high_needs) || has_failed(reading, term->low_needs)) return NAN;
        uint64_t high = unsigned_at(reading, term->high, term->size), low = 0;
        if (term->low != NO_POSITION) low = unsigned_at(reading, term->low, term->size);
        int64_t part = (int64_t)(high - low) / term->divisor;
        if (__builtin_mul_overflow(part, term->factor, &part) || __builtin_add_overflow(sum, part, &sum)) return NAN;
    }
    return (double)sum;
}

static double text_length(Reading *reading, const Feature *feature) {
    uint64_t pointer = word_at(reading, feature->at);
    if (pointer < FIRST_ADDRESS) return NAN;
    int64_t length = memory_text_length((uintptr_t)(pointer + (uint64_t)feature->constant), feature->count, reading->chunk);
    return length < 0 ? NAN : (double)length;
}

static double type_of(const Reading *reading, const Feature *feature) {
    int32_t number = dynamic_type_number(word_at(reading, feature->at));
    return number ? number : NAN;
}

/* What may be an address as well is told only where it is smaller than those of the program and its heap. */
static double small_number(const Reading *reading, const Feature *feature) {
    int64_t number = signed_at(reading, feature->at, feature->size);
    return number > -feature->constant && number < feature->constant ? (double)number : NAN;
}

/* Of libc++'s string: its first bit tells whether the second word is its length, or the rest of its first byte. */
static double string_length(const Reading *reading, const Feature *feature) {
    uint64_t first = word_at(reading, feature->at);
    return first & 1 ? (double)word_at(reading, feature->at + 8u) : (double)(first >> 1 & 127);
}

/* NAN if it cannot be read. */
static double value_of(Reading *reading, const CallProgram *program, const Feature *feature) {
    if (has_failed(reading, feature->needs)) return NAN;
    switch ((FeatureKind)feature->kind) {
    case TEXT_LENGTH: return text_length(reading, feature);
    case UNSIGNED_SUM:
    case SIGNED_SUM:
    case FLOATING_SUM: return sum_of(reading, feature);
    case COMBINATION: return combination_of(reading, program, feature);
    case DYNAMIC_TYPE: return type_of(reading, feature);
    case SMALL: return small_number(reading, feature);
    case STRING_LENGTH: return string_length(reading, feature);
    default: return number_at(reading, feature, feature->at, (FeatureKind)feature->kind);
    }
}

int features_read(Thread *thread, const CallProgram *program, const Registers *registers) {
    if (!thread->reading && !(thread->reading = arena_alloc(&thread->arena, sizeof(Reading)))) return 0;
    Reading *reading = thread->reading;
    int written = 0;
    memcpy(reading->block, registers, sizeof *registers);
    memcpy(reading->block + offsetof(Registers, base), &program->base, sizeof program->base);
    reading->failed = 0;
    uintptr_t stack = registers->general[7], stack_high = thread->stack_low ? thread->stack_high : 0;
    read_all(reading, program, stack, stack_high);
    for (int at = 0; at < program->feature_count; at++) {
        double value = value_of(reading, program, &program->features[at]);
        int64_t bits;
        memcpy(&bits, &value, sizeof value);
        if (!isfinite(value)) continue;
        thread_write(thread, bits, thread->top->frame, program->first_number + at, -1, -1, EVENT_FEATURE);
        written++;
    }
    return written;
}
