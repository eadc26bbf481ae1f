/* Listing 1 of the paper as a full factorial of 16 invocations, as in listing1.py; advances the recorder's fake clock. */
#include <stddef.h>

__attribute__((weak)) void perflaw_advance(long long ns);
static void __attribute__((no_instrument_function)) advance(long long ns) {
    if (perflaw_advance) perflaw_advance(ns);
}

static char variant;

void a1(int ns) { advance(ns); }
void a2(void) { advance(2); }
void g1(int slow) {
    a1(slow ? 27 : 7);
    advance(1);
    a2();
}
void g2(void) { advance(24); }
void g3(void) { advance(5); }
void g4(void) { advance(variant == 'C' ? 12 : 6); }
void g5(void) { advance(6); }

void f(int slow, int called, int r, int t) {
    advance(4);
    g1(slow);
    if (called) g2();
    for (int i = 0; i < r; i++) {
        g3();
        advance(1);
        if (t >= 0) g4();
        else g5();
    }
}

int main(int count, char **words) {
    variant = count > 1 ? words[1][0] : 'A';
    for (int at = 0; at < 16; at++) f(at >> 3 & 1, at >> 2 & 1, variant == 'A' ? 3 : at & 2 ? 4 : 2, at & 1 ? -1 : 1);
}
