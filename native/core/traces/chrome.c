#include "chrome.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/record.h"
#include "decimal.h"

/* What an event has of what is looked at. */
typedef struct Fields {
    Value phase, name, stamp, duration, pid, tid, arguments;
} Fields;

static int fail(Chrome *chrome, int error) {
    if (!chrome->error) chrome->error = error;
    return 0;
}
static int wrong(Chrome *chrome) { return fail(chrome, EBADMSG); }

static int is_text(const Value *value, const char *text) {
    return value->kind == JSON_TEXT && value->text.size == strlen(text) && !memcmp(value->text.at, text, value->text.size);
}

/* Number of a text without its escapes. 0 if there is no memory. */
static uint32_t number_of_text(Names *names, const Value *value) {
    if (!value->is_escaped) return names_number(names, value->text);
    char *plain = malloc(value->text.size + 1);
    if (!plain) return 0;
    uint32_t number = names_number(names, (Slice){plain, json_unescape(value->text, plain)});
    free(plain);
    return number;
}

/* ---- processes and threads ---- */

/* Number of an identity: whole numbers, texts, and all else as it is written. An event without one has 0. */
static uint32_t identity(Chrome *chrome, const Value *value) {
    Slice text = value->kind == JSON_NOTHING ? (Slice){"0", 1} : value->text;
    char kind = value->kind == JSON_TEXT ? 't' : value->kind == JSON_NUMBER || value->kind == JSON_NOTHING ? 'n' : 'o';
    char *key = malloc(text.size + 1);
    if (!key) return 0;
    *key = kind;
    size_t size = text.size;
    if (value->is_escaped && kind == 't') size = json_unescape(text, key + 1);
    else memcpy(key + 1, text.at, size);
    uint32_t number = names_number(&chrome->identities, (Slice){key, size + 1});
    free(key);
    return number;
}

static ChromeProcess *process_of(Chrome *chrome, const Value *pid) {
    uint32_t key = identity(chrome, pid), count = chrome->process_numbers.count;
    uint32_t number = key ? names_number(&chrome->process_numbers, (Slice){(const char *)&key, sizeof key}) : 0;
    if (!number) return fail(chrome, ENOMEM), NULL;
    if (number > CHROME_MAX_THREADS) return wrong(chrome), NULL;
    if (number > count) {
        if (!(count & (count - 1))) {
            ChromeProcess *larger = realloc(chrome->processes, (count ? count * 2 : 1) * sizeof *larger);
            if (!larger) return fail(chrome, ENOMEM), NULL;
            chrome->processes = larger;
        }
        chrome->processes[count] = (ChromeProcess){.first = NEVER, .key = key};
    }
    return &chrome->processes[number - 1];
}

static int is_same(Slice one, const Value *other) {
    return other->kind == JSON_NUMBER && one.size == other->text.size && !memcmp(one.at, other->text.at, one.size);
}

static void remember(Chrome *chrome, const Fields *fields, uint32_t thread) {
    size_t pid = fields->pid.text.size, tid = fields->tid.text.size;
    int is_short = fields->pid.kind == JSON_NUMBER && fields->tid.kind == JSON_NUMBER && pid + tid <= sizeof chrome->last_bytes;
    if (!is_short) return;
    memcpy(chrome->last_bytes, fields->pid.text.at, pid);
    memcpy(chrome->last_bytes + pid, fields->tid.text.at, tid);
    chrome->last_pid = (Slice){chrome->last_bytes, pid};
    chrome->last_tid = (Slice){chrome->last_bytes + pid, tid};
    chrome->last_thread = thread;
}

/* The thread of an event; NULL after an error. */
static ChromeThread *thread_of(Chrome *chrome, const Fields *fields) {
    if (chrome->last_pid.size && is_same(chrome->last_pid, &fields->pid) && is_same(chrome->last_tid, &fields->tid))
        return &chrome->threads[chrome->last_thread];
    ChromeProcess *process = process_of(chrome, &fields->pid);
    if (!process) return NULL;
    uint32_t key[2] = {(uint32_t)(process - chrome->processes), identity(chrome, &fields->tid)};
    uint32_t count = chrome->thread_numbers.count;
    uint32_t number = key[1] ? names_number(&chrome->thread_numbers, (Slice){(const char *)key, sizeof key}) : 0;
    if (!number) return fail(chrome, ENOMEM), NULL;
    if (number > CHROME_MAX_THREADS) return wrong(chrome), NULL;
    if (number > count) {
        if (!(count & (count - 1))) {
            ChromeThread *larger = realloc(chrome->threads, (count ? count * 2 : 1) * sizeof *larger);
            if (!larger) return fail(chrome, ENOMEM), NULL;
            chrome->threads = larger;
        }
        chrome->threads[count] = (ChromeThread){.first = NEVER, .last_start = INT64_MIN, .last_end = INT64_MIN, .process = key[0]};
    }
    remember(chrome, fields, number - 1);
    return &chrome->threads[number - 1];
}

