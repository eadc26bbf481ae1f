/*
 * Makes the table that query_trips reads: taxi trips in the shape of New York's, as many as asked for, the same ones for the same seed.
 *
 *     make_trips FILE ROWS SEED [PAGE_SIZE]
 *
 * Rows lie in the order of time, as they do where trips are recorded; the index is by longitude. So the rows of a small area
 * are spread over the whole table, and what a query costs depends on how many pages stay cached and how large they are.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MICRO 1000000.0 /* coordinates are whole micro-degrees: 4 bytes a number */

static const char *SCHEMA =
    "CREATE TABLE trips(id INTEGER PRIMARY KEY, pickup_at INTEGER, seconds INTEGER, passengers INTEGER, metres INTEGER,"
    " pickup_lon INTEGER, pickup_lat INTEGER, dropoff_lon INTEGER, dropoff_lat INTEGER, fare_cents INTEGER);";

static void check(int status, int wanted, sqlite3 *db) {
    if (status != wanted) {
        fprintf(stderr, "make_trips: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
}

static void run(sqlite3 *db, const char *sql) {
    check(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, db);
}

/* splitmix64: a few lines, the same everywhere. */
static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state) {
    return (double)((next(state) >> 11) + 1) / 9007199254740993.0;
}

static double normal(uint64_t *state) {
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(2 * M_PI * uniform(state));
}

/* Where a trip begins or ends: mostly Manhattan, the rest around the city and its airports. */
static void place(uint64_t *state, int64_t *lon, int64_t *lat) {
    double spread = uniform(state) < 0.85 ? 0.015 : 0.06;
    *lon = (int64_t)(MICRO * (-73.98 + spread * normal(state)));
    *lat = (int64_t)(MICRO * (40.75 + spread * normal(state)));
}

static int64_t passengers(uint64_t *state) {
    double u = uniform(state);
    return u < 0.7 ? 1 : u < 0.84 ? 2 : u < 0.88 ? 3 : u < 0.9 ? 4 : u < 0.96 ? 5 : 6;
}

static void trip(sqlite3_stmt *insert, int64_t number, uint64_t *state) {
    int64_t values[9], from_lon, from_lat, to_lon, to_lat;
    place(state, &from_lon, &from_lat);
    place(state, &to_lon, &to_lat);
    double metres = 300 + 1.3 * hypot(0.085 * (double)(to_lon - from_lon), 0.111 * (double)(to_lat - from_lat));
    double seconds = 60 + metres / (3 + 6 * uniform(state));
    values[0] = 1357000000 + number * 2;
    values[1] = (int64_t)seconds;
    values[2] = passengers(state);
    values[3] = (int64_t)metres;
    values[4] = from_lon;
    values[5] = from_lat;
    values[6] = to_lon;
    values[7] = to_lat;
    values[8] = (int64_t)(250 + 0.155 * metres + 0.8 * seconds);
    for (int i = 0; i < 9; i++)
        sqlite3_bind_int64(insert, i + 1, values[i]);
}

static void fill(sqlite3 *db, int64_t rows, uint64_t seed) {
    sqlite3_stmt *insert;
    const char *sql = "INSERT INTO trips VALUES(NULL,?,?,?,?,?,?,?,?,?)";
    check(sqlite3_prepare_v2(db, sql, -1, &insert, NULL), SQLITE_OK, db);
    for (int64_t number = 0; number < rows; number++) {
        trip(insert, number, &seed);
        check(sqlite3_step(insert), SQLITE_DONE, db);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: make_trips FILE ROWS SEED [PAGE_SIZE]\n");
        return 2;
    }
    sqlite3 *db;
    char pragma[64];
    check(sqlite3_open(argv[1], &db), SQLITE_OK, db);
    snprintf(pragma, sizeof pragma, "PRAGMA page_size=%d", argc > 4 ? atoi(argv[4]) : 4096);
    run(db, pragma);
    run(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;");
    run(db, SCHEMA);
    fill(db, atoll(argv[2]), strtoull(argv[3], NULL, 10));
    run(db, "CREATE INDEX by_longitude ON trips(pickup_lon); COMMIT; ANALYZE;");
    sqlite3_close(db);
    return 0;
}
