#include "paths.h"

#include "grid.h"
#include "lanes.h"

int paths_begin(Tree *tree, uint32_t clocks, uint64_t limit) {
    Paths *paths = arena_alloc(&tree->arena, sizeof(Paths));
    if (!paths) return 0;
    logs_begin(&paths->logs);
    paths->clocks = clocks;
    paths->limit = limit;
    paths->between.spread.scale = MOST_SCALE;
    tree->paths = paths;
    return 1;
}

static void *zeroed(Tree *tree, uint64_t size) {
    tree->paths->bytes += size;
    return arena_alloc(&tree->arena, size);
}

static void begin(PathNode *path, int64_t number) {
    path->number = number;
    path->wall.spread.scale = path->cpu.spread.scale = MOST_SCALE;
}

static PathCode *code_of(Tree *tree, Code *code) {
    if (!code->paths && (code->paths = zeroed(tree, sizeof(PathCode)))) begin(&code->paths->whole, WHOLE);
    return code->paths;
}

static PathNode *node_of(Tree *tree, PathCode *code, Node *node) {
    if (node->path) return node->path;
    PathNode *path = node->path = zeroed(tree, sizeof(PathNode));
    if (!path) return NULL;
    begin(path, node->number);
    path->next = code->whole.next;
    code->whole.next = path;
    return path;
}

/* ---- the bound on memory ---- */

static void free_measured(Tree *tree, Measured *measured) {
    tree->paths->bytes -= measured->spread.capacity * sizeof(uint32_t) + measured->batches.capacity * sizeof(Level);
    spread_free(&tree->arena, &measured->spread);
    batches_free(&tree->arena, &measured->batches);
}

static void free_path(Tree *tree, PathNode *path) {
    for (Piece *piece = path->first, *next; piece; piece = next) {
        next = piece->next;
        piece_free(tree, piece);
    }
    free_measured(tree, &path->wall);
    free_measured(tree, &path->cpu);
    path->first = path->last = NULL;
}

/* Stands in the place of what was dropped; nobody writes there. */
static PathCode nothing = {.dropped = 1};

/* Nodes keep pointers to their paths, but nobody looks at them once their function is dropped. */
static void drop(Tree *tree, Code *of) {
    PathCode *code = of->paths;
    for (PathNode *path = &code->whole, *next; path; path = next) {
        next = path->next;
        free_path(tree, path);
        if (path == &code->whole) continue;
        arena_free(&tree->arena, path, sizeof(PathNode));
        tree->paths->bytes -= sizeof(PathNode);
    }
    tree->paths->bytes -= code->capacity * sizeof(Seen) + sizeof(PathCode);
    arena_free(&tree->arena, code->closed, code->capacity * sizeof(Seen));
    arena_free(&tree->arena, code, sizeof(PathCode));
    of->paths = &nothing;
    tree->paths->dropped++;
}

static int drop_lightest(Tree *tree) {
    Code *lightest = NULL;
    for (uint32_t number = 0; number < tree->codes.count; number++) {
        Code *code = *(Code **)grid_at(&tree->codes, number);
        if (!code || !code->paths || code->paths->dropped) continue;
        if (!lightest || (__int128)code->self_time < (__int128)lightest->self_time) lightest = code;
    }
    if (lightest) drop(tree, lightest);
    return lightest != NULL;
}

/* ---- observations ---- */

static void merge(Tree *tree, PathCode *code, const uint32_t *to) {
    for (PathNode *path = &code->whole; path; path = path->next) pieces_merge(tree, path, to);
    for (uint32_t at = 0; at < code->count; at++) {
        Seen *into = &code->closed[to[at]], *from = &code->closed[at];
        if (!at || to[at] != to[at - 1]) *into = *from;
        else *into = (Seen){into->begin, from->end, into->points + from->points, into->nested + from->nested};
    }
    code->count = code->count ? to[code->count - 1] + 1 : 0;
}

static void halve(Tree *tree, PathCode *code) {
    uint32_t to[MOST_OBSERVATIONS];
    for (uint32_t at = 0; at < MOST_OBSERVATIONS; at++) to[at] = at / 2;
    merge(tree, code, to);
    code->doubled++;
}

static int room(Tree *tree, PathCode *code) {
    if (code->count < code->capacity) return 1;
    uint64_t old = code->capacity, new = old ? old * 2 : 2;
    if (!arena_enlarge(&tree->arena, (void **)&code->closed, old * sizeof(Seen), new * sizeof(Seen))) return 0;
    tree->paths->bytes += (new - old) * sizeof(Seen);
    code->capacity = (uint32_t)new;
    return 1;
}

