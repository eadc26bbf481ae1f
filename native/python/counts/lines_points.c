#include "lines_points.h"

#if PY_VERSION_HEX < 0x030C0000

#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#include <stdlib.h>
#include <string.h>

/* Larger code is told by every instruction of its lines: the search takes some nanoseconds for each branch and unit. */
enum { UNIT = (int)sizeof(_Py_CODEUNIT), MAX_WORK = 20000000, MAX_DEPTH = 500 };

/* What is known of the instruction that begins at a unit; `op` is -1 where none begins. */
typedef struct Step {
    int op, next, target; /* units: behind it and its caches, and where it jumps to, -1 if it does not */
    int is_long;          /* it has EXTENDED_ARG before it */
    int last;             /* of a block that begins here: its last instruction */
    /* of a block that begins here: how it is entered; `natural` tells that an event of a line comes with it */
    uint8_t natural, quietly, is_told, is_kept, is_returned, seen;
    uint16_t leads_to; /* 1 + index of the wanted jump at the end of the only block that it leads into; 0: none */
} Step;

typedef struct Graph {
    const Branches *branches;
    const uint8_t *bytes;
    const Position *positions;
    Points *points;
    Step *step;
    uint8_t *looked_at; /* by line */
    int units, first, span;
    int depth; /* of the search for an event, which must not fill a thread's stack */
} Graph;

static int line_of(const Graph *graph, int unit) { return graph->positions[unit].line; }
static int head_of(const Graph *graph, int unit) { return graph->points->head[unit] / UNIT; }

static int never_goes_on(int op) {
    return op == RETURN_VALUE || op == RERAISE || op == RAISE_VARARGS || op == JUMP_FORWARD || op == JUMP_BACKWARD ||
           op == JUMP_BACKWARD_NO_INTERRUPT;
}

static int goes_back(int op) {
    return op == JUMP_BACKWARD || op == JUMP_BACKWARD_NO_INTERRUPT || op == POP_JUMP_BACKWARD_IF_FALSE ||
           op == POP_JUMP_BACKWARD_IF_TRUE || op == POP_JUMP_BACKWARD_IF_NONE || op == POP_JUMP_BACKWARD_IF_NOT_NONE;
}

static int goes_forward(int op) {
    return op == JUMP_FORWARD || op == FOR_ITER || op == SEND || op == JUMP_IF_FALSE_OR_POP ||
           op == JUMP_IF_TRUE_OR_POP || op == POP_JUMP_FORWARD_IF_FALSE || op == POP_JUMP_FORWARD_IF_TRUE ||
           op == POP_JUMP_FORWARD_IF_NONE || op == POP_JUMP_FORWARD_IF_NOT_NONE;
}

/* No code runs because of it: no other function, no destructor, no signal handler, no other thread. */
static int is_quiet(int op) {
    return op == LOAD_FAST || op == LOAD_CONST || op == LOAD_DEREF || op == LOAD_CLOSURE || op == PUSH_NULL || op == NOP;
}

/* ---- blocks ---- */

static void read_steps(Graph *graph) {
    int argument = 0, begin = -1;
    for (int unit = 0; unit < graph->units; unit++) graph->step[unit] = (Step){.op = -1, .target = -1};
    for (int unit = 0; unit < graph->units; unit++) {
        int op = graph->bytes[unit * UNIT];
        if (op == CACHE) continue;
        argument = argument << 8 | graph->bytes[unit * UNIT + 1];
        if (begin < 0) begin = unit;
        if (op == EXTENDED_ARG) continue;
        Step *step = &graph->step[begin];
        step->op = op;
        step->is_long = begin != unit;
        for (step->next = unit + 1; step->next < graph->units && graph->bytes[step->next * UNIT] == CACHE;) step->next++;
        if (goes_back(op)) step->target = step->next - argument;
        if (goes_forward(op)) step->target = step->next + argument;
        if (step->target >= graph->units) step->target = -1;
        argument = 0;
        begin = -1;
    }
}

/* Blocks end at jumps, before targets of jumps, and where another line begins. */
static void find_blocks(Graph *graph) {
    uint8_t *leads = graph->points->told; /* lent: it is all 0 again afterwards */
    leads[0] = 1;
    for (int unit = 0; unit < graph->units; unit++) {
        const Step *step = &graph->step[unit];
        if (step->op < 0) continue;
        int ends = step->target >= 0 || never_goes_on(step->op);
        if (step->target >= 0) leads[step->target] = 1;
        if (step->next < graph->units && (ends || line_of(graph, step->next) != line_of(graph, unit)))
            leads[step->next] = 1;
    }
    int head = 0;
    for (int unit = 0; unit < graph->units; unit++) {
        if (leads[unit]) head = unit;
        graph->points->head[unit] = head * UNIT;
        if (graph->step[unit].op >= 0) graph->step[head].last = unit;
    }
    memset(leads, 0, (size_t)graph->units);
}

