/* Functions that are open when the program is attached to, and return one after the other when a line comes. The last one waits
 * for another line. */
#include <alloca.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

APART int first_leaf(int number) {
    for (int at = 0; at <= number; at++) __asm__ volatile("" : "+r"(number));
    return number + 1;
}
APART int second_leaf(int number) {
    for (int at = 0; at <= number; at++) __asm__ volatile("" : "+r"(number));
    return number + 2;
}

APART void wait_for_line(void) {
    char line[16];
    if (read(0, line, sizeof line) < 0) _exit(1);
}

APART int inner(int size) {
    char *block = alloca(size); /* the frame is known by its base register alone */
    memset(block, 1, size);
    wait_for_line();
    return first_leaf(block[size / 2]) + block[0];
}
APART int outer(int size) {
    int sum = inner(size);
    sum += second_leaf(sum);
    puts("returned");
    fflush(stdout);
    wait_for_line();
    return sum;
}
int main(int count, char **words) {
    puts("ready");
    fflush(stdout);
    int sum = outer(count * 100);
    puts(words[0] && sum ? "0 wrong" : "wrong");
    return 0;
}