static int is_whole(const PathCode *code) {
    const Seen *open = &code->open;
    uint64_t lasted = (uint64_t)since(open->end, open->begin);
    if (open->points >> 31) return 1; /* buckets hold 32 bits */
    return open->points >> code->doubled >= FEWEST && lasted >> code->doubled >= SHORTEST_NS;
}

static void close(Tree *tree, PathCode *code) {
    if (code->count == MOST_OBSERVATIONS) halve(tree, code);
    if (!room(tree, code)) return;
    for (PathNode *path = &code->whole; path; path = path->next) piece_close(tree, path, code->count);
    code->closed[code->count++] = code->open;
    code->open = (Seen){0};
}

void paths_finish(Tree *tree) {
    for (uint32_t number = 0; tree->paths && number < tree->codes.count; number++) {
        Code *of = *(Code **)grid_at(&tree->codes, number);
        PathCode *code = of ? of->paths : NULL;
        if (!code || !code->open.points) continue;
        int small = !is_whole(code);
        close(tree, code);
        uint32_t to[MOST_OBSERVATIONS], last = code->count - 1;
        for (uint32_t at = 0; at <= last; at++) to[at] = at - (at == last && small && at);
        merge(tree, code, to);
    }
}

/* ---- one invocation ---- */

static void see(Seen *open, const Frame *done) {
    int64_t end = plus(done->started, plus(done->x, done->waited));
    if (!open->points++) *open = (Seen){.begin = done->started, .end = end, .points = 1};
    if (end > open->end) open->end = end;
    if (done->events > 1) open->nested += (uint64_t)done->events - 1;
}

/* A duration in words of buckets: its whole logarithm, and its index, 1 less at a bucket's upper bound. */
typedef struct Size {
    int64_t x;
    uint32_t log;
    int32_t index;
} Size;

static inline Size size_of(const Paths *paths, int64_t x) {
    uint32_t log = x > 0 ? logs_of(&paths->logs, (uint64_t)x) : 0;
    return (Size){x, log, (int32_t)log - !(x & (x - 1))};
}

static inline void add_batch(Tree *tree, Batches *batches, uint32_t log) {
    uint32_t old = batches->capacity;
    batches_add(&tree->arena, batches, log);
    if (batches->capacity != old) tree->paths->bytes += (batches->capacity - old) * sizeof(Level);
}

static inline void add(Tree *tree, Measured *to, Size size) {
    uint32_t old = to->spread.capacity;
    if (size.x > 0) spread_add(&tree->arena, &to->spread, size.index);
    else to->spread.zeros++;
    if (to->spread.capacity != old) tree->paths->bytes += ((uint64_t)to->spread.capacity - old) * sizeof(uint32_t);
    add_batch(tree, &to->batches, size.log);
}

/* CPU time has its own account from here on: what it has until now is what the wall's has. */
static void part(Tree *tree, PathNode *path) {
    Measured *cpu = &path->cpu;
    const Spread *wall = &path->wall.spread;
    tree->paths->bytes -= cpu->spread.capacity * sizeof(uint32_t) + cpu->batches.capacity * sizeof(Level);
    for (uint32_t at = 0; at < wall->length; at++)
        if (wall->counts[at]) spread_put(&tree->arena, &cpu->spread, wall->scale, wall->low + (int32_t)at, wall->counts[at]);
    cpu->spread.zeros = wall->zeros;
    batches_copy(&tree->arena, &cpu->batches, &path->wall.batches);
    tree->paths->bytes += cpu->spread.capacity * sizeof(uint32_t) + cpu->batches.capacity * sizeof(Level);
    path->apart = 1;
}

static void add_cpu(Tree *tree, PathNode *path, Size size) {
    if (path->number == WHOLE) add_batch(tree, &path->cpu.batches, size.log);
    else add(tree, &path->cpu, size);
}

void paths_add(Tree *tree, const Frame *done) {
    const Paths *paths = tree->paths;
    PathCode *code = code_of(tree, done->node->sums);
    if (!code || code->dropped) return;
    PathNode *node = node_of(tree, code, done->node), *whole = &code->whole;
    if (!node) return;
    int64_t off = done->changes && paths->clocks > 1 ? lane_value(done->changes, METRIC_CPU) : 0;
    if (off && !node->apart) part(tree, node);
    if (off && !whole->apart) part(tree, whole);
    Size wall = size_of(paths, done->x), cpu = off ? size_of(paths, since(done->x, off)) : wall;
    see(&code->open, done);
    add(tree, &node->wall, wall);
    add_batch(tree, &whole->wall.batches, wall.log);
    if (node->apart) add_cpu(tree, node, cpu);
    if (whole->apart) add_cpu(tree, whole, cpu);
    if (is_whole(code)) close(tree, code);
    while (paths->bytes > paths->limit && drop_lightest(tree)) continue;
}
