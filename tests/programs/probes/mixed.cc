// Templates, inline functions, lambdas, static objects, exceptions; one probe is also in mixed.c.
#include <perflaw.h>
#include <thread>
#include <vector>

extern "C" int from_c(int value);

template <class Number> static Number timed(Number value) {
    LAT_PROBE_BEGIN(40, 1);
    value += 1;
    LAT_PROBE_END(40);
    return value;
}
static inline int twice(int value) {
    CNT_PROBE_BEGIN(41, 2);
    value *= 2;
    CNT_PROBE_END(41);
    return value;
}
struct Late {
    int kept = 1;
    ~Late() { SNAPSHOT_PROBE(42, 1, kept); }
};
static Late late;
static int early() {
    SNAPSHOT_PROBE(43, 1, 5);
    return 1;
}
static const int begun = early();
constexpr int VALUES = 44;
enum class Kind { thrown = 46 };

static void work() {
    thread_local Late mine;
    for (int at = 0; at < 10; at++) timed(at * mine.kept), timed(1.5), twice(at), from_c(at);
}

int main() {
    std::vector<std::thread> threads;
    for (int at = 0; at < 4; at++) threads.emplace_back(work);
    for (auto &one : threads) one.join();
    SNAPSHOT_PROBE(VALUES, 1, -1, 2.9, true, 'a', begun);
    try {
        FLT_PROBE_BEGIN(45, 1);
        if (begun) throw 1;
        FLT_PROBE_END(45);
    } catch (int) {
        SNAPSHOT_PROBE(static_cast<int>(Kind::thrown), 1, &late != nullptr);
    }
    auto each = [](auto value) {
        TPT_PROBE_BEGIN(47, 1);
        value++;
        TPT_PROBE_END(47);
        return value;
    };
    each(1), each(2.0);
    return 0;
}
