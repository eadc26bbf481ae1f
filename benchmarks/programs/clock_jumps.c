/* The wall clock is set while a recorder runs: every fifth reading of CLOCK_REALTIME is an hour before or a day after. */
#include <dlfcn.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

static long reading;

static long jump(void) {
    long at = __atomic_add_fetch(&reading, 1, __ATOMIC_RELAXED);
    return at % 10 == 0 ? 86400 : at % 5 == 0 ? -3600 : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int (*next)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = next(clock, time);
    if (clock == CLOCK_REALTIME && !status) time->tv_sec += jump();
    return status;
}