/* Whether the interpreter tells of a line when it goes from one instruction to another one. */
static int is_natural(const Graph *graph, int from, int to) {
    if (line_of(graph, to) <= 0) return 0;
    return line_of(graph, from) != line_of(graph, to) || (to < from && graph->step[to].op != SEND);
}

static void note_way(Graph *graph, int from, int to) {
    if (is_natural(graph, from, to)) graph->step[to].natural = 1;
    else graph->step[to].quietly = 1;
}

static int falls_through(const Graph *graph, int unit) {
    return !never_goes_on(graph->step[unit].op) && graph->step[unit].next < graph->units;
}

static void find_ways(Graph *graph) {
    graph->step[0].natural = 1; /* the event of the call */
    for (int unit = 0; unit < graph->units; unit = graph->step[unit].next) {
        const Step *step = &graph->step[unit];
        if (step->op < 0) return; /* nothing can be read here, which never happens */
        int is_last = graph->step[head_of(graph, unit)].last == unit;
        if (step->target >= 0) note_way(graph, unit, step->target);
        if (is_last && falls_through(graph, unit)) note_way(graph, unit, step->next);
        if (step->op == RETURN_VALUE) graph->step[head_of(graph, unit)].is_returned = 1;
    }
}

/* ---- which instruction of a block loses its line ---- */

/* Whether the line may be taken from this instruction: the event that comes at the next one then tells of its block,
 * and of no other one. */
static int can_lose_line(const Graph *graph, int head, int unit) {
    const Step *step = &graph->step[unit], *block = &graph->step[head];
    if (!is_quiet(step->op) || step->is_long || step->next >= graph->units || line_of(graph, unit) <= 0) return 0;
    if (unit == head && (block->natural || !block->quietly || block->is_kept)) return 0;
    if (graph->points->chosen[step->next]) return 0;
    if (unit != block->last) return 1;
    const Step *after = &graph->step[step->next];
    return falls_through(graph, unit) && line_of(graph, step->next) == line_of(graph, unit) && !after->natural;
}

static int choose(Graph *graph, int head) {
    Step *block = &graph->step[head];
    if (block->is_told) return 1;
    for (int unit = head; unit <= block->last; unit = graph->step[unit].next) {
        if (!can_lose_line(graph, head, unit)) continue;
        int next = graph->step[unit].next;
        graph->points->chosen[unit] = 1;
        graph->points->told[next] = 1;
        if (unit == block->last) graph->step[next].is_kept = 1;
        return block->is_told = 1;
    }
    return 0;
}

static void unchoose_line(Graph *graph, int line) {
    for (int at = 0; at < graph->branches->sites; at++)
        if (line_of(graph, graph->branches->site[at].offset / UNIT) == line) graph->points->silent[at] = NONE_SILENT;
    for (int unit = 0; unit < graph->units; unit++) {
        if (line_of(graph, unit) != line) continue;
        graph->points->chosen[unit] = graph->points->told[unit] = 0;
        graph->step[unit].is_told = graph->step[unit].is_kept = 0;
        graph->step[unit].leads_to = 0;
    }
}

/* ---- whether a line's branches are all told ---- */

/* Whether all ways from a block come to an event before they come to a wanted jump, and that event is not the one of
 * another block. So nothing else can have happened if any other event comes. */
static int is_unmistakable(Graph *graph, int head, int other) {
    Step *block = &graph->step[head];
    if (head == other) return 0;
    if (block->seen || block->is_told || block->is_returned) return 1;
    if (graph->depth == MAX_DEPTH) return 0;
    block->seen = 1;
    const Site *site = branches_site(graph->branches, block->last * UNIT);
    if (site && site->wanted) return 0;
    int last = block->last, ways[2] = {graph->step[last].target, falls_through(graph, last) ? graph->step[last].next : -1};
    for (int way = 0; way < 2; way++) {
        if (ways[way] < 0) continue;
        if (ways[way] == other) return 0;
        if (is_natural(graph, last, ways[way])) continue;
        graph->depth++;
        int is_told = is_unmistakable(graph, ways[way], other);
        graph->depth--;
        if (!is_told) return 0;
    }
    return 1;
}

static int is_clear(Graph *graph, int head, int other) {
    for (int unit = 0; unit < graph->units; unit++) graph->step[unit].seen = 0;
    return is_unmistakable(graph, head, other);
}

/* Whether an event tells that a jump went one way. */
static int tells_way(Graph *graph, int from, int to) {
    return is_natural(graph, from, to) || graph->step[to].is_told || graph->step[to].is_returned;
}

