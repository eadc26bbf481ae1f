/* A function of two durations by two call paths; advances the recorder's fake clock. Usage: paths CALLS TRUTH: a line a call. */
#include <stdio.h>
#include <stdlib.h>

#define PLAIN __attribute__((no_instrument_function))
__attribute__((weak)) void perflaw_advance(long long ns);

static FILE *truth;
static unsigned state = 1;
PLAIN static unsigned draw(unsigned most) { return (state = state * 1664525u + 1013904223u) >> 8 & (most - 1); }

void lookup(const char *by, unsigned hits) {
    long long took = draw(1024) < hits ? 900 + draw(256) : 70000 + draw(32768);
    perflaw_advance(took);
    fprintf(truth, "%s %lld\n", by, took);
}

void page(void) { lookup("page", 900); }
void report(void) {
    perflaw_advance(500);
    lookup("report", 100);
}

int main(int count, char **words) {
    truth = fopen(words[count - 1], "w");
    for (long at = atol(words[1]); at; at--) draw(4) ? page() : report();
    return fclose(truth);
}
