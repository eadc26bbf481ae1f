#include "paths.h"

#include "core/tree/lanes.h"
#include "core/tree/nodes.h"

int paths_begin(Tree *tree, uint32_t clocks, uint64_t limit) {
    Paths *paths = arena_alloc(&tree->arena, sizeof(Paths));
    if (!paths) return 0;
    log_table_fill(&paths->logs);
    paths->clocks = clocks;
    paths->limit = limit;
    paths->merging.scale = MAX_SCALE;
    tree->paths = paths;
    return 1;
}

static void *allocate(Tree *tree, uint64_t size) {
    tree->paths->bytes += size;
    return arena_alloc(&tree->arena, size);
}

static void begin(PathNode *path, int64_t number) {
    path->number = number;
    path->wall.histogram.scale = path->cpu.histogram.scale = MAX_SCALE;
}

static FunctionPaths *ensure_function(Tree *tree, Function *function) {
    if (!function->paths && (function->paths = allocate(tree, sizeof(FunctionPaths))))
        begin(&function->paths->whole, WHOLE);
    return function->paths;
}

static PathNode *ensure_node(Tree *tree, FunctionPaths *paths, Node *node) {
    if (node->path) return node->path;
    PathNode *path = node->path = allocate(tree, sizeof(PathNode));
    if (!path) return NULL;
    begin(path, node->number);
    path->next = paths->whole.next;
    paths->whole.next = path;
    return path;
}

/* ---- the bound on memory ---- */

static uint64_t bytes_of(const Durations *durations) {
    return durations->histogram.capacity * sizeof(uint32_t) + durations->batches.capacity * sizeof(BatchLevel);
}

static void free_durations(Tree *tree, Durations *durations) {
    tree->paths->bytes -= bytes_of(durations);
    log_histogram_free(&tree->arena, &durations->histogram);
    batches_free(&tree->arena, &durations->batches);
}

static void free_path(Tree *tree, PathNode *path) {
    for (Piece *piece = path->first, *next; piece; piece = next) {
        next = piece->next;
        piece_free(tree, piece);
    }
    free_durations(tree, &path->wall);
    free_durations(tree, &path->cpu);
    path->first = path->last = NULL;
}

/* Stands in place of what was dropped; nobody writes there. */
static FunctionPaths dropped_paths = {.dropped = 1};

/* Nodes keep pointers to their paths, but nobody looks at them once their function is dropped. */
static void drop(Tree *tree, Function *function) {
    FunctionPaths *paths = function->paths;
    for (PathNode *path = &paths->whole, *next; path; path = next) {
        next = path->next;
        free_path(tree, path);
        if (path == &paths->whole) continue;
        arena_free(&tree->arena, path, sizeof(PathNode));
        tree->paths->bytes -= sizeof(PathNode);
    }
    tree->paths->bytes -= paths->capacity * sizeof(Observation) + sizeof(FunctionPaths);
    arena_free(&tree->arena, paths->closed, paths->capacity * sizeof(Observation));
    arena_free(&tree->arena, paths, sizeof(FunctionPaths));
    function->paths = &dropped_paths;
    tree->paths->dropped++;
}

/* Drop the function of least exclusive time. 0 if there is none left. */
static int drop_lightest(Tree *tree) {
    Function *lightest = NULL;
    for (uint32_t number = 0; number < tree->functions.count; number++) {
        Function *function = function_at(tree, number);
        if (!function || !function->paths || function->paths->dropped) continue;
        if (!lightest || (__int128)function->self_time < (__int128)lightest->self_time) lightest = function;
    }
    if (lightest) drop(tree, lightest);
    return lightest != NULL;
}

/* ---- observations ---- */

static void merge(Tree *tree, FunctionPaths *paths, const uint32_t *to) {
    for (PathNode *path = &paths->whole; path; path = path->next) pieces_merge(tree, path, to);
    for (uint32_t at = 0; at < paths->count; at++) {
        Observation *into = &paths->closed[to[at]], *from = &paths->closed[at];
        if (!at || to[at] != to[at - 1]) *into = *from;
        else *into = (Observation){into->begin, from->end, into->points + from->points, into->nested + from->nested};
    }
    paths->count = paths->count ? to[paths->count - 1] + 1 : 0;
}

static void halve(Tree *tree, FunctionPaths *paths) {
    uint32_t to[MAX_OBSERVATIONS];
    for (uint32_t at = 0; at < MAX_OBSERVATIONS; at++) to[at] = at / 2;
    merge(tree, paths, to);
    paths->doubled++;
}

static int make_room(Tree *tree, FunctionPaths *paths) {
    if (paths->count < paths->capacity) return 1;
    uint64_t old = paths->capacity, new = old ? old * 2 : 2;
    if (!arena_enlarge(&tree->arena, (void **)&paths->closed, old * sizeof(Observation), new * sizeof(Observation)))
        return 0;
    tree->paths->bytes += (new - old) * sizeof(Observation);
    paths->capacity = (uint32_t)new;
    return 1;
}

