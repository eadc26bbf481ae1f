#include "lines_blocks.h"

#include <opcode.h>
#include <stdlib.h>

typedef struct Walk {
    const uint8_t *bytes;
    const Position *positions; /* by unit of bytecode */
    int size;
} Walk;

/* Where a way leads from its line: to another line, to the end of the code, or to another conditional jump. */
enum End { OTHER_LINE, STOPPED, DIVIDED };

typedef struct Way {
    enum End end;
    int where; /* offset of the first instruction of the other line */
    int steps; /* instructions before that one which do something */
} Way;

static int line_at(const Walk *walk, int offset) { return walk->positions[offset / (int)sizeof(_Py_CODEUNIT)].line; }

static int is_back(int op) {
    return op == JUMP_BACKWARD || op == JUMP_BACKWARD_NO_INTERRUPT;
}

static int stops(int op) {
#if PY_VERSION_HEX >= 0x030C0000
    if (op == RETURN_CONST) return 1;
#endif
    return op == RETURN_VALUE || op == RERAISE || op == RAISE_VARARGS;
}

int blocks_ends(int op) { return stops(op) || is_back(op) || op == JUMP_FORWARD; }

static int does_nothing(int op) {
#if PY_VERSION_HEX >= 0x030C0000
    if (op == END_FOR) return 1;
#endif
    return op == NOP || op == POP_TOP || op == JUMP_FORWARD || is_back(op);
}

/* The offset behind an instruction and its caches. */
static int next_offset(const Walk *walk, int offset) {
    do offset += (int)sizeof(_Py_CODEUNIT);
    while (offset < walk->size && walk->bytes[offset] == CACHE);
    return offset;
}

static const Site *jump_at(const Branches *branches, const Walk *walk, int offset) {
    return walk->bytes[offset] == CACHE ? NULL : branches_site(branches, offset);
}

/* Follow the code from an instruction on, as long as there is only one way to go. */
static Way follow(const Branches *branches, const Walk *walk, int offset, int line) {
    Way way = {STOPPED, -1, 0};
    int argument = 0;
    for (int left = walk->size; offset < walk->size && left--;) {
        int op = walk->bytes[offset], here = line_at(walk, offset), next = next_offset(walk, offset);
        if (here > 0 && here != line) return (Way){OTHER_LINE, offset, way.steps};
        if (jump_at(branches, walk, offset)) return (Way){DIVIDED, -1, way.steps};
        argument = argument << 8 | walk->bytes[offset + 1];
        offset = next;
        if (op == EXTENDED_ARG) continue;
        if (stops(op)) return (Way){STOPPED, -1, way.steps + 1};
        way.steps += !does_nothing(op);
        if (op == JUMP_FORWARD) offset += argument * (int)sizeof(_Py_CODEUNIT);
        if (is_back(op)) offset -= argument * (int)sizeof(_Py_CODEUNIT);
        argument = 0;
    }
    return way;
}

/* Lines tell of a branch if its taken way leads into another line, the other way does not lead into that line, and
 * neither divides before. What a loop does with its variable on the way is no block. */
static int is_wanted(const Branches *branches, const Walk *walk, const Site *site) {
    int line = line_at(walk, site->offset);
    Way plain = follow(branches, walk, site->next, line), jump = follow(branches, walk, site->target, line);
    Way taken = site->taken_by_jump ? jump : plain;
    if (plain.end == DIVIDED || jump.end == DIVIDED || taken.end != OTHER_LINE) return 1;
    if (plain.end == OTHER_LINE && jump.end == OTHER_LINE && plain.where == jump.where) return 1;
    return taken.steps && walk->bytes[site->offset] != FOR_ITER;
}

int blocks_choose(Branches *branches, const uint8_t *bytes, const Position *positions) {
    Walk walk = {bytes, positions, branches->units * (int)sizeof(_Py_CODEUNIT)};
    int wanted = 0;
    for (int branch = 0; branch < branches->count; branch++) {
        int any_wanted = 0;
        for (const Site *site = branches->site; site < branches->site + branches->sites; site++)
            any_wanted |= site->branch == branch && is_wanted(branches, &walk, site);
        for (Site *site = branches->site; site < branches->site + branches->sites; site++)
            if (site->branch == branch) site->wanted = (uint8_t)any_wanted; /* for its copies as well */
        wanted += any_wanted;
    }
    return wanted;
}

int32_t *blocks_find_loops(const uint8_t *bytes, const Position *positions, int units) {
    Walk walk = {bytes, positions, units * (int)sizeof(_Py_CODEUNIT)};
    int32_t *loops = calloc((size_t)units, sizeof *loops);
    int argument = 0, begin = -1, found_any = 0;
    for (int offset = 0; loops && offset < walk.size; offset = next_offset(&walk, offset)) {
        argument = argument << 8 | bytes[offset + 1];
        if (begin < 0) begin = offset;
        if (bytes[offset] == EXTENDED_ARG) continue;
        int target = next_offset(&walk, offset) - argument * (int)sizeof(_Py_CODEUNIT);
        if (bytes[offset] == JUMP_BACKWARD && target >= 0 && line_at(&walk, target) == line_at(&walk, offset))
            for (int at = begin; at <= offset; at += (int)sizeof(_Py_CODEUNIT), found_any = 1)
                loops[at / (int)sizeof(_Py_CODEUNIT)] = line_at(&walk, offset);
        argument = 0;
        begin = -1;
    }
    if (found_any) return loops;
    free(loops);
    return NULL;
}
