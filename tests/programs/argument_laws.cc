/* Functions whose cost is known and depends on what their arguments are: `./argument_laws CALLS`. Sizes are drawn at random,
 * each of its own, and the fake clock is advanced by what a call costs, give or take 3 %. */
#include <cstdlib>
#include <string>
#include <vector>

extern "C" __attribute__((weak)) void perflaw_advance(long long ns);

#define PLAIN __attribute__((no_instrument_function))
#define APART __attribute__((noinline))

static unsigned state = 1;
static long sink;
int level; /* read by its function, set by main */

PLAIN static unsigned drawn(unsigned below) { return (state = state * 1664525u + 1013904223u) / 256 % below; }

PLAIN static void spend(double ns) {
    if (perflaw_advance) perflaw_advance((long long)(ns * (0.97 + 0.06 * drawn(1000) / 1000)));
}

struct Grid {
    int colour, width;
    double scale;
};

struct Shape {
    int sides = 10 + (int)drawn(1000);
    PLAIN virtual ~Shape() = default;
};
struct Mesh : Shape {
    PLAIN ~Mesh() override = default;
};

APART void of_type(const Shape *shape) { spend(dynamic_cast<const Mesh *>(shape) ? 3000 + 40.0 * shape->sides : 800); }
APART void of_structure(const Grid *grid) { spend(2000 + 40.0 * grid->width); }
APART void of_pointer(const int *count) { spend(3.0 * *count * *count); }
APART void of_vector(const std::vector<int> &items) { spend(1000 + 25.0 * (double)items.size()); }
APART void of_string(const std::string &name) { spend(0.5 * (double)(name.size() * name.size())); }
APART void of_text(const char *text) {
    long length = 0;
    while (text[length]) length++;
    spend(700 + 15.0 * (double)length);
}
APART void of_global() { spend(2.0 * level * level); }

PLAIN int main(int count, char **words) {
    for (long left = count > 1 ? atol(words[1]) : 10; left; left--) {
        Grid grid = {(int)drawn(16), 10 + (int)drawn(1000), drawn(100) / 8.0};
        int number = 10 + (int)drawn(1000);
        std::vector<int> items(10 + drawn(2000));
        std::string name(10 + drawn(2000), 'n'), text(10 + drawn(2000), 't');
        level = 10 + (int)drawn(1000);
        of_structure(&grid);
        Shape plain;
        Mesh mesh;
        of_type(drawn(2) ? &mesh : &plain);
        of_pointer(&number);
        of_vector(items);
        of_string(name);
        of_text(text.c_str());
        of_global();
        sink += (long)items.size() + number;
    }
    return sink < 0;
}
