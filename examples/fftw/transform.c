/*
 * Transforms of a complex signal by FFTW: what planning well costs, and what it is worth.
 *
 *     transform [--plan=estimate|measure|patient] [--threads=N] [--size=N] [--aligned=BOOL] [--in-place=BOOL] [--seconds=S]
 *
 * Printed are a JSON line every tenth of a second, {"at_s", "points_per_s", "n"}, and at the end one with the results: the
 * time of planning stands beside the rate, because who plans patiently must transform often to get it back.
 */
#include <complex.h>
#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_S 0.1
#define PATIENCE_S 2.0 /* of planning: FFTW then takes the best plan that it found */

struct options {
    const char *plan;
    int threads, size, aligned, in_place;
    double seconds;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int is(const char *argument, const char *name, const char **value) {
    size_t length = strlen(name);
    *value = argument + length;
    return strncmp(argument, name, length) == 0;
}

static int truth(const char *value) {
    return strcmp(value, "true") == 0 || atoi(value) != 0;
}

static int read_options(struct options *options, int argc, char **argv) {
    const char *value;
    for (int i = 1; i < argc; i++)
        if (is(argv[i], "--plan=", &value))
            options->plan = value;
        else if (is(argv[i], "--threads=", &value))
            options->threads = atoi(value);
        else if (is(argv[i], "--size=", &value))
            options->size = (int)atof(value);
        else if (is(argv[i], "--aligned=", &value))
            options->aligned = truth(value);
        else if (is(argv[i], "--in-place=", &value))
            options->in_place = truth(value);
        else if (is(argv[i], "--seconds=", &value))
            options->seconds = atof(value);
        else
            return 0;
    return options->size > 0 && options->threads > 0;
}

/* FFTW's flags; planning as a measure overwrites the arrays, so they are filled afterwards. */
static unsigned flags(const struct options *options) {
    unsigned effort = strcmp(options->plan, "patient") == 0   ? FFTW_PATIENT
                      : strcmp(options->plan, "measure") == 0 ? FFTW_MEASURE
                                                              : FFTW_ESTIMATE;
    return effort | (options->aligned ? 0 : FFTW_UNALIGNED);
}

static void fill(fftw_complex *in, int size) {
    for (int i = 0; i < size; i++)
        in[i] = sin(0.3 * i) + 0.5 * cos(1.7 * i) * I;
}

static void tell(double at_s, double points_per_s, long n) {
    printf("{\"at_s\": %.4f, \"points_per_s\": %.6g, \"n\": %ld}\n", at_s, points_per_s, n);
    fflush(stdout);
}

/* Repeats the plan for as long as asked; returns how often. The signal shrinks back each time, so that it stays finite in place. */
static long transform(const struct options *options, fftw_plan plan, fftw_complex *in, double *took) {
    double start = now(), before = start, at = start;
    long n = 0, told = 0;
    while (at - start < options->seconds) {
        fftw_execute(plan);
        n++;
        if (options->in_place && n % 16 == 0)
            fill(in, options->size);
        at = now();
        if (at - before >= TICK_S) {
            tell(at - start, (double)(n - told) / (at - before) * options->size, n - told);
            before = at, told = n;
        }
    }
    *took = at - start;
    return n;
}

int main(int argc, char **argv) {
    struct options options = {"estimate", 1, 65536, 1, 0, 0.5};
    if (!read_options(&options, argc, argv)) {
        fprintf(stderr, "usage: transform [--plan=estimate|measure|patient] [--threads=N] [--size=N] ...\n");
        return 2;
    }
    fftw_init_threads();
    fftw_plan_with_nthreads(options.threads);
    fftw_set_timelimit(PATIENCE_S);
    fftw_complex *in = fftw_alloc_complex((size_t)options.size + 1);
    fftw_complex *out = options.in_place ? in : fftw_alloc_complex((size_t)options.size + 1);
    double start = now(), took;
    fftw_plan plan = fftw_plan_dft_1d(options.size, in, out, FFTW_FORWARD, flags(&options));
    double planning = now() - start;
    fill(in, options.size);
    long n = transform(&options, plan, in, &took);
    printf("{\"result\": {\"transforms_per_s\": %.6g, \"points_per_s\": %.6g, \"plan_s\": %.6f, \"transforms\": %ld}, ", (double)n / took,
           (double)n * options.size / took, planning, n);
    printf("\"settings\": {\"plan\": \"%s\", \"threads\": %d, \"size\": %d, \"aligned\": %d, \"in_place\": %d}}\n", options.plan,
           options.threads, options.size, options.aligned, in == out);
    return 0;
}
