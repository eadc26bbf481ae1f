/*
 * The kernel whose compiler flags are explored: bodies that attract each other, and the steps of a wave on a grid. Both are loops
 * over floating-point numbers, so they gain from other flags than each other: square roots and divisions there, memory and
 * vectors here. Prints one JSON line with the time of each and whether the energies and sums are right.
 *
 *     kernel [SECONDS]      with readings every tenth of a second or so: {"at_s", "seconds"}
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BODIES 300
#define SIDE 512
#define STEPS 100
#define SPEEDS 4.20086688 /* what the bodies come to */
#define SUM 118666.94     /* and the waves */
#define TOLERANCE 1e-4    /* flags may round otherwise, not compute something else */

static double x[BODIES], y[BODIES], z[BODIES], vx[BODIES], vy[BODIES], vz[BODIES];
static float waves[3][SIDE][SIDE];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void set_bodies(void) {
    for (int i = 0; i < BODIES; i++) {
        x[i] = sin(i * 1.1), y[i] = cos(i * 1.7), z[i] = sin(i * 2.3);
        vx[i] = vy[i] = vz[i] = 0;
    }
}

static void move_bodies(double dt) {
    for (int i = 0; i < BODIES; i++) {
        double ax = 0, ay = 0, az = 0;
        for (int j = 0; j < BODIES; j++) {
            double dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            double square = dx * dx + dy * dy + dz * dz + 0.01;
            double pull = 1 / (square * sqrt(square));
            ax += dx * pull, ay += dy * pull, az += dz * pull;
        }
        vx[i] += dt * ax, vy[i] += dt * ay, vz[i] += dt * az;
    }
    for (int i = 0; i < BODIES; i++)
        x[i] += dt * vx[i], y[i] += dt * vy[i], z[i] += dt * vz[i];
}

/* Sum of speeds squared after a few steps. */
static double bodies(int steps) {
    double sum = 0;
    set_bodies();
    for (int step = 0; step < steps; step++)
        move_bodies(1e-5);
    for (int i = 0; i < BODIES; i++)
        sum += vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i];
    return sum;
}

static void set_waves(void) {
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            waves[0][i][j] = waves[1][i][j] = (float)((i * 7 + j * 13) % 101) / 101.0f;
}

/* Sum over the grid after a few steps of the wave equation. */
static double wave(int steps) {
    double sum = 0;
    set_waves();
    for (int step = 0; step < steps; step++) {
        float(*before)[SIDE] = waves[step % 3], (*here)[SIDE] = waves[(step + 1) % 3], (*after)[SIDE] = waves[(step + 2) % 3];
        for (int i = 1; i < SIDE - 1; i++)
            for (int j = 1; j < SIDE - 1; j++)
                after[i][j] = 2 * here[i][j] - before[i][j] +
                              0.1f * (here[i - 1][j] + here[i + 1][j] + here[i][j - 1] + here[i][j + 1] - 4 * here[i][j]);
    }
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            sum += waves[(steps + 1) % 3][i][j];
    return sum;
}

static int is_right(double found, double wanted) {
    return fabs(found - wanted) <= TOLERANCE * fabs(wanted);
}

/* Both loops once; returns whether they computed what they should. */
static int run(double *bodies_s, double *wave_s) {
    double start = now(), speeds = bodies(STEPS);
    double between = now(), sum = wave(STEPS);
    *bodies_s = between - start;
    *wave_s = now() - between;
    return is_right(speeds, SPEEDS) && is_right(sum, SUM);
}

/* Repeats them for as long as asked and tells the shortest time of each, which others on the machine disturbed least. */
int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 0.5, begin = now(), best_bodies = 1e9, best_wave = 1e9;
    int right = 1, n = 0;
    do {
        double bodies_s, wave_s;
        right &= run(&bodies_s, &wave_s);
        best_bodies = fmin(best_bodies, bodies_s);
        best_wave = fmin(best_wave, wave_s);
        printf("{\"at_s\": %.4f, \"seconds\": %.6f}\n", now() - begin, bodies_s + wave_s);
        fflush(stdout);
        n++;
    } while (now() - begin < seconds);
    printf("{\"result\": {\"seconds\": %.6f, \"bodies_s\": %.6f, \"wave_s\": %.6f, \"n\": %d, \"right\": %s}}\n", best_bodies + best_wave,
           best_bodies, best_wave, n, right ? "true" : "false");
    return right ? 0 : 1;
}
