/* What the recorder's code in a program asks of the system takes long here and is waited for, as on a machine with many others.
 * All work is counted by the thread's own CPU clock: WORK calls of `work`, WORK_NS each. Link with -rdynamic. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdexcept>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline))
#define UNSEEN __attribute__((no_instrument_function))
enum { WORK = 8, PIECES = 8, WORK_NS = 8000000, DELAY_NS = 3000000 };

static volatile unsigned sum;

extern "C" {

UNSEEN static void delay() {
    struct timespec time = {0, DELAY_NS};
    nanosleep(&time, NULL);
}

UNSEEN int stat(const char *path, struct stat *about) noexcept {
    if (strstr(path, "/self/task")) delay();
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, about, 0);
}

UNSEEN int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
    va_end(rest);
    if (strstr(path, "/definitions")) delay();
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
}

UNSEEN static long spent_ns() {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

UNSEEN static void spin(long ns) {
    for (long end = spent_ns() + ns; spent_ns() < end;) sum = sum + 1;
}

template <int piece> APART void small() { sum = sum + piece; }

APART void throws(int which) {
    if (which % 2) throw std::runtime_error("odd");
    sum = sum + 1;
}

/* Of a call that an exception came back to, branches are not counted, which is said once. */
APART void catches(int which) {
    try {
        throws(which);
    } catch (const std::runtime_error &) {
        sum = sum + 2;
    }
    if (which > 3) sum = sum + 3;
}

template <int piece> UNSEEN static void pieces() {
    small<piece>();
    spin(WORK_NS / PIECES);
    if constexpr (piece > 1) pieces<piece - 1>();
}

APART void work(int which) {
    catches(which);
    pieces<PIECES>();
}

int main() {
    for (int which = 0; which < WORK; which++) work(which);
    return 0;
}
