// Threads that recurse, throw and jump, and check every result, until standard input ends. For each line of it, prints the
// rounds done and the CPU time so far in ns; at the end, what was wrong. Usage: busy THREADS
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

#define APART extern "C" __attribute__((noinline))

static std::atomic<bool> over;
static std::atomic<long> rounds, wrong;
static thread_local jmp_buf back;

APART long fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
APART long thrower(int n) {
    if (n % 2) throw std::runtime_error("planned");
    return n;
}
APART long catcher(int n) {
    try {
        return thrower(n) + 1;
    } catch (std::exception &) {
        return -n;
    }
}
APART void jumper(int depth) {
    if (!depth) longjmp(back, 1);
    jumper(depth - 1);
    wrong++; /* nothing returns to here */
}
APART long lander(int depth) {
    if (setjmp(back)) return depth;
    jumper(depth);
    return -1;
}
APART double floating(double a, int depth) {
    return depth ? a + floating(a, depth - 1) * 0.5 : a;
}
APART void work() {
    for (int at = 0; !over; at++) {
        wrong += fibonacci(10) != 55;
        wrong += catcher(at) != (at % 2 ? -at : at + 1);
        wrong += lander(at % 9) != at % 9;
        wrong += floating(1.0, 2) != 1.75;
        rounds++;
    }
}

int main(int, char **words) {
    std::vector<std::thread> threads;
    for (int at = 0; at < atoi(words[1]); at++) threads.emplace_back(work);
    puts("ready");
    fflush(stdout);
    char text[64];
    while (read(0, text, sizeof text) > 0) {
        timespec used;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        printf("%ld %ld\n", rounds.load(), used.tv_sec * 1000000000 + used.tv_nsec);
        fflush(stdout);
    }
    over = true;
    for (std::thread &thread : threads) thread.join();
    printf("%ld wrong\n", wrong.load());
}
