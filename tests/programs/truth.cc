// Functions whose law is known: those of Freud's validation (section 5) and their kin, as in truth.py, in C++.
// Usage: truth SEED [CALLS [NS]]. Costs are in units of NS nanoseconds. They move the recorder's fake clock, or with
// TRUTH=spin in the environment they are CPU time spent spinning. With TRUTH_DOUBLED=1 every cost is a call more.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

extern "C" __attribute__((weak)) void perflaw_advance(long long ns);

#define CALLED __attribute__((noinline))

static std::mt19937 chance;
static double unit = 1000;
static bool spinning, doubled;
static volatile double kept;
int size; // what `of_global` depends on

static long long cpu_ns() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

CALLED void logged(double cost) { kept = cost; }

CALLED void spend(double cost) {
    if (doubled) logged(cost);
    long long ns = std::max(1ll, std::llround(cost * unit));
    if (!spinning) {
        if (perflaw_advance) perflaw_advance(ns);
        return;
    }
    for (long long end = cpu_ns() + ns; cpu_ns() < end;) {}
}

static int drawn(int least, int most) { return std::uniform_int_distribution<int>(least, most)(chance); }
static double uniform() { return std::uniform_real_distribution<double>(0, 1)(chance); }

enum Mode { FLAT, LINEAR, SQUARE };
struct Pair { int useless, used; };
struct Extent { long width, height; };
class Private {
    int amount;
public:
    explicit Private(int amount) : amount(amount) {}
    void private_field();
};
struct This {
    int amount;
    void field_of_this();
};
struct Rising {
    int width;
    explicit Rising(int width) : width(width) {}
    virtual int getter() const { return width; }
    virtual double cost(int f) const { return f; }
    virtual ~Rising() = default;
};
struct Falling : Rising {
    using Rising::Rising;
    double cost(int f) const override { return 2000 - f; }
};

CALLED void Private::private_field() { spend(150.0 * amount); }
CALLED void This::field_of_this() { spend(87.0 * amount); }
CALLED void linear_int(int t) { spend(250.0 * t); }
CALLED void linear_pointer(const int *count) { spend(250.0 * *count); }
CALLED void linear_float(double x) { spend(250 * x); }
CALLED void quadratic(int t) { spend(1.0 * t * t); }
CALLED void n_log_n(int n) { spend(n * std::ceil(std::log2(n))); }
CALLED void quadratic_noisy(int t) { spend(1.0 * t * t + 100 * t * uniform()); }
CALLED void string_length(const char *s) { spend(100.0 * std::strlen(s)); }
CALLED void struct_field(const Pair *pair) { spend(150.0 * pair->used); }
CALLED void struct_by_value(Extent extent) { spend(150.0 * extent.width); }
CALLED void two_branches(int a, int b, int c) {
    if (a > 10)
        spend(1.0 * b * b);
    else
        spend(450.0 * c);
}
CALLED void one_feature(int a) {
    if (a < 10)
        spend(400.0 * (10 - a));
    else
        spend(4000 + 400.0 * (a - 10));
}
CALLED void of_enum(Mode mode, int a) { spend(mode == FLAT ? 100000 : mode == LINEAR ? 100.0 * a : 1.0 * a * a); }
CALLED void of_global() { spend(70.0 * size); }
CALLED void few_elements(const std::vector<int> &values) {
    int few = 0;
    for (int value : values) {
        if (value < 7)
            few++;
        else
            kept = value;
    }
    spend(100.0 * few);
}
CALLED void three_modes(int) {
    double draw = uniform();
    spend(draw < 0.3 ? 900 : draw < 0.7 ? 600 : 300);
}
CALLED void product(int a, int b) { spend(1.0 * a * b * b); }
CALLED void mixed(int a) {
    double kind = uniform();
    spend(kind < 0.25 ? 10000 + 1500 * uniform() : kind < 0.5 ? 100 * uniform() : 1000.0 * a);
}
CALLED void vector_size(const std::vector<int> &vector) { spend(250.0 * vector.size()); }
CALLED void array_sum(const int (&array)[2][10]) {
    int sum = 0;
    for (auto &row : array)
        for (int cell : row) sum += cell;
    spend(sum);
}
CALLED void virtual_method(const Rising *shape, int f) { spend(shape->cost(f)); }
CALLED void virtual_getter(const Rising *shape) { spend(250.0 * shape->getter()); }

static void call_all() {
    int large = spinning ? 200 : 2000; // sizes whose squares are costs: spinning takes real time
    int t = drawn(1, 200), a = drawn(1, 200), b = drawn(1, 200), c = drawn(1, 200);
    Pair pair = {a, b};
    linear_int(t);
    linear_pointer(&a);
    linear_float(1 + 99 * uniform());
    quadratic(t);
    n_log_n(drawn(2, 2000));
    quadratic_noisy(drawn(1, large));
    string_length(std::string(b, 's').c_str());
    struct_field(&pair);
    Private(c).private_field();
    This{a}.field_of_this();
    struct_by_value({b, c});
    two_branches(drawn(0, 30), b, c);
    one_feature(drawn(0, 20));
    of_enum(Mode(drawn(0, 2)), drawn(1, large / 2));
    size = c;
    of_global();
    std::vector<int> values(drawn(0, 40));
    for (int &value : values) value = drawn(0, 20);
    few_elements(values);
    three_modes(a);
    if (spinning)
        product(a % 20 + 1, b % 20 + 1);
    else
        product(a, b);
    mixed(drawn(1, large / 2));
    vector_size(std::vector<int>(c));
    int array[2][10];
    for (auto &row : array)
        for (int &cell : row) cell = drawn(0, 1000);
    array_sum(array);
    Rising rising(a), other(b);
    Falling falling(a), another(b);
    virtual_method(drawn(0, 1) ? &rising : &falling, drawn(1, 1999));
    virtual_getter(drawn(0, 1) ? &other : &another);
}

int main(int count, char **words) {
    const char *way = std::getenv("TRUTH"), *twice = std::getenv("TRUTH_DOUBLED");
    spinning = way && !std::strcmp(way, "spin");
    doubled = twice && *twice == '1';
    chance.seed(count > 1 ? std::atoi(words[1]) : 1);
    if (count > 3) unit = std::atof(words[3]);
    for (int left = count > 2 ? std::atoi(words[2]) : 200; left; left--) call_all();
    return 0;
}
