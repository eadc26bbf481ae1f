/* The C part of mixed.cc: both are one program, so they share rings and counts. */
#include <perflaw.h>

int from_c(int value);
int from_c(int value) {
    CNT_PROBE_BEGIN(41, 2);
    value *= 2;
    CNT_PROBE_END(41);
    return value;
}