/* The first unit of the jump: what a site's offset is may be behind an EXTENDED_ARG. */
static int jump_of(const Graph *graph, const Site *site) { return graph->step[head_of(graph, site->offset / UNIT)].last; }

/* Whether a frame that comes to the block always comes to the end of it before it is left for another one's. */
static int is_whole(const Graph *graph, int head) {
    for (int unit = head; unit <= graph->step[head].last; unit = graph->step[unit].next) {
        int op = graph->step[unit].op;
        if (op == YIELD_VALUE || op == RETURN_GENERATOR || op == SEND || op == ASYNC_GEN_WRAP) return 0;
    }
    return 1;
}

/* A loop's block is entered from behind, which is told, and from before, which is not: the block before leads nowhere
 * else, so what tells of that one tells of the loop's jump. */
static int choose_before(Graph *graph, int head, const Site *site) {
    for (int unit = 0; unit < graph->units; unit = graph->step[unit].next) {
        int before = head_of(graph, unit), is_forward = graph->step[unit].op == JUMP_FORWARD;
        if (graph->step[unit].op < 0) return 0;
        if (graph->step[before].last != unit) continue;
        int falls = falls_through(graph, unit) && graph->step[unit].next == head;
        if ((!falls && graph->step[unit].target != head) || is_natural(graph, unit, head)) continue;
        if (before == head || (graph->step[unit].target >= 0 && !is_forward) || !is_whole(graph, before)) return 0;
        int needs_event = graph->step[before].quietly || !graph->step[before].natural;
        if (needs_event && !choose(graph, before)) return 0;
        graph->step[before].leads_to = (uint16_t)(1 + (site - graph->branches->site));
    }
    return 1;
}

/* Choose an instruction in each block that needs one: those that a wanted jump ends, and of the two that it leads to one
 * if that suffices. */
static int choose_around(Graph *graph, const Site *site) {
    int jump = jump_of(graph, site), head = head_of(graph, jump), next = site->next / UNIT, target = site->target / UNIT;
    if (target < 0 || target >= graph->units || next >= graph->units || next == target) return 0;
    if (graph->step[head].quietly || !graph->step[head].natural)
        if (!choose(graph, head) && !choose_before(graph, head, site)) return 0;
    int next_is_told = tells_way(graph, jump, next), target_is_told = tells_way(graph, jump, target);
    if (!next_is_told && !(target_is_told && is_clear(graph, next, target))) next_is_told = choose(graph, next);
    if (!target_is_told && !(next_is_told && is_clear(graph, target, next))) target_is_told = choose(graph, target);
    return next_is_told || target_is_told;
}

/* Note which way of a jump is silent. 0 if it could be mistaken for another one. */
static int note_silent(Graph *graph, const Site *site) {
    int jump = jump_of(graph, site), next = site->next / UNIT, target = site->target / UNIT;
    uint8_t *silent = &graph->points->silent[site - graph->branches->site];
    if (!tells_way(graph, jump, next)) {
        *silent = NEXT_SILENT;
        return is_clear(graph, next, target);
    }
    if (tells_way(graph, jump, target)) return 1;
    *silent = TARGET_SILENT;
    return is_clear(graph, target, next);
}

static int all_in_line(Graph *graph, int line, int (*each)(Graph *, const Site *)) {
    for (const Site *site = graph->branches->site; site < graph->branches->site + graph->branches->sites; site++)
        if (site->wanted && line_of(graph, site->offset / UNIT) == line && !each(graph, site)) return 0;
    return 1;
}

static void take_line(Graph *graph, int line) {
    graph->points->of_line[line - graph->first] = 1;
    for (int unit = 0; unit < graph->units; unit++) {
        if (line_of(graph, unit) != line) continue;
        const Step *block = &graph->step[head_of(graph, unit)];
        const Site *site = branches_site(graph->branches, block->last * UNIT);
        graph->points->ending[unit] = block->leads_to;
        if (site && site->wanted) graph->points->ending[unit] = (uint16_t)(1 + (site - graph->branches->site));
    }
}

/* Each line is looked at once, at the first of its sites. */
static int choose_lines(Graph *graph) {
    int any = 0;
    for (const Site *site = graph->branches->site; site < graph->branches->site + graph->branches->sites; site++) {
        int line = line_of(graph, site->offset / UNIT), place = line - graph->first;
        if (!site->wanted || place < 0 || place >= graph->span || graph->looked_at[place]) continue;
        graph->looked_at[place] = 1;
        if (all_in_line(graph, line, choose_around) && all_in_line(graph, line, note_silent)) {
            take_line(graph, line);
            any = 1;
        } else {
            unchoose_line(graph, line);
        }
    }
    return any;
}

