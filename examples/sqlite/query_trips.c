/*
 * Queries taxi trips with several threads, each over a read-only connection of its own, and tells how fast that went (SPEX, §5.2).
 *
 *     query_trips FILE [--threads=N] [--cache=BYTES] [--shared=BOOL] [--memstatus=BOOL] [--seconds=S] [--width=DEGREES] [--seed=N]
 *
 * Each query is the mean number of passengers of the trips that began in an area, a stretch of a street: four constraints. A probe
 * stands around it.
 * Printed are a JSON line with the settings as SQLite tells them back, which need not be the ones asked for, then one fifty times a
 * second, {"at_s", "queries_per_s", "n"}, and at the end one with the results.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "perflaw.h"

#define QUERY 1 /* id of the probe */
#define MOST_THREADS 64
#define TICK_S 0.02
#define HEIGHT 1000 /* areas are that much longer than wide: the index helps with the width alone */

PERFLAW_PROBE(QUERY, "query", "queries");

static const char *SQL = "SELECT count(*), avg(passengers) FROM trips"
                         " WHERE pickup_lon BETWEEN ?1 AND ?2 AND pickup_lat BETWEEN ?3 AND ?4";

struct options {
    const char *file;
    int threads, shared, memstatus;
    long cache;
    double seconds, width;
    uint64_t seed;
};

/* One a thread, each on cache lines of its own: threads are to meet in SQLite and nowhere else. */
struct worker {
    _Alignas(128) atomic_long queries;
    atomic_long rows;
    const struct options *options;
    uint64_t random;
    pthread_t thread;
};

static struct worker workers[MOST_THREADS];
static atomic_int finished;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void die(sqlite3 *db) {
    fprintf(stderr, "query_trips: %s\n", sqlite3_errmsg(db));
    exit(1);
}

static long number(sqlite3 *db, const char *sql) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK || sqlite3_step(statement) != SQLITE_ROW)
        die(db);
    long value = (long)sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* A connection with the cache asked for; SQLite takes a negative cache_size as KiB. */
static sqlite3 *connect_to(const struct options *options) {
    sqlite3 *db;
    char pragma[64];
    int sharing = options->shared ? SQLITE_OPEN_SHAREDCACHE : SQLITE_OPEN_PRIVATECACHE;
    if (sqlite3_open_v2(options->file, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | sharing, NULL) != SQLITE_OK)
        die(db);
    snprintf(pragma, sizeof pragma, "PRAGMA cache_size=%ld", -(options->cache / 1024));
    if (sqlite3_exec(db, pragma, NULL, NULL, NULL) != SQLITE_OK)
        die(db);
    return db;
}

static double uniform(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

/* One query, prepared anew as most applications do it; returns the trips that it found. */
static long query(sqlite3 *db, double width, uint64_t *random) {
    sqlite3_stmt *statement;
    double lon = -74.02 + 0.08 * uniform(random), lat = 40.71 + 0.08 * uniform(random);
    double corners[] = {lon, lon + width, lat, lat + HEIGHT * width};
    if (sqlite3_prepare_v2(db, SQL, -1, &statement, NULL) != SQLITE_OK)
        die(db);
    for (int i = 0; i < 4; i++)
        sqlite3_bind_int64(statement, i + 1, (sqlite3_int64)(1e6 * corners[i]));
    if (sqlite3_step(statement) != SQLITE_ROW)
        die(db);
    long rows = (long)sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rows;
}

static void *work(void *argument) {
    struct worker *self = (struct worker *)argument;
    sqlite3 *db = connect_to(self->options);
    while (!atomic_load_explicit(&finished, memory_order_relaxed)) {
        TPT_PROBE_BEGIN(QUERY, 1);
        long rows = query(db, self->options->width, &self->random);
        TPT_PROBE_END(QUERY);
        atomic_fetch_add_explicit(&self->rows, rows, memory_order_relaxed);
        atomic_fetch_add_explicit(&self->queries, 1, memory_order_relaxed);
    }
    sqlite3_close(db);
    return NULL;
}

static long sum_of_queries(int threads) {
    long sum = 0;
    for (int i = 0; i < threads; i++)
        sum += atomic_load_explicit(&workers[i].queries, memory_order_relaxed);
    return sum;
}

/* Waits until the time is over and tells as often as that what was done; returns the time it really took. */
static double watch(const struct options *options) {
    double start = now(), before = start;
    long done = 0;
    while (now() - start < options->seconds) {
        struct timespec pause = {0, (long)(1e9 * TICK_S)};
        nanosleep(&pause, NULL);
        double at = now();
        long sum = sum_of_queries(options->threads), n = sum - done;
        printf("{\"at_s\": %.4f, \"queries_per_s\": %.6g, \"n\": %ld}\n", at - start, (double)n / (at - before), n);
        fflush(stdout);
        before = at, done = sum;
    }
    return now() - start;
}

/* Settings as SQLite has them, first of all, so that they are known where the run is ended early. A cache is shared where a connection pays for less than all of it. */
static void print_settings(const struct options *options, sqlite3 *db, sqlite3 *other) {
    int used = 0, share = 0, unused;
    number(other, "SELECT count(*) FROM sqlite_schema");
    sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_USED, &used, &unused, 0);
    sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_USED_SHARED, &share, &unused, 0);
    long page = number(db, "PRAGMA page_size"), cache = number(db, "PRAGMA cache_size");
    printf("{\"settings\": {\"page_size\": %ld, \"cache\": %ld, \"threads\": %d, \"shared\": %d, \"memstatus\": %d}", page,
           cache < 0 ? -cache * 1024 : cache * page, options->threads, share < used, sqlite3_memory_used() > 0);
    printf("}\n");
    fflush(stdout);
}

