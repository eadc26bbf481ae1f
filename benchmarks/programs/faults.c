/* Makes one call of the C library fail, or kills the process there.
 *
 * It is preloaded into a process that calls fault_plan(); the N-th call of a kind from then on fails, or ends in SIGKILL.
 * The plan holds for forked children too, whose calls are counted together, and not for programs that they start. A fault
 * happens once, which makes a file. Where FAULT_LATE is the path of a folder, the disk below it tells its errors late: each
 * fsync, or with FAULT_LATE_CLOSE each close, of a file that was written there fails. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum Kind { WRITE, RENAME, FSYNC, MMAP, FORK, MALLOC, OPEN, MKDIR, CLOSE, KINDS };
static const char *const names[KINDS] = {"write", "rename", "fsync", "mmap", "fork", "malloc", "open", "mkdir", "close"};
static const int errors[KINDS] = {ENOSPC, ENOSPC, EIO, ENOMEM, EAGAIN, ENOMEM, ENOSPC, ENOSPC, ENOSPC};
static volatile long none[KINDS], *calls = none; /* shared with forked children once there is a plan */
static int planned = -1, kills;
static long number;
static char done[4096];

/* From now on, the `nth` call of the kind of this name fails, or the process is killed there; 0: none, they are counted.
 * `path` is a file that is made when it happens. */
void fault_plan(const char *kind, long nth, int is_kill, const char *path) {
    snprintf(done, sizeof done, "%s", path);
    number = nth;
    kills = is_kill;
    if (calls == none) {
        void *shared = (void *)syscall(SYS_mmap, NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared != MAP_FAILED) calls = shared;
    }
    for (int at = 0; at < KINDS; at++) {
        calls[at] = 0;
        if (!strcmp(kind, names[at])) planned = at;
    }
}

/* Calls of a kind since then, in this process and its forked children. */
long fault_calls(const char *kind) {
    for (int at = 0; at < KINDS; at++)
        if (!strcmp(kind, names[at])) return calls[at];
    return -1;
}

/* Whether this call of the kind is to fail; errno is set then. */
static int fails(enum Kind kind) {
    if (planned < 0 || (number && kind != (enum Kind)planned)) return 0;
    if (__atomic_add_fetch(&calls[kind], 1, __ATOMIC_RELAXED) != number) return 0;
    int file = (int)syscall(SYS_openat, AT_FDCWD, done, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (file < 0) return 0; /* it happened in another process */
    syscall(SYS_close, file);
    if (kills) syscall(SYS_kill, (int)syscall(SYS_getpid), SIGKILL);
    errno = errors[kind];
    return 1;
}

/* Whether it is a file of a disk. */
static int is_file(int file) {
    struct stat about;
    return !fstat(file, &about) && S_ISREG(about.st_mode);
}

#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *data, size_t size) { return fails(WRITE) ? -1 : NEXT(write)(file, data, size); }
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    return fails(WRITE) ? -1 : NEXT(pwrite64)(file, data, size, at);
}
ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    return fails(WRITE) ? -1 : NEXT(pwrite)(file, data, size, at);
}
int ftruncate(int file, off_t size) { return fails(WRITE) ? -1 : NEXT(ftruncate)(file, size); }
int rename(const char *from, const char *to) { return fails(RENAME) ? -1 : NEXT(rename)(from, to); }

/* Whether the data of an open file cannot be kept, which its disk tells late; errno is set then. */
static int is_late(int file, int at_close) {
    char link[32], path[4096];
    const char *folder = getenv("FAULT_LATE");
    if (!folder || at_close != !!getenv("FAULT_LATE_CLOSE")) return 0;
    int flags = fcntl(file, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0 || strncmp(path, folder, strlen(folder))) return 0;
    errno = at_close ? ENOSPC : EIO;
    return 1;
}

int fsync(int file) { return is_late(file, 0) || fails(FSYNC) ? -1 : NEXT(fsync)(file); }
int fdatasync(int file) { return is_late(file, 0) || fails(FSYNC) ? -1 : NEXT(fdatasync)(file); }

/* The file is closed all the same, as it is by the kernel. */
int close(int file) {
    int late = planned >= 0 || getenv("FAULT_LATE_CLOSE") ? is_late(file, 1) : 0;
    int flags = planned >= 0 ? fcntl(file, F_GETFL) : -1;
    if (!late && flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && is_file(file)) late = fails(CLOSE);
    int error = errno, done = NEXT(close)(file);
    if (late) errno = error;
    return late ? -1 : done;
}
int mkdir(const char *path, mode_t mode) { return fails(MKDIR) ? -1 : NEXT(mkdir)(path, mode); }
int fork(void) { return fails(FORK) ? -1 : NEXT(fork)(); }
int vfork(void) { return fails(FORK) ? -1 : NEXT(fork)(); } /* a wrapper must not return from a vfork's frame */

void *mmap(void *place, size_t size, int protection, int flags, int file, off_t at) {
    return fails(MMAP) ? MAP_FAILED : NEXT(mmap)(place, size, protection, flags, file, at);
}
void *mmap64(void *place, size_t size, int protection, int flags, int file, off64_t at) {
    return fails(MMAP) ? MAP_FAILED : NEXT(mmap64)(place, size, protection, flags, file, at);
}

/* Only what writes: reading a file that is not there is usual and is no fault of a disk. */
static int open_as(const char *name, const char *path, int flags, mode_t mode) {
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);
    if ((flags & O_CREAT) && fails(OPEN)) return -1;
    return next(path, flags, mode);
}
#define OPEN(name)                                             \
    int name(const char *path, int flags, ...) {               \
        va_list values;                                        \
        va_start(values, flags);                               \
        mode_t mode = (flags & O_CREAT) ? va_arg(values, mode_t) : 0; \
        va_end(values);                                        \
        return open_as(#name, path, flags, mode);              \
    }
OPEN(open)
OPEN(open64)

/* Large blocks: the interpreter and DuckDB ask for small ones by the million. */
enum { LARGE = 1 << 16 };
extern void *__libc_malloc(size_t size), *__libc_realloc(void *block, size_t size), *__libc_calloc(size_t count, size_t size);
void *malloc(size_t size) { return size >= LARGE && fails(MALLOC) ? NULL : __libc_malloc(size); }
void *realloc(void *block, size_t size) {
    return size >= LARGE && fails(MALLOC) ? NULL : __libc_realloc(block, size);
}
void *calloc(size_t count, size_t size) {
    return count * size >= LARGE && fails(MALLOC) ? NULL : __libc_calloc(count, size);
}
