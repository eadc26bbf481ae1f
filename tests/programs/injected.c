/* Functions whose calls look special in the machine code. Usage: injected WAY NUMBER. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))
static volatile long done;

APART long third(long number) {
    done++;
    return number + done;
}
APART long second(long number) {
    done++;
    return third(number + 1);
}
APART long first(long number) {
    done++;
    return second(number * 2);
}
/* States of a machine, which jump to one another. */
APART long odd(long number);
APART long even(long number) {
    done++;
    return number ? odd(number - 1) : 0;
}
APART long odd(long number) {
    done++;
    return number ? even(number - 1) : 1;
}
APART long start(long number) {
    done++;
    return even(number);
}

int main(int count, char **words) {
    long times = count > 2 ? strtol(words[2], NULL, 10) : 1, sum = 0;
    if (!strcmp(words[1], "tails"))
        for (long at = 0; at < times; at++) sum += first(at);
    if (!strcmp(words[1], "states"))
        for (int at = 0; at < 3; at++) sum += start(times);
    printf("%ld\n", sum);
    return 0;
}
