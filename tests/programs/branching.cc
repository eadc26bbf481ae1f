/* Functions of which it is known how often each branch goes which way: `./branching CALLS`. A test finds the branches by
 * what stands behind two slashes on their lines. */
#include <cstdlib>
#include <stdexcept>

extern "C" __attribute__((weak)) void perflaw_advance(long long ns);

#define APART __attribute__((noinline))

static unsigned state = 1;
static volatile long sink;

static unsigned drawn(unsigned below) { return (state = state * 1664525u + 1013904223u) / 256 % below; }

APART void work(long ns) {
    sink = sink + ns;
    if (perflaw_advance) perflaw_advance((long long)((double)ns * (0.97 + 0.06 * drawn(1000) / 1000)));
}

/* Which way it goes is known from none of its arguments. */
APART void serve(int items) {
    static unsigned calls;
    if (++calls * 2654435761u >> 31) {        // hidden
        work(500 + 20 * items);               // fast
    } else {
        for (int at = 0; at < items; at++) {  // rounds
            work(90 + 3 * items);             // slow
        }
    }
}  // end

APART void idle() { sink = sink + 1; }

APART void loops(int count) {
    for (int at = 0; at < count; at++) {  // loop
        if (at % 3 == 0 &&                // first
            at % 2 == 0)                  // second
            work(1);                      // both
        else
            idle();                       // other
    }
}  // closing

APART void chooses(int which) {
    switch (which) {          // switch
    case 0: work(10); break;  // case 0
    case 1: work(20); break;  // case 1
    case 2: work(30);         // case 2
    case 3: work(40); break;  // case 3
    case 4: work(50); break;  // case 4
    case 5: work(60); break;  // case 5
    default: work(70);        // default
    }
}

APART void recurses(int depth) {
    if (depth > 0)            // deeper
        recurses(depth - 1);  // again
    work(depth);              // back
}

APART void throws(int which) {
    if (which % 2) throw std::runtime_error("odd");
    work(1);
}

APART void catches(int which) {
    try {
        throws(which);
    } catch (const std::exception &) {
        work(2);
    }
    if (which > 3)  // above
        work(3);    // yes
    else
        idle();     // no
}

APART void plain(int ns) { work(ns); }

int main(int count, char **words) {
    for (int call = 0, calls = count > 1 ? atoi(words[1]) : 10; call < calls; call++) {
        serve(20 + (int)drawn(1000));
        loops(call);
        chooses(call % 8);
        recurses(call % 5);
        catches(call % 8);
        plain(call);
    }
    return 0;
}
