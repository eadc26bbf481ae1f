#include "lines.h"

#include <stdlib.h>
#include <string.h>

#include "counts_file.h"
#include "python/definitions.h"
#include "lines_blocks.h"
#include "python/numbers.h"
#include "python/interpreter/positions.h"
#include "python/interpreter/watching.h"

enum { CHAINS = 1024 };

int lines_wanted;
uint32_t lines_process;
/* by component: code that is made anew, by reload or exec, goes on with the counters it had */
static Lines *chains[CHAINS];
static Text notes;            /* what is not counted */

void lines_begin(void) {
    lines_wanted = recording.settings.lines;
    memset(chains, 0, sizeof chains); /* a child leaves its parent's behind */
    counts_begin();
    text_free(&notes);
    lines_process = lines_wanted ? recording.process : 0;
}

void lines_stop(void) { lines_process = 0; }

void lines_note(const char *note) { define_note(&notes, "lines", note); }

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

/* Find the first and the last line. What comes before the first RESUME belongs to the call, and no event tells of
 * its line. */
static void find_span(const Source *source, Lines *lines) {
    int last = 0;
    for (int at = source->code->_co_firsttraceable + 1; at < source->units; at++) {
        int line = source->positions[at].line;
        if (line <= 0) continue;
        if (!lines->first || line < lines->first) lines->first = line;
        if (line > last) last = line;
    }
    lines->span = last - lines->first + 1;
    if (lines->span <= MAX_LINES) return;
    lines->span = MAX_LINES;
    lines_note("not all counted: of code whose lines lie further apart than a million");
}

/* By line from the first: whether it has code. NULL if there is no memory. */
static uint8_t *find_present(const Source *source, const Lines *lines) {
    uint8_t *present = calloc((size_t)lines->span, 1);
    for (int at = source->code->_co_firsttraceable + 1; present && at < source->units; at++) {
        int line = source->positions[at].line;
        if (line >= lines->first && line - lines->first < lines->span) present[line - lines->first] = 1;
    }
    return present;
}

static uint64_t signature_of(const Source *source) {
    PyObject *table = source->code->co_linetable;
    uint64_t key = hash_part(HASH_START, PyBytes_AS_STRING(table), (size_t)PyBytes_GET_SIZE(table));
    key = hash_part(key, &source->code->co_firstlineno, sizeof source->code->co_firstlineno);
    return hash_part(key, PyBytes_AS_STRING(source->bytes), (size_t)PyBytes_GET_SIZE(source->bytes));
}

/* ---- counters ---- */

static void add_blocks(const Source *source, Lines *lines) {
    const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(source->bytes);
    const char *left_out = NULL;
    lines->loops = blocks_find_loops(bytes, source->positions, source->units);
    lines->branches = branches_find(source->code, MAX_BLOCKS, &left_out);
    if (left_out) {
        char note[160];
        snprintf(note, sizeof note, "not all blocks counted: %s", left_out);
        lines_note(note);
    }
    if (!lines->branches || blocks_choose(lines->branches, bytes, source->positions)) return;
    branches_free(lines->branches);
    lines->branches = NULL;
}

/* Find what tells of the branches by few events. Branches of each invocation are counted by every instruction. */
static void find_points(const Source *source, Lines *lines) {
#if PY_VERSION_HEX < 0x030C0000
    const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(source->bytes);
    if (lines->branches && !recording.settings.branches)
        lines->points = points_find(lines->branches, bytes, source->positions, lines->first, lines->span);
#else
    (void)source, (void)lines;
#endif
}

/* Note where the last wanted jump of each line ends. */
static void find_last_jumps(const Source *source, Lines *lines) {
    lines->until = lines->branches ? calloc((size_t)lines->span, sizeof *lines->until) : NULL;
    for (int at = 0; lines->until && at < lines->branches->sites; at++) {
        const Site *site = &lines->branches->site[at];
        int place = source->positions[site->offset / (int)sizeof(_Py_CODEUNIT)].line - lines->first;
        int is_inside = place >= 0 && place < lines->span;
        if (site->wanted && is_inside && lines->until[place] < site->next) lines->until[place] = site->next;
    }
}

/* Whether no event comes between the begin of a line and its wanted jumps that is one of a single instruction. */
static int is_told_by_points(const Lines *lines, int place) {
#if PY_VERSION_HEX < 0x030C0000
    return lines->points && lines->points->of_line[place];
#else
    return 0 * lines->span * place;
#endif
}

/* Count from the end how many instructions a line has ahead. It ends at another line and where the code does not go
 * on. CACHE entries, of opcode 0, are no instructions. */