/* Whether the open observation has enough to be closed. */
static int is_complete(const FunctionPaths *paths) {
    const Observation *open = &paths->open;
    uint64_t lasted = (uint64_t)minus(open->end, open->begin);
    if (open->points >> 31) return 1; /* buckets hold 32 bits */
    return open->points >> paths->doubled >= MIN_CALLS && lasted >> paths->doubled >= MIN_DURATION_NS;
}

static void close(Tree *tree, FunctionPaths *paths) {
    if (paths->count == MAX_OBSERVATIONS) halve(tree, paths);
    if (!make_room(tree, paths)) return;
    for (PathNode *path = &paths->whole; path; path = path->next) piece_close(tree, path, paths->count);
    paths->closed[paths->count++] = paths->open;
    paths->open = (Observation){0};
}

void paths_finish(Tree *tree) {
    for (uint32_t number = 0; tree->paths && number < tree->functions.count; number++) {
        Function *function = function_at(tree, number);
        FunctionPaths *paths = function ? function->paths : NULL;
        if (!paths || !paths->open.points) continue;
        int is_small = !is_complete(paths);
        close(tree, paths);
        uint32_t to[MAX_OBSERVATIONS], last = paths->count - 1;
        for (uint32_t at = 0; at <= last; at++) to[at] = at - (at == last && is_small && at);
        merge(tree, paths, to);
    }
}

/* ---- one invocation ---- */

static void observe(Observation *open, const Invocation *completed) {
    int64_t end = plus(completed->started, plus(completed->time, completed->waited));
    if (!open->points++) *open = (Observation){.begin = completed->started, .end = end, .points = 1};
    if (end > open->end) open->end = end;
    if (completed->events > 1) open->nested += (uint64_t)completed->events - 1;
    open->nested += completed->skipped;
}

/* A duration, its whole logarithm, and the index of its bucket, which is 1 less at a bucket's upper bound. */
typedef struct Duration {
    int64_t x;
    uint32_t log;
    int32_t index;
} Duration;

static inline Duration duration_of(const Paths *paths, int64_t x) {
    uint32_t log = x > 0 ? log_of(&paths->logs, (uint64_t)x) : 0;
    return (Duration){x, log, (int32_t)log - !(x & (x - 1))};
}

static inline void add_batch(Tree *tree, Batches *batches, uint32_t log) {
    uint32_t old = batches->capacity;
    batches_add(&tree->arena, batches, log);
    if (batches->capacity != old) tree->paths->bytes += (batches->capacity - old) * sizeof(BatchLevel);
}

static inline void add(Tree *tree, Durations *to, Duration duration) {
    uint32_t old = to->histogram.capacity;
    if (duration.x > 0) log_histogram_add(&tree->arena, &to->histogram, duration.index);
    else to->histogram.zeros++;
    if (to->histogram.capacity != old) tree->paths->bytes += ((uint64_t)to->histogram.capacity - old) * sizeof(uint32_t);
    add_batch(tree, &to->batches, duration.log);
}

/* CPU time differs from wall time from here on: copy what wall time has so far. */
static void begin_cpu(Tree *tree, PathNode *path) {
    Durations *cpu = &path->cpu;
    const LogHistogram *wall = &path->wall.histogram;
    tree->paths->bytes -= bytes_of(cpu);
    for (uint32_t at = 0; at < wall->length; at++) {
        int32_t index = wall->low + (int32_t)at;
        if (wall->counts[at]) log_histogram_add_many(&tree->arena, &cpu->histogram, wall->scale, index, wall->counts[at]);
    }
    cpu->histogram.zeros = wall->zeros;
    batches_copy(&tree->arena, &cpu->batches, &path->wall.batches);
    tree->paths->bytes += bytes_of(cpu);
    path->has_cpu = 1;
}

static void add_cpu(Tree *tree, PathNode *path, Duration duration) {
    if (path->number == WHOLE) add_batch(tree, &path->cpu.batches, duration.log);
    else add(tree, &path->cpu, duration);
}

void paths_add(Tree *tree, const Invocation *completed) {
    const Paths *all = tree->paths;
    FunctionPaths *paths = ensure_function(tree, completed->node->function);
    if (!paths || paths->dropped) return;
    PathNode *node = ensure_node(tree, paths, completed->node), *whole = &paths->whole;
    if (!node) return;
    int64_t off = completed->changes && all->clocks > 1 ? lane_value(completed->changes, METRIC_CPU) : 0;
    if (off && !node->has_cpu) begin_cpu(tree, node);
    if (off && !whole->has_cpu) begin_cpu(tree, whole);
    Duration wall = duration_of(all, completed->time), cpu = off ? duration_of(all, minus(completed->time, off)) : wall;
    observe(&paths->open, completed);
    add(tree, &node->wall, wall);
    add_batch(tree, &whole->wall.batches, wall.log);
    if (node->has_cpu) add_cpu(tree, node, cpu);
    if (whole->has_cpu) add_cpu(tree, whole, cpu);
    if (is_complete(paths)) close(tree, paths);
    while (all->bytes > all->limit && drop_lightest(tree)) continue;
}
