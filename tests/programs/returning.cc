/* Functions whose cost depends on what they return: `./returning CALLS`. The fake clock is advanced by what a call costs. */
#include <cstdlib>
#include <string>
#include <vector>

extern "C" __attribute__((weak)) void perflaw_advance(long long ns);

#define APART __attribute__((noinline))

static unsigned state = 1;

static unsigned drawn(unsigned below) { return (state = state * 1664525u + 1013904223u) / 256 % below; }

static void spend(double ns) {
    if (perflaw_advance) perflaw_advance((long long)(ns * (0.97 + 0.06 * drawn(1000) / 1000)));
}

struct Found {
    int key, hits;
};
static Found found;

APART int number() {
    int hits = 10 + (int)drawn(1000);
    spend(500 + 30.0 * hits);
    return hits;
}
APART double share() {
    double part = 1 + drawn(1000) / 8.0;
    spend(40 * part * part);
    return part;
}
APART const Found *object() {
    found = Found{(int)drawn(100), 10 + (int)drawn(1000)};
    spend(700 + 20.0 * found.hits);
    return &found;
}
APART std::vector<int> items() {
    std::vector<int> made(10 + drawn(1000));
    spend(900 + 50.0 * (double)made.size());
    return made;
}
APART bool nothing(int left) { return left % 2; }

int main(int count, char **words) {
    long sum = 0;
    for (int left = count > 1 ? atoi(words[1]) : 10; left; left--)
        sum += number() + (long)share() + object()->hits + (long)items().size() + nothing(left);
    return sum == 1;
}