static void print_results(const struct options *options, double took) {
    struct rusage usage;
    long rows = 0, queries = sum_of_queries(options->threads);
    for (int i = 0; i < options->threads; i++)
        rows += atomic_load(&workers[i].rows);
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"result\": {\"queries_per_s\": %.6g, \"rows_per_s\": %.6g, \"queries\": %ld, \"seconds\": %.4f, ", (double)queries / took,
           (double)rows / took, queries, took);
    printf("\"voluntary_switches\": %ld, \"involuntary_switches\": %ld}}\n", usage.ru_nvcsw, usage.ru_nivcsw);
}

/* Into the kernel's cache: what is explored is SQLite's own, not how much of the file the disk has given lately. */
static void read_whole(const char *path) {
    static char part[1 << 16];
    FILE *file = fopen(path, "rb");
    while (file && fread(part, 1, sizeof part, file) == sizeof part)
        continue;
    if (file)
        fclose(file);
}

static int is(const char *argument, const char *name, const char **value) {
    size_t length = strlen(name);
    *value = argument + length;
    return strncmp(argument, name, length) == 0;
}

static int truth(const char *value) {
    return strcmp(value, "true") == 0 || atoi(value) != 0;
}

static void read_options(struct options *options, int argc, char **argv) {
    const char *value;
    for (int i = 1; i < argc; i++)
        if (is(argv[i], "--threads=", &value))
            options->threads = atoi(value);
        else if (is(argv[i], "--cache=", &value))
            options->cache = (long)atof(value);
        else if (is(argv[i], "--shared=", &value))
            options->shared = truth(value);
        else if (is(argv[i], "--memstatus=", &value))
            options->memstatus = truth(value);
        else if (is(argv[i], "--seconds=", &value))
            options->seconds = atof(value);
        else if (is(argv[i], "--width=", &value))
            options->width = atof(value);
        else if (is(argv[i], "--seed=", &value))
            options->seed = strtoull(value, NULL, 10);
        else if (argv[i][0] != '-')
            options->file = argv[i];
        else
            fprintf(stderr, "query_trips: unknown option %s\n", argv[i]), exit(2);
    if (!options->file || options->threads < 1 || options->threads > MOST_THREADS)
        fprintf(stderr, "usage: query_trips FILE [--threads=1..%d] ...\n", MOST_THREADS), exit(2);
}

int main(int argc, char **argv) {
    struct options options = {NULL, 1, 0, 1, 2 << 20, 0.6, 2e-6, 1};
    read_options(&options, argc, argv);
    sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, options.memstatus);
    read_whole(options.file);
    sqlite3 *first = connect_to(&options), *second = connect_to(&options);
    print_settings(&options, first, second);
    for (int i = 0; i < options.threads; i++) {
        workers[i].options = &options;
        workers[i].random = options.seed * 1000 + (uint64_t)i;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    double took = watch(&options);
    atomic_store(&finished, 1);
    print_results(&options, took);
    for (int i = 0; i < options.threads; i++)
        pthread_join(workers[i].thread, NULL);
    sqlite3_close(first);
    sqlite3_close(second);
    return 0;
}