/* ---- events ---- */

enum { MOST_NUMBERS = 1024 }; /* of an event */
typedef struct Numbers {
    Number items[MOST_NUMBERS];
    uint32_t count, group; /* group: place of the first one of the object that is read */
    uint64_t left_out;
} Numbers;

static int add_number(Chrome *chrome, Numbers *numbers, const Value *name, double value) {
    Names *names = &chrome->number_names;
    uint32_t number = 0;
    if (names->count < CHROME_MAX_NUMBERS) {
        if (!(number = number_of_text(names, name))) return fail(chrome, ENOMEM);
    } else if (!name->is_escaped) {
        number = names_find(names, name->text);
    }
    for (uint32_t at = numbers->group; number && at < numbers->count; at++) {
        if (numbers->items[at].name == number) return numbers->items[at].value = value, 1; /* the last one of a name counts */
    }
    if (number && numbers->count < MOST_NUMBERS) numbers->items[numbers->count++] = (Number){number, value};
    else numbers->left_out++;
    return 1;
}

/* The numbers of an object that was passed before, so it is whole. Texts may be numbers only where they are arguments of a
 * function, which viztracer writes as texts. */
static int read_numbers(Chrome *chrome, Numbers *numbers, Slice object, int texts_too) {
    Scan scan = {object.at + 1, object.at + object.size, JSON_FINE, 0};
    Value name, value, of_function = {0};
    numbers->group = numbers->count;
    for (int is_first = 1; json_member(&scan, is_first, &name); is_first = 0) {
        double number;
        value.is_escaped = 0;
        if (!json_value(&scan, &value)) break;
        if (!texts_too && is_text(&name, "func_args")) of_function = value;
        if (value.kind != JSON_NUMBER && (value.kind != JSON_TEXT || !texts_too || value.is_escaped)) continue;
        if (!decimal_double(value.text, &number)) {
            if (value.kind == JSON_NUMBER) return wrong(chrome); /* it has more digits than are read */
            continue;
        }
        if (!isfinite(number)) continue; /* beyond what a feature can be */
        if (!add_number(chrome, numbers, &name, number)) return 0;
    }
    return of_function.kind != JSON_OBJECT || read_numbers(chrome, numbers, of_function.text, 1);
}

static int read_stamp(Chrome *chrome, const Value *value, Stamp *stamp) {
    int is_number = (value->kind == JSON_NUMBER || value->kind == JSON_TEXT) && decimal_stamp(value->text, stamp);
    if (!is_number) return wrong(chrome);
    if (stamp->has_fraction) chrome->flags |= CHROME_FRACTIONS;
    return 1;
}

/* When a complete event ends: never, if its duration is missing, null or -1. */
static int read_end(Chrome *chrome, const Value *duration, const Stamp *begin, int64_t *end) {
    static const __int128 MINUS_ONE = -(__int128)10000000000ll * 10000000000ll;
    *end = NEVER;
    if (duration->kind == JSON_NOTHING || duration->kind == JSON_NULL) return 1;
    Stamp stamp;
    if (!read_stamp(chrome, duration, &stamp)) return 0;
    if (!stamp.is_exact && stamp.units == MINUS_ONE && duration->kind == JSON_NUMBER) return 1;
    if (!stamp.is_exact && stamp.units < 0) return wrong(chrome);
    return decimal_sum_ns(begin, &stamp, end) || wrong(chrome);
}

