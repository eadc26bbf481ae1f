#include "lines_count.h"

#include <stdlib.h>
#include <string.h>

enum { CHAINS = 1024 };

int lines_wanted;
uint32_t lines_process;
static Lines *chains[CHAINS]; /* by component: code that is made anew, by reload or exec, goes on with the counters it had */
static Text said;             /* of what is not counted */

void lines_begin(void) {
    lines_wanted = recorder.settings.lines;
    memset(chains, 0, sizeof chains); /* a child leaves its parent's behind */
    counters_begin();
    text_free(&said);
    said = (Text){0};
    lines_process = lines_wanted ? recorder.process : 0;
}

void lines_forget(void) { lines_process = 0; }

void lines_say(const char *words) {
    if (said.length && strstr(said.data, words)) return;
    if (said.length) text_word(&said, "; ");
    text_word(&said, words);
    text_add(&said, "", 1);
    said.length--; /* the end of the string is no part of it */
    if (!said.torn) define_words("lines", said.data);
}

/* ---- what a code object has ---- */

typedef struct Source {
    PyCodeObject *code;
    PyObject *bytes;
    Position *positions; /* by unit of bytecode */
    int units;
} Source;

static int read_source(Source *source, PyCodeObject *code) {
    source->code = code;
    source->bytes = PyCode_GetCode(code);
    if (!source->bytes) return 0;
    source->units = (int)(PyBytes_GET_SIZE(source->bytes) / (Py_ssize_t)sizeof(_Py_CODEUNIT));
    source->positions = calloc((size_t)source->units + 1, sizeof *source->positions);
    if (source->positions) positions_of(code, source->positions, source->units);
    return source->positions != NULL;
}

/* What comes before the first RESUME belongs to the call, and no line is told of it. */
static void find_span(const Source *source, Lines *lines) {
    int last = 0;
    for (int at = source->code->_co_firsttraceable + 1; at < source->units; at++) {
        int line = source->positions[at].line;
        if (line <= 0) continue;
        if (!lines->first || line < lines->first) lines->first = line;
        if (line > last) last = line;
    }
    lines->span = last - lines->first + 1;
    if (lines->span <= MOST_LINES) return;
    lines->span = MOST_LINES;
    lines_say("not all counted: of code whose lines lie further apart than a million");
}

static uint8_t *present_in(const Source *source, const Lines *lines) {
    uint8_t *present = calloc((size_t)lines->span, 1);
    for (int at = source->code->_co_firsttraceable + 1; present && at < source->units; at++) {
        int line = source->positions[at].line;
        if (line >= lines->first && line - lines->first < lines->span) present[line - lines->first] = 1;
    }
    return present;
}

static uint64_t mixed(uint64_t key, const void *data, Py_ssize_t length) { /* FNV-1a of 64 bits */
    for (const unsigned char *at = data; length--; at++) key = (key ^ *at) * 0x100000001b3ull;
    return (key ^ 0xff) * 0x100000001b3ull;
}

static uint64_t signature_of(const Source *source) {
    PyObject *table = source->code->co_linetable;
    uint64_t key = mixed(0xcbf29ce484222325ull, PyBytes_AS_STRING(table), PyBytes_GET_SIZE(table));
    key = mixed(key, &source->code->co_firstlineno, sizeof source->code->co_firstlineno);
    return mixed(key, PyBytes_AS_STRING(source->bytes), PyBytes_GET_SIZE(source->bytes));
}

/* ---- counters ---- */

static void add_blocks(const Source *source, Lines *lines) {
    const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(source->bytes);
    const char *left_out = NULL;
    lines->loops = blocks_loops(bytes, source->positions, source->units);
    lines->branches = branches_find(source->code, MOST_BLOCKS, &left_out);
    if (left_out) {
        char words[160];
        snprintf(words, sizeof words, "not all blocks counted: %s", left_out);
        lines_say(words);
    }
    if (!lines->branches || blocks_choose(lines->branches, bytes, source->positions)) return;
    branches_drop(lines->branches);
    lines->branches = NULL;
}

static void note_jumps(const Source *source, Lines *lines) {
    lines->until = lines->branches ? calloc((size_t)lines->span, sizeof *lines->until) : NULL;
    for (int at = 0; lines->until && at < lines->branches->sites; at++) {
        const Site *site = &lines->branches->site[at];
        int place = source->positions[site->offset / (int)sizeof(_Py_CODEUNIT)].line - lines->first;
        int known = place >= 0 && place < lines->span;
        if (site->wanted && known && lines->until[place] < site->next) lines->until[place] = site->next;
    }
}

static void lines_free(Lines *lines) {
    branches_drop(lines->branches);
    free(lines->until);
    free(lines->loops);
    free(lines);
}

static Lines *made(const Source *source, int32_t number) {
    Lines *lines = calloc(1, sizeof *lines);
    if (!lines) return NULL;
    *lines = (Lines){.process = lines_process, .units = source->units, .number = number};
    find_span(source, lines);
    uint8_t *present = lines->first ? present_in(source, lines) : NULL;
    if (present) add_blocks(source, lines);
    int outcomes = lines->branches ? 2 * lines->branches->count : 0, file, place;
    if (present) lines->counts = counters_room(lines->span + outcomes, &file, &place);
    if (lines->counts) {
        lines->outcomes = lines->counts + lines->span;
        note_jumps(source, lines);
        define_counts(lines, present, file, place);
    } else {
        lines_free(lines);
        lines = NULL;
    }
    free(present);
    return lines;
}

static Lines *of_source(const Source *source, int32_t number) {
    Lines **chain = &chains[(uint32_t)number % CHAINS];
    uint64_t signature = signature_of(source);
    for (Lines *known = *chain; known; known = known->next)
        if (known->number == number && known->signature == signature) return known;
    Lines *lines = made(source, number);
    if (!lines) return NULL;
    lines->signature = signature;
    lines->next = *chain;
    return *chain = lines;
}

void lines_meet(Function *function) {
    function->lines = NULL;
    if (!lines_process || function->mode != ALWAYS) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* the target may be unwinding */
    Source source = {0};
    if (read_source(&source, function->code)) function->lines = of_source(&source, function->number);
    free(source.positions);
    Py_XDECREF(source.bytes);
    PyErr_Clear();
    const Lines *lines = function->lines;
    if (lines) events_watch(function, WATCH_LINES | (lines->loops ? WATCH_JUMPS : 0) | (lines->branches ? WATCH_BRANCHES : 0));
    PyErr_Restore(type, value, trace);
}

Lines *lines_again(PyCodeObject *code) {
    Function *function = lines_wanted && recorder.active ? function_known(code) : NULL;
    if (!function || function->mode != ALWAYS) return NULL;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* the target may be unwinding */
    int known = thread_get() && function_define(function); /* a forked child begins its own recording here */
    PyErr_Restore(type, value, trace);
    return known && function->lines && function->lines->process == lines_process ? function->lines : NULL;
}
