/* A long function whose time is that of a leaf far below 1 us, beside a long leaf. Usage: grinder CALLS. */
#include <stdlib.h>

volatile unsigned sum;

__attribute__((noinline)) void step(unsigned i) {
    for (unsigned turn = 0; turn < 30; turn++) sum += i * turn;
}

__attribute__((noinline)) void grind(unsigned n) {
    for (unsigned i = 0; i < n; i++) step(i);
}

__attribute__((noinline)) void polish(unsigned n) {
    for (unsigned i = 0; i < n; i++) sum ^= i;
}

int main(int count, char **words) {
    for (long at = atol(words[count - 1]); at; at--) {
        grind(1500);
        polish(30000);
    }
    return 0;
}
