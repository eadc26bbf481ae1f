#include "branches_find.h"

#include <opcode.h>
#include <stdlib.h>
#include <string.h>

#include "python/interpreter/positions.h"

#if PY_VERSION_HEX < 0x030D0000
#define TO_BOOL (-1)
#endif
#if PY_VERSION_HEX < 0x030C0000
enum { TURNED_BACK = -2 }; /* no instruction: this compiler has conditional jumps back */
#else
enum { TURNED_BACK = JUMP_BACKWARD };
#endif

/* What tells conditions apart: the instruction that made the tested value, and where in the source that stands. */
typedef struct Key {
    int op;
    Position value, operand;
} Key;

typedef struct Walk {
    Position *positions; /* by unit of bytecode */
    const uint8_t *bytes;
    int size;
    int value_op, value_at, operand_at; /* the instruction that made the value, and where it and the one before it stand */
    int bool_at;                        /* where the value was made a truth value, -1 if it was not */
    int is_chained;                     /* the value is a comparison that another comparison of its chain follows */
    int is_copied;                      /* the value is a copy: it is also what the expression comes to */
    const char *left_out;               /* why a branch is missing, NULL if none is */
    Key *keys;                          /* by branch */
} Walk;

static Position position_of(const Walk *walk, int offset) {
    if (offset < 0 || offset >= walk->size) return (Position){-1, -1, -1, -1};
    return walk->positions[offset / (int)sizeof(_Py_CODEUNIT)];
}

static int op_at(const Walk *walk, int offset) { return offset >= 0 && offset < walk->size ? walk->bytes[offset] : -1; }

/* ---- what an instruction is ---- */

enum Direction { NO_JUMP, FORWARD, BACKWARD };

#if PY_VERSION_HEX < 0x030C0000
static enum Direction direction_of(int op) {
    switch (op) {
    case FOR_ITER: case JUMP_IF_FALSE_OR_POP: case JUMP_IF_TRUE_OR_POP:
    case POP_JUMP_FORWARD_IF_FALSE: case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_FORWARD_IF_NONE: case POP_JUMP_FORWARD_IF_NOT_NONE: return FORWARD;
    case POP_JUMP_BACKWARD_IF_FALSE: case POP_JUMP_BACKWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_NONE: case POP_JUMP_BACKWARD_IF_NOT_NONE: return BACKWARD;
    default: return NO_JUMP;
    }
}
static int jumps_when_true(int op) {
    return op == JUMP_IF_TRUE_OR_POP || op == POP_JUMP_FORWARD_IF_TRUE || op == POP_JUMP_BACKWARD_IF_TRUE ||
           op == POP_JUMP_FORWARD_IF_NOT_NONE || op == POP_JUMP_BACKWARD_IF_NOT_NONE;
}
static int keeps_value(const Walk *walk, int op, int next) {
    (void)walk, (void)next;
    return op == JUMP_IF_TRUE_OR_POP || op == JUMP_IF_FALSE_OR_POP;
}
#else
static enum Direction direction_of(int op) {
    switch (op) {
    case FOR_ITER: case POP_JUMP_IF_FALSE: case POP_JUMP_IF_TRUE: case POP_JUMP_IF_NONE: case POP_JUMP_IF_NOT_NONE:
        return FORWARD;
    default: return NO_JUMP;
    }
}
static int jumps_when_true(int op) { return op == POP_JUMP_IF_TRUE || op == POP_JUMP_IF_NOT_NONE; }
static int keeps_value(const Walk *walk, int op, int next) {
    return walk->is_copied && (op == POP_JUMP_IF_TRUE || op == POP_JUMP_IF_FALSE) && op_at(walk, next) == POP_TOP;
}
#endif

static int compares(int op) { return op == COMPARE_OP || op == IS_OP || op == CONTAINS_OP; }

/* ---- which branch a jump belongs to ---- */

/* Whether an instruction does the work of two; its position is that of the first. */
static int loads_two(int op) {
#if PY_VERSION_HEX < 0x030D0000
    (void)op;
    return 0;
#else
    return op == STORE_FAST_LOAD_FAST || op == LOAD_FAST_LOAD_FAST;
#endif
}

static Key key_of(const Walk *walk, int op, const Site *site) {
    if (op == FOR_ITER) return (Key){op, position_of(walk, site->next), position_of(walk, -1)}; /* known by its variable */
    Key key = {walk->value_op, position_of(walk, walk->value_at),
               position_of(walk, walk->is_chained ? walk->operand_at : -1)};
    if (!loads_two(key.op)) return key;
    key.op = LOAD_FAST;
    key.value = position_of(walk, walk->bool_at >= 0 ? walk->bool_at : site->offset);
    return key;
}

