// What injected code must not change: registers, floating-point and vector arguments and results, the stack that exceptions,
// backtraces and cancelled threads walk, libraries that are loaded and unloaded. Usage: injected PLUG_IN
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <dlfcn.h>
#include <execinfo.h>
#include <map>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#define APART extern "C" __attribute__((noinline))

static volatile int sink;

struct Guarded {
    std::vector<int> numbers;
    std::string text;
    std::map<int, int> places;
    ~Guarded() { sink = 7; }
};

APART int thrower(Guarded &, int at) {
    sink = at;
    if (at % 3 == 0) throw std::runtime_error("planned");
    return at * 2;
}
APART int outer(Guarded &guarded, int at) {
    Guarded other;
    int result = thrower(guarded, at);
    return result + 1;
}
APART int catcher(Guarded &guarded, int at) {
    try {
        return outer(guarded, at);
    } catch (std::exception &) {
        return -1;
    }
}
APART int rethrower(Guarded &guarded, int at) {
    try {
        return outer(guarded, at);
    } catch (...) {
        if (at % 2) throw;
        return -1;
    }
}
APART double floating(double a, double b, int depth) { return depth ? a + floating(b, a, depth - 1) * 0.5 : b; }
APART long double extended(long double a, int depth) { return depth ? a + extended(a, depth - 1) : a; }
struct Pair {
    long whole;
    double part;
};
APART Pair pair(long whole, double part, int depth) {
    if (!depth) return {whole, part};
    Pair inner = pair(whole, part, depth - 1);
    return {inner.whole + 1, inner.part * 2};
}
#pragma GCC push_options
#pragma GCC target("avx")
typedef double Wide __attribute__((vector_size(32)));
APART Wide wide(Wide a, Wide b, int depth) { return depth ? a + wide(b, a, depth - 1) : b; }
APART double wide_sum(int depth) {
    Wide sum = wide(Wide{4, 3, 2, 1}, Wide{8, 7, 6, 5}, depth);
    return sum[0] + 10 * sum[1] + 100 * sum[2] + 1000 * sum[3];
}
#pragma GCC pop_options
static jmp_buf back;
APART void jumper(int depth) {
    if (!depth) longjmp(back, 1);
    jumper(depth - 1);
    sink = depth;
}
APART int lander(int depth) {
    if (setjmp(back)) return depth;
    jumper(depth);
    return -1;
}
APART int frames(int depth) {
    void *places[64];
    if (!depth) return backtrace(places, 64);
    int found = frames(depth - 1);
    sink = found;
    return found;
}
static std::atomic<int> cleaned;
struct Cleaned {
    ~Cleaned() { cleaned++; }
};
APART void waiting(int depth) {
    Cleaned here;
    if (!depth) pause();
    waiting(depth - 1);
    sink = depth;
}
static void *cancelled(void *) {
    waiting(4);
    return nullptr;
}
APART void leaving(int depth) {
    Cleaned here;
    if (!depth) pthread_exit(nullptr);
    leaving(depth - 1);
    sink = depth;
}
static void *left(void *) {
    leaving(4);
    return nullptr;
}

static void work(int number, int avx) {
    Guarded guarded;
    guarded.text = "kept";
    long wrong = 0;
    double sum = 0;
    long double long_sum = 0;
    for (int at = 0; at < 400; at++) {
        int result = catcher(guarded, at), expected = at % 3 == 0 ? -1 : 2 * at + 1;
        wrong += result != expected;
        try {
            wrong += rethrower(guarded, at) != expected;
        } catch (std::exception &) {
            wrong += at % 3 || at % 2 == 0;
        }
        sum += floating(at, 1, at % 10) + (avx ? wide_sum(at % 5) : 0);
        long_sum += extended(at, at % 7);
        Pair made = pair(at, 0.5, at % 6);
        sum += made.whole + made.part;
        if (!number) wrong += lander(at % 20) != at % 20;
    }
    wrong += guarded.text != "kept";
    printf("%ld wrong, %f %Lf\n", wrong, sum, long_sum);
}

int main(int, char **words) {
    int avx = __builtin_cpu_supports("avx");
    work(0, avx);
    for (int at = 0; at < 3; at++) std::thread(work, 1 + at, avx).join();
    printf("%d\n", frames(6) >= 7);
    for (int at = 0; at < 3; at++) {
        pthread_t first, second;
        pthread_create(&first, nullptr, cancelled, nullptr);
        pthread_create(&second, nullptr, left, nullptr);
        pthread_cancel(first);
        pthread_join(first, nullptr);
        pthread_join(second, nullptr);
    }
    printf("%d or fewer cleaned: %d\n", 30, cleaned <= 30 && cleaned >= 15);
    for (int at = 0; at < 20; at++) {
        void *library = dlopen(words[1], RTLD_NOW);
        auto *function = (int (*)(int))dlsym(library, "plug_in");
        printf("%d\n", function(at));
        dlclose(library);
    }
}
