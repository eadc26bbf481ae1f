// A service: orders of known sizes, one after the other, until its standard input ends.
#include <poll.h>

#include <cstdio>
#include <string>
#include <vector>

#define KEPT __attribute__((noinline))

namespace shop {

struct Item { std::string name; };

KEPT long price(const Item &item)
{
    long sum = 0;
    for (char letter : item.name)
        sum += letter;
    return sum;
}

KEPT long total(const std::vector<Item> &items)
{
    long sum = 0;
    for (const Item &item : items)
        sum += price(item);
    return sum;
}

struct Request { void *body; };

KEPT long order(const Request &request)
{
    return total(*static_cast<std::vector<Item> *>(request.body)) + 1;
}

} // namespace shop

int main()
{
    pollfd input = {0, POLLIN, 0};
    long wrong = 0;
    puts("ready");
    fflush(stdout);
    do {
        for (long size : {1, 2, 5, 10, 20, 50, 100}) {
            std::vector<shop::Item> items(size, {"thing"});
            wrong += shop::order({&items}) != 538 * size + 1;
        }
    } while (!poll(&input, 1, 0));
    printf("%ld wrong\n", wrong);
    return 0;
}