static int rank_of(const Branches *branches, int line) {
    int rank = 1;
    for (int at = 0; at < branches->count; at++) rank += branches->branch[at].line == line;
    return rank;
}

/* The branch with this key, added if it is new. -1 if it cannot be told from others or there are too many. */
static int branch_of(Walk *walk, Branches *branches, const Key *key, int *is_new) {
    int line = key->value.line;
    *is_new = 0;
    if (line > 0 && key->value.column < 0)
        walk->left_out = "python -X no_debug_ranges leaves out what tells branches apart";
    if (line <= 0 || key->value.column < 0) return -1;
    for (int at = 0; at < branches->count; at++)
        if (!memcmp(&walk->keys[at], key, sizeof *key)) return at;
    if (branches->count == branches->capacity) {
        int few = branches->capacity <= MAX_BRANCHES;
        walk->left_out = few ? "of functions with many, the first 64 are counted"
                             : "of code with many branches, the first 1024";
        return -1;
    }
    *is_new = 1;
    walk->keys[branches->count] = *key;
    branches->branch[branches->count] = (Branch){.line = line, .rank = rank_of(branches, line)};
    return branches->count++;
}

/* ---- which way is taken: usually the one without a jump ---- */

static int lies_within(Position part, Position whole) {
    int begins = part.line > whole.line || (part.line == whole.line && part.column >= whole.column);
    int ends = part.end_line < whole.end_line || (part.end_line == whole.end_line && part.end_column <= whole.end_column);
    return begins && ends;
}

/* Whether the compiler replaced a conditional jump back, at the end of a loop's body: it then jumps over a
 * JUMP_BACKWARD that has the same position. */
static int is_replaced_jump_back(const Walk *walk, const Site *site) {
    if (op_at(walk, site->next) != TURNED_BACK) return 0;
    Position jump = position_of(walk, site->offset), back = position_of(walk, site->next);
    return !memcmp(&jump, &back, sizeof jump);
}

/* Whether both jump over the failure of one assertion, and this is no `if x: assert y`. The failure has the position
 * of the whole statement since 3.12, and before that of its last part. */
static int is_same_assertion(const Walk *walk, const Site *site, const Site *later) {
    Position part = position_of(walk, site->offset), failure = position_of(walk, later->next);
#if PY_VERSION_HEX < 0x030C0000
    if (position_of(walk, site->offset).line == failure.line) return 1;
#endif
    return lies_within(part, failure);
}

/* Whether a jump to where a later part of the same condition leads is a way into what both guard. */
static int joins(const Walk *walk, const Site *site, const Site *later) {
    if (site->target == later->next) return op_at(walk, later->offset) != FOR_ITER && !later->taken_by_jump; /* `or` */
    if (site->target != later->target) return 0;
    if (op_at(walk, later->next) == LOAD_ASSERTION_ERROR) return is_same_assertion(walk, site, later);
    return is_replaced_jump_back(walk, later);
}

static int is_taken_by_jump(const Walk *walk, const Branches *branches, const Site *site) {
    if (op_at(walk, site->offset) == FOR_ITER || op_at(walk, site->target) == LOAD_ASSERTION_ERROR) return 0;
    if (site->kept) return site->when_true;
    if (op_at(walk, site->next) == LOAD_ASSERTION_ERROR || is_replaced_jump_back(walk, site)) return 1;
    for (const Site *later = site + 1; later < branches->site + branches->sites; later++)
        if (later->first && joins(walk, site, later)) return 1;
    return 0;
}

/* Decide for the first site of each branch; its copies are taken for the same truth value of the condition. */
static void decide_all(const Walk *walk, Branches *branches) {
    const Site **first = calloc((size_t)branches->count + 1, sizeof *first);
    for (int at = first ? branches->sites : 0; at--;) {
        Site *site = &branches->site[at];
        if (!site->first) continue;
        first[site->branch] = site;
        site->taken_by_jump = (uint8_t)is_taken_by_jump(walk, branches, site);
    }
    for (Site *site = branches->site; first && site < branches->site + branches->sites; site++)
        site->taken_by_jump = first[site->branch]->taken_by_jump == (first[site->branch]->when_true == site->when_true);
    free(first);
}

/* ---- the walk ---- */

