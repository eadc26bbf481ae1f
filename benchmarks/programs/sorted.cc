/* Sorts lists of numbers of sizes drawn at random between 100 and MOST, from such that stay in the caches to such that leave
 * them: `./sorted SEED MOST CALLS`. Writes a line when a list is sorted. */
#include <cmath>
#include <cstdlib>
#include <list>
#include <random>
#include <unistd.h>

int main(int, char **words)
{
    std::mt19937 draw(std::atoi(words[1]));
    std::uniform_real_distribution<double> part(0, 1);
    double least = 100, most = std::atof(words[2]);
    for (int call = std::atoi(words[3]); call > 0; call--) {
        std::list<int> numbers;
        for (double left = least * std::pow(most / least, part(draw)); left > 0; left--) numbers.push_back((int)draw());
        numbers.sort();
        if (write(1, "sorted\n", 7) < 0) return 1;
    }
}