static void note_events(const Graph *graph) {
    const Points *points = graph->points;
    for (int unit = 0; unit < graph->units; unit++) {
        int is_behind = points->told[unit], place = line_of(graph, unit) - graph->first;
        int32_t block = points->head[unit - is_behind];
        int is_entry = !is_behind && unit * UNIT == block;
        int by_opcode = place >= 0 && place < graph->span && graph->looked_at[place] && !points->of_line[place];
        points->event[unit] = (LineEvent){.block = block,
                                          .ending = points->ending[unit],
                                          .is_behind = (uint8_t)is_behind,
                                          .is_entry = (uint8_t)is_entry,
                                          .by_opcode = (uint8_t)by_opcode};
    }
}

/* ---- the whole ---- */

void points_free(Points *points) {
    if (!points) return;
    free(points->event);
    free(points->head);
    free(points->ending);
    free(points->chosen);
    free(points->told);
    free(points->line);
    free(points->silent);
    free(points->of_line);
    free(points);
}

static Points *create(const Branches *branches, int span) {
    Points *points = calloc(1, sizeof *points);
    if (!points) return NULL;
    size_t units = (size_t)branches->units;
    points->units = branches->units;
    points->first_chosen = -1;
    points->event = calloc(units, sizeof *points->event);
    points->head = calloc(units, sizeof *points->head);
    points->ending = calloc(units, sizeof *points->ending);
    points->chosen = calloc(units, 1);
    points->told = calloc(units, 1);
    points->line = calloc(units, sizeof *points->line);
    points->silent = calloc((size_t)branches->sites, 1);
    points->of_line = calloc((size_t)span, 1);
    if (points->event && points->head && points->ending && points->chosen && points->told && points->line &&
        points->silent && points->of_line)
        return points;
    points_free(points);
    return NULL;
}

Points *points_find(const Branches *branches, const uint8_t *bytes, const Position *positions, int first, int span) {
    if ((int64_t)branches->sites * branches->units > MAX_WORK) return NULL;
    Points *points = create(branches, span);
    Step *steps = points ? calloc((size_t)branches->units, sizeof *steps) : NULL;
    uint8_t *looked_at = points ? calloc((size_t)span, 1) : NULL;
    int any = 0;
    if (steps && looked_at) {
        Graph graph = {branches, bytes, positions, points, steps, looked_at, branches->units, first, span, 0};
        read_steps(&graph);
        find_blocks(&graph);
        find_ways(&graph);
        any = choose_lines(&graph);
        note_events(&graph);
    }
    free(steps);
    free(looked_at);
    for (int unit = points ? points->units - 1 : -1; unit >= 0; unit--) {
        points->line[unit] = positions[unit].line;
        if (points->chosen[unit]) points->first_chosen = unit;
    }
    if (any) return points;
    points_free(points);
    return NULL;
}

/* ---- in the interpreter's array of lines ---- */

int points_in_use = 1;
static void (*restore_all)(void);

static void set_line(PyCodeObject *code, int unit, int line) {
    if (code->_co_linearray_entry_size == 2) ((int16_t *)code->_co_linearray)[unit] = (int16_t)line;
    else ((int32_t *)code->_co_linearray)[unit] = line;
}

void points_restore(PyCodeObject *code, const Points *points) {
    for (int unit = 0; code->_co_linearray && unit < points->units; unit++)
        if (points->chosen[unit]) set_line(code, unit, points->line[unit]);
}

void points_stop(void) {
    if (!points_in_use) return;
    points_in_use = 0;
    if (restore_all) restore_all();
}

/* Somebody sets a trace function, who is to be told of lines as they are. */
static int on_audit(const char *event, PyObject *arguments, void *data) {
    (void)arguments, (void)data;
    if (!strcmp(event, "sys.settrace")) points_stop();
    return 0;
}

/* A program that watches what is audited would see that a hook is added. It may also refuse ours, and of a refusal by
 * RuntimeError the interpreter tells nothing. */
static int is_audited(void) { return _PyRuntime.audit_hook_head || PyInterpreterState_Get()->audit_hooks; }

int points_apply(PyCodeObject *code, const Points *points, void (*restore)(void)) {
    static int is_heard;
    restore_all = restore;
    if (!is_heard && points_in_use) {
        points_in_use = is_heard = !is_audited() && !PySys_AddAuditHook(on_audit, NULL);
        if (!is_heard) PyErr_Clear(); /* there is no memory */
    }
    if (!points_in_use) return 0;
    int first = points->first_chosen;
    if (first < 0 || _PyCode_LineNumberFromArray(code, first) == -1) return 1;
    for (int unit = first; unit < points->units; unit++)
        if (points->chosen[unit]) set_line(code, unit, -1);
    return 1;
}

#endif