static void add(Walk *walk, Branches *branches, int begin, int offset, int op, int argument) {
    Site site = {.offset = offset, .next = offset + (int)sizeof(_Py_CODEUNIT), .when_true = (uint8_t)jumps_when_true(op)};
    while (site.next < walk->size && walk->bytes[site.next] == CACHE) site.next += (int)sizeof(_Py_CODEUNIT);
    int length = argument * (int)sizeof(_Py_CODEUNIT), is_new = 0;
    site.target = site.next + (direction_of(op) == BACKWARD ? -length : length);
    Key key = key_of(walk, op, &site);
    int branch = walk->value_op == WITH_EXCEPT_START ? -1 : branch_of(walk, branches, &key, &is_new);
    if (branch < 0 || branches->sites == SITES_PER_BRANCH * branches->capacity) return;
    site.branch = (int16_t)branch;
    site.first = (uint8_t)is_new;
    site.kept = (uint8_t)keeps_value(walk, op, site.next);
    branches->site[branches->sites++] = site;
    for (int at = begin; at <= offset; at += (int)sizeof(_Py_CODEUNIT))
        branches->site_at[at / (int)sizeof(_Py_CODEUNIT)] = (uint16_t)branches->sites;
}

static void note_value(Walk *walk, int op, int begin) {
    walk->bool_at = op == TO_BOOL ? begin : -1;
    if (op == TO_BOOL) return;
    walk->is_chained = compares(op) && walk->is_copied;
    walk->is_copied = op == COPY;
    if (op == COPY || op == SWAP) return;
    walk->operand_at = walk->value_at;
    walk->value_op = op;
    walk->value_at = begin;
}

static void walk_all(Walk *walk, Branches *branches) {
    int argument = 0, begin = -1;
    for (int offset = 0; offset < walk->size; offset += (int)sizeof(_Py_CODEUNIT)) {
        int op = walk->bytes[offset];
        if (op == CACHE) continue;
        argument = argument << 8 | walk->bytes[offset + 1];
        if (begin < 0) begin = offset;
        if (op == EXTENDED_ARG) continue;
        if (direction_of(op)) add(walk, branches, begin, offset, op, argument);
        else note_value(walk, op, begin);
        argument = 0;
        begin = -1;
    }
    decide_all(walk, branches);
}

void branches_free(Branches *branches) {
    if (!branches) return;
    free(branches->site_at);
    free(branches->site);
    free(branches->branch);
    free(branches);
}

/* There are no more sites than instructions. */
static int max_sites(const Branches *branches) {
    int max = SITES_PER_BRANCH * branches->capacity;
    return branches->units < max ? branches->units : max;
}

/* Give back the memory beyond what was found: there may be many thousands of these. */
static void shrink(Branches *branches) {
    Site *site = realloc(branches->site, (size_t)branches->sites * sizeof *site);
    Branch *branch = realloc(branches->branch, (size_t)branches->count * sizeof *branch);
    if (site) branches->site = site;
    if (branch) branches->branch = branch;
}

static Branches *create(int units, int max) {
    Branches *branches = calloc(1, sizeof *branches);
    if (!branches) return NULL;
    branches->units = units;
    branches->capacity = (int16_t)max;
    branches->site_at = calloc((size_t)units, sizeof *branches->site_at);
    branches->site = calloc((size_t)max_sites(branches), sizeof *branches->site);
    branches->branch = calloc((size_t)max, sizeof *branches->branch);
    if (branches->site_at && branches->site && branches->branch) return branches;
    branches_free(branches);
    return NULL;
}

/* NULL if there is nothing to count, or no memory. */
static Branches *find(Walk *walk, int max) {
    Branches *branches = create(walk->size / (int)sizeof(_Py_CODEUNIT), max);
    if (branches) walk_all(walk, branches);
    if (branches && branches->count && branches->sites) {
        shrink(branches);
        return branches;
    }
    branches_free(branches);
    return NULL;
}

Branches *branches_find(PyCodeObject *code, int max, const char **left_out) {
    PyObject *bytes = PyCode_GetCode(code);
    Walk walk = {.value_at = -1, .operand_at = -1, .bool_at = -1};
    Branches *branches = NULL;
    if (bytes) {
        walk.bytes = (const uint8_t *)PyBytes_AS_STRING(bytes);
        walk.size = (int)PyBytes_GET_SIZE(bytes);
        walk.positions = calloc((size_t)walk.size, sizeof *walk.positions / sizeof(_Py_CODEUNIT));
        int units = walk.size / (int)sizeof(_Py_CODEUNIT);
        if (max > units) max = units;
        walk.keys = calloc((size_t)max, sizeof *walk.keys);
    }
    if (walk.positions && walk.keys) {
        positions_of(code, walk.positions, walk.size / (int)sizeof(_Py_CODEUNIT));
        branches = find(&walk, max);
        *left_out = walk.left_out;
    }
    free(walk.positions);
    free(walk.keys);
    PyErr_Clear();
    Py_XDECREF(bytes);
    return branches;
}