/* A begin, an end or a complete event. */
static int take_call(Chrome *chrome, const Fields *fields, char phase) {
    ChromeThread *thread = thread_of(chrome, fields);
    Mark mark = {.end = NEVER, .place = chrome->events, .kind = phase == 'X' ? MARK_CALL : phase == 'B' ? MARK_BEGIN : MARK_END};
    Stamp stamp;
    if (!thread || !read_stamp(chrome, &fields->stamp, &stamp)) return 0;
    if (!decimal_ns(&stamp, &mark.start)) return wrong(chrome);
    mark.thread = (uint32_t)(thread - chrome->threads);
    if (phase == 'E') {
        int has_name = fields->name.kind != JSON_NOTHING && fields->name.text.size;
        thread->has_marks = 1;
        if (has_name && !(mark.name = number_of_text(&chrome->names, &fields->name))) return fail(chrome, ENOMEM);
        int error = marks_add(&chrome->marks, mark, NULL, 0);
        return !error || fail(chrome, error);
    }
    if (fields->name.kind != JSON_TEXT || !fields->name.text.size) return wrong(chrome);
    if (!(mark.name = number_of_text(&chrome->names, &fields->name))) return fail(chrome, ENOMEM);
    uint32_t component[2] = {thread->process, mark.name};
    if (!names_number(&chrome->components, (Slice){(const char *)component, sizeof component})) return fail(chrome, ENOMEM);
    if (chrome->components.count >= MAX_CODE) return wrong(chrome);
    Numbers numbers;
    numbers.count = 0;
    numbers.left_out = 0;
    if (fields->arguments.kind == JSON_OBJECT && !read_numbers(chrome, &numbers, fields->arguments.text, 0)) return 0;
    if (phase == 'X') {
        if (!read_end(chrome, &fields->duration, &stamp, &mark.end)) return 0;
        thread->has_calls = 1;
        thread->starts_unordered |= mark.start < thread->last_start;
        thread->ends_unordered |= mark.end < thread->last_end;
        thread->last_start = mark.start;
        thread->last_end = mark.end;
    } else {
        thread->has_marks = 1;
    }
    for (uint32_t at = 0; at < numbers.count; at++) {
        uint32_t use[2] = {thread->process, (uint32_t)numbers.items[at].name};
        if (!names_number(&chrome->number_uses, (Slice){(const char *)use, sizeof use})) return fail(chrome, ENOMEM);
    }
    ChromeProcess *process = &chrome->processes[thread->process];
    process->number_left_out += numbers.left_out;
    if (mark.start < thread->first) thread->first = mark.start;
    if (mark.start < process->first) process->first = mark.start;
    int error = marks_add(&chrome->marks, mark, numbers.items, numbers.count);
    return !error || fail(chrome, error);
}

/* The name of a process. */
static int take_name(Chrome *chrome, const Fields *fields) {
    ChromeProcess *process = process_of(chrome, &fields->pid);
    if (!process) return 0;
    process->name = 0;
    if (fields->arguments.kind != JSON_OBJECT) return 1;
    Scan scan = {fields->arguments.text.at + 1, fields->arguments.text.at + fields->arguments.text.size, JSON_FINE, 0};
    Value name, value;
    for (int is_first = 1; json_member(&scan, is_first, &name); is_first = 0) {
        value.is_escaped = 0;
        if (!json_value(&scan, &value)) break;
        if (!is_text(&name, "name")) continue;
        process->name = value.kind == JSON_TEXT ? number_of_text(&chrome->names, &value) : 0;
    }
    return 1;
}

static int take_event(Chrome *chrome, const Fields *fields) {
    if (fields->phase.kind != JSON_TEXT) return wrong(chrome);
    char phase = fields->phase.text.size == 1 ? *fields->phase.text.at : 0;
    if (phase == 'B' || phase == 'E' || phase == 'X') return take_call(chrome, fields, phase);
    if (phase && strchr("beSTpF", phase)) {
        ChromeProcess *process = process_of(chrome, &fields->pid);
        if (process) process->asynchronous++;
        return process != NULL;
    }
    if (phase == 'M' && is_text(&fields->name, "process_name")) return take_name(chrome, fields);
    if (phase == 'P') chrome->flags |= CHROME_SAMPLES;
    return 1;
}

static Value *field_of(Fields *fields, const Value *name) {
    const char *at = name->text.at;
    switch (name->text.size) {
        case 2: return memcmp(at, "ph", 2) ? memcmp(at, "ts", 2) ? NULL : &fields->stamp : &fields->phase;
        case 3:
            return !memcmp(at, "pid", 3)   ? &fields->pid
                   : !memcmp(at, "tid", 3) ? &fields->tid
                   : !memcmp(at, "dur", 3) ? &fields->duration
                                           : NULL;
        case 4: return memcmp(at, "name", 4) ? memcmp(at, "args", 4) ? NULL : &fields->arguments : &fields->name;
        default: return NULL;
    }
}

/* ---- the text ---- */

static int read_event(Chrome *chrome, Scan *scan) {
    Fields fields = {0};
    Value name, ignored;
    if (!json_take(scan, '{')) return 0;
    for (int is_first = 1; json_member(scan, is_first, &name); is_first = 0) {
        if (name.is_escaped) return wrong(chrome); /* nobody writes so */
        Value *field = field_of(&fields, &name);
        if (!field) field = &ignored;
        field->is_escaped = 0;
        if (!json_value(scan, field)) return 0;
    }
    if (scan->state != JSON_FINE) return 0;
    chrome->events++;
    return take_event(chrome, &fields);
}

