// What arguments are: each function does what its name says, with as much work as its law. Usage: arguments [ROUNDS].
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#define CALLED __attribute__((noinline))
static volatile long done;

enum Mode { FLAT, LINEAR = 7 };
struct Inner { short depth; float share; };
struct Box { int width; const char *title; Inner inner; double *weight; unsigned low : 3, high : 5; int cells[4]; };
struct Span { const int *begin, *end; };
struct Shape { int sides; virtual long area(long scale) const; virtual ~Shape() {} };
struct Square : Shape { long area(long scale) const override; };
struct Extent { long width, height; };
struct Mixed { double share; int count; };
static int level;
int table_size = 1;

extern "C" {
CALLED void scalars(int n, unsigned char byte, bool flag, Mode mode, double ratio, float part, long wide) {
    for (int at = 0; at < n; at++) done = done + byte + flag + mode + (long)(ratio + part) + wide;
}
CALLED void pointer(const int *count, const char *text) { for (int at = 0; at < *count; at++) done = done + *text; }
CALLED void structure(const Box *box) {
    for (int at = 0; at < box->width; at++) done = done + box->inner.depth + box->high + box->cells[0];
}
CALLED void span(Span *range, int first, int last) {
    for (const int *at = range->begin; at != range->end; at++) done = done + *at + first + last;
}
CALLED void globals(void) { for (int at = 0; at < level; at++) done = done + table_size; }
CALLED void hostile(const Box *box, const char *text, const int *number) { done = done + (box && text && number); }
}
CALLED void containers(const std::vector<int> &items, const std::string &name, const std::map<int, int> &tree,
                       const std::unordered_map<int, int> &hash, const std::list<int> &chain, const std::deque<int> &queue) {
    for (int item : items) done = done + item;
    done = done + name.size() + tree.size() + hash.size() + chain.size() + queue.size();
}
CALLED void library(const std::set<int> &kept, std::string_view view, const std::unique_ptr<std::vector<int>> &owned,
                    std::shared_ptr<Extent> shared) {
    done = done + kept.size() + view.size() + owned->size() + shared->width;
}
// These come in two registers each, and the last ones in memory.
CALLED void by_value(Extent extent, Mixed mixed, Extent second, Mixed other, Extent third, int last) {
    done = done + extent.width + extent.height + mixed.count + second.height + other.count + third.width + last;
}
CALLED long Shape::area(long scale) const { return sides + scale; }
CALLED long Square::area(long scale) const { return sides * scale; }
CALLED void measured(const Shape *shape, long scale) { done = done + shape->area(scale); }

__attribute__((no_instrument_function)) int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 8;
    double weight = 0.5;
    int numbers[64] = {};
    for (int at = 0; at < rounds; at++) {
        int n = 10 * at, size = at % 30;
        Box box = {n, &"title"[at % 5], {(short)-at, at / 4.0f}, &weight, at % 8u, at % 32u, {at, 1, 2, 3}};
        Span range = {numbers, numbers + size};
        weight = at + 0.25;
        level = n;
        scalars(n, at % 256, at % 2, at % 2 ? LINEAR : FLAT, at / 8.0, at / 2.0f, -at);
        pointer(&n, &"abcdefgh"[at % 8]);
        structure(&box);
        span(&range, at, 3 * at);
        globals();
        uintptr_t wild[] = {0, 1, 4095, 4096, 0x7fffffffffffull, 0xdead000000000000ull, ~(uintptr_t)0, (uintptr_t)main};
        uintptr_t bad = wild[at % 8] + (at < 8 ? 0 : 4096ull * at * 2654435761ull);
        hostile((Box *)bad, (char *)(bad ^ 64), (int *)~bad);
        std::map<int, int> tree;
        std::unordered_map<int, int> hash;
        for (int key = 0; key < size; key++) tree[key] = hash[key + 1] = key;
        containers(std::vector<int>(size), std::string(size, 'x'), tree, hash, std::list<int>(size), std::deque<int>(20 * size));
        library(std::set<int>(numbers, numbers + (at > 0)), std::string_view("characters").substr(at % 9),
                std::make_unique<std::vector<int>>(3 * at), std::make_shared<Extent>(Extent{at, -at}));
        by_value({at, -at}, {at / 2.0, 2 * at}, {3, at}, {0.5, at}, {5 * at, 1}, 6 * at);
        Shape plain;
        Square square;
        plain.sides = square.sides = at;
        measured(at % 2 ? &plain : &square, at);
    }
    return 0;
}
