// Exceptions over recorded calls, of C++. Prints what was caught.
#include <cstdio>
#include <stdexcept>

#define APART __attribute__((noinline))
static volatile long done;

struct Guard {
    ~Guard() { done = done + 1; }
};

APART void leaf() { done = done + 1; }

APART int thrower(int n) {
    Guard guard;
    if (n % 3 == 0) throw std::runtime_error("three");
    leaf();
    return n;
}

template <class T> APART T middle(T n) { return static_cast<T>(thrower(static_cast<int>(n))) + 1; }

namespace app {
struct Catcher {
    int caught = 0;
    APART void try_one(int n) {
        try {
            middle(n);
        } catch (const std::exception &) {
            caught++;
            leaf();
        }
    }
};
}  // namespace app

int main() {
    app::Catcher catcher;
    for (int n = 0; n < 30; n++) catcher.try_one(n);
    std::printf("%d\n", catcher.caught);
}
