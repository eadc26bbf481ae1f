// An exception leaves a function of a small frame; what cleans up after it, and what follows its handler, has a large one.
#include <cstdio>

#define APART __attribute__((noinline))
static volatile long done;

APART void fill(volatile char *room, int size) {
    for (int at = 0; at < size; at += 64) room[at] = 1;
    done = done + 1;
}

struct Large {
    APART ~Large() {
        volatile char room[4096];
        fill(room, sizeof room);
    }
};

APART void thrower() { throw 1; }

APART void holder() {
    Large large;
    thrower();
    done = done + 1;
}

APART void deep() {
    volatile char room[8192];
    fill(room, sizeof room);
}

APART void catcher() {
    try {
        holder();
    } catch (int) {
        deep();
    }
}

int main() {
    for (int at = 0; at < 5; at++) catcher();
    std::printf("%ld\n", done);
}