/* A member of the object around the events. */
static int read_member(Chrome *chrome, Scan *scan) {
    Value name, value;
    if (!json_member(scan, chrome->is_first, &name)) {
        if (scan->state != JSON_FINE) return 0;
        chrome->state = CHROME_END;
        return 1;
    }
    if (is_text(&name, "traceEvents")) {
        if (chrome->has_events) return wrong(chrome);
        if (!json_take(scan, '[')) return 0;
        chrome->state = CHROME_EVENTS;
        chrome->has_events = chrome->is_first = 1;
        return 1;
    }
    if (!json_value(scan, &value)) return 0;
    chrome->is_first = 0;
    if (is_text(&name, "viztracer_metadata")) chrome->flags |= CHROME_VIZTRACER;
    if (is_text(&name, "stackFrames")) chrome->flags |= CHROME_SAMPLES;
    int tells_tool = is_text(&name, "metadata") || is_text(&name, "otherData");
    if (tells_tool && memmem(value.text.at, value.text.size, "uftrace", 7)) chrome->flags |= CHROME_UFTRACE;
    return 1;
}

/* The next part of the text, as a whole. */
static int read_part(Chrome *chrome, Scan *scan) {
    char next = json_peek(scan);
    if (scan->state != JSON_FINE) return 0;
    switch (chrome->state) {
        case CHROME_BEGIN:
            if (next != '{' && next != '[') return wrong(chrome);
            scan->at++;
            chrome->is_object = next == '{';
            chrome->state = chrome->is_object ? CHROME_MEMBERS : CHROME_EVENTS;
            chrome->is_first = 1;
            return 1;
        case CHROME_MEMBERS: scan->depth = 1; return read_member(chrome, scan);
        case CHROME_EVENTS:
            scan->depth = 2;
            if (next == ']') {
                scan->at++;
                chrome->state = chrome->is_object ? CHROME_MEMBERS : CHROME_END;
            } else if ((!chrome->is_first && !json_take(scan, ',')) || !read_event(chrome, scan)) {
                return 0;
            }
            chrome->is_first = 0;
            return 1;
        default: return wrong(chrome);
    }
}

/* Read what is held as far as it goes. */
static void read_held(Chrome *chrome) {
    char *at = chrome->held, *end = at + chrome->held_size;
    Scan scan = {.end = end};
    while (at < end) {
        scan.at = at;
        scan.state = JSON_FINE;
        scan.depth = 0;
        if (!read_part(chrome, &scan)) break;
        at = (char *)(uintptr_t)scan.at;
    }
    if (scan.state == JSON_WRONG) wrong(chrome);
    uint64_t rest = (uint64_t)(end - at);
    chrome->passed += chrome->held_size - rest;
    memmove(chrome->held, at, rest);
    chrome->held_size = rest;
    chrome->wanted = rest * 2; /* else a long part would be looked at anew for each piece that comes */
    if (rest > CHROME_MAX_UNIT) wrong(chrome);
}

int chrome_feed(Chrome *chrome, const char *piece, uint64_t size) {
    if (!chrome->passed && !chrome->held_size && size >= 3 && !memcmp(piece, "\xEF\xBB\xBF", 3)) piece += 3, size -= 3;
    if (chrome->error || !size) return chrome->error;
    if (chrome->held_size + size > chrome->held_room) {
        uint64_t room = (chrome->held_size + size) * 3 / 2;
        char *larger = realloc(chrome->held, room);
        if (!larger) return fail(chrome, ENOMEM), ENOMEM;
        chrome->held = larger;
        chrome->held_room = room;
    }
    memcpy(chrome->held + chrome->held_size, piece, size);
    chrome->held_size += size;
    if (chrome->held_size >= chrome->wanted) read_held(chrome);
    return chrome->error;
}

int chrome_finish(Chrome *chrome) {
    if (chrome->error) return chrome->error;
    if (!chrome->held) return wrong(chrome), chrome->error; /* the file is empty */
    read_held(chrome);
    const char *at = chrome->held, *end = at + chrome->held_size;
    while (at < end && strchr(" \t\n\r", *at) && *at) at++;
    if (chrome->state == CHROME_EVENTS && !chrome->is_object) { /* the tool was still writing, or writes no end at all */
        while (at < end && *at == ',') at++;
        while (at < end && strchr(" \t\n\r", *at) && *at) at++;
        chrome->flags |= CHROME_CUT;
    } else if (chrome->state != CHROME_END || (chrome->is_object && !chrome->has_events)) {
        wrong(chrome);
    }
    if (at < end) wrong(chrome);
    free(chrome->held);
    chrome->held = NULL;
    chrome->held_size = chrome->held_room = 0;
    return chrome->error;
}

void chrome_free(Chrome *chrome) {
    Names *all[] = {&chrome->names,           &chrome->number_names,   &chrome->identities,
                    &chrome->process_numbers, &chrome->thread_numbers, &chrome->components,
                    &chrome->number_uses};
    for (size_t which = 0; which < sizeof all / sizeof *all; which++) names_free(all[which]);
    free(chrome->processes);
    free(chrome->threads);
    free(chrome->held);
    marks_free(&chrome->marks);
}