static void count_ahead(const Source *source, Lines *lines) {
    const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(source->bytes);
    lines->ahead = calloc((size_t)source->units + 1, 1);
    for (int at = source->units - 1; lines->ahead && at >= 0; at--) {
        int line = source->positions[at].line, place = line - lines->first;
        int offset = at * (int)sizeof(_Py_CODEUNIT), op = bytes[offset];
        int goes_on = at + 1 < source->units && source->positions[at + 1].line == line && !blocks_ends(op);
        int is_inside = lines->until && place >= 0 && place < lines->span;
        int is_told = is_inside && offset < lines->until[place] && !is_told_by_points(lines, place);
        int ahead = (goes_on ? lines->ahead[at + 1] : 0) + (op && !is_told);
        lines->ahead[at] = (uint8_t)(ahead < UINT8_MAX ? ahead : UINT8_MAX);
    }
}

/* Every line that has code, by its place among the counters; then the branches that are wanted. */
static void define_counts(const Lines *lines, const uint8_t *present, int file, int place) {
    Text line = definition_begin("counts");
    const int numbers[] = {lines->number, file, place, lines->first, lines->span};
    for (size_t at = 0; at < sizeof numbers / sizeof *numbers; at++) definition_add_number(&line, numbers[at]);
    text_add_word(&line, ", (");
    for (int at = 0; at < lines->span; at++)
        if (present[at]) {
            text_add_number(&line, at);
            text_add_word(&line, ", ");
        }
    text_add_word(&line, "), (");
    int wanted[MAX_BLOCKS] = {0}, branches = lines->branches ? lines->branches->count : 0;
    for (int at = 0; branches && at < lines->branches->sites; at++)
        wanted[lines->branches->site[at].branch] = lines->branches->site[at].wanted;
    for (int at = 0; at < branches; at++) {
        if (!wanted[at]) continue;
        const int64_t items[] = {at, lines->branches->branch[at].line, lines->branches->branch[at].rank};
        for (int item = 0; item < 3; item++) {
            text_add_word(&line, item ? ", " : "(");
            text_add_number(&line, items[item]);
        }
        text_add_word(&line, "), ");
    }
    text_add_word(&line, ")");
    definition_write(&line);
}

static void free_lines(Lines *lines) {
    branches_free(lines->branches);
#if PY_VERSION_HEX < 0x030C0000
    points_free(lines->points);
#endif
    free(lines->until);
    free(lines->ahead);
    free(lines->loops);
    free(lines);
}

static Lines *create(const Source *source, int32_t number) {
    Lines *lines = calloc(1, sizeof *lines);
    if (!lines) return NULL;
    *lines = (Lines){.process = lines_process, .units = source->units, .number = number};
    find_span(source, lines);
    uint8_t *present = lines->first ? find_present(source, lines) : NULL;
    if (present) add_blocks(source, lines);
    int outcomes = lines->branches ? 2 * lines->branches->count : 0, file, place;
    const char *obstacle = NULL;
    if (present) lines->counts = counts_allocate(lines->span + outcomes, &file, &place, &obstacle);
    if (obstacle) lines_note(obstacle);
    if (lines->counts) {
        lines->outcomes = lines->counts + lines->span;
        find_points(source, lines);
        find_last_jumps(source, lines);
        count_ahead(source, lines);
        define_counts(lines, present, file, place);
    } else {
        free_lines(lines);
        lines = NULL;
    }
    free(present);
    return lines;
}

static Lines *find_or_create(const Source *source, int32_t number) {
    Lines **chain = &chains[(uint32_t)number % CHAINS];
    uint64_t signature = signature_of(source);
    for (Lines *known = *chain; known; known = known->next)
        if (known->number == number && known->signature == signature) return known;
    Lines *lines = create(source, number);
    if (!lines) return NULL;
    lines->signature = signature;
    lines->next = *chain;
    return *chain = lines;
}

void lines_of_function(Function *function) {
    function->lines = NULL;
    if (!lines_process || !function_counts_inside(function)) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* the program may be handling an exception */
    Source source = {0};
    if (read_source(&source, function->code)) function->lines = find_or_create(&source, function->number);
    free(source.positions);
    Py_XDECREF(source.bytes);
    PyErr_Clear();
    const Lines *lines = function->lines;
    if (lines) watch(function, WATCH_LINES | (lines->loops ? WATCH_JUMPS : 0) | (lines->branches ? WATCH_BRANCHES : 0));
    PyErr_Restore(type, value, trace);
}
