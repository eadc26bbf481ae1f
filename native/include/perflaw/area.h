/* Making the area: a file of the process in $PERFLAW_PROBES, else in /dev/shm/perflaw-<uid>/, with the name
 * "<pid>.<start time>". It appears under its name only when it is whole. Where another program ran in this process before
 * (exec), or another language has an area here, the name ends in ".1", ".2" and so on; other libraries of this program
 * share the area. Every failure means: no probes. Nothing here says anything to anybody. */
#ifndef PERFLAW_AREA_H
#define PERFLAW_AREA_H

#include "process.h"

#ifdef __cplusplus
#define PERFLAW_LANGUAGE "c++"
extern "C" {
#else
#define PERFLAW_LANGUAGE "c"
#endif

#ifndef PERFLAW_FOLDER /* the user id follows */
#define PERFLAW_FOLDER "/dev/shm/perflaw-"
#endif

/* The folder, made if need be; 0 where it cannot be named. The default one lies where everybody may write: *strict. */
PERFLAW_SLOW int perflaw_folder(perflaw_text *path, int *strict) {
    const char *said = perflaw_variable("PERFLAW_PROBES");
    *strict = !said;
    if (!said) {
        perflaw_say(path, PERFLAW_FOLDER);
        perflaw_say_number(path, (uint64_t)syscall(SYS_geteuid));
    } else {
        if (*said != '/') { /* it must still be found when the program has gone elsewhere */
            long bytes = syscall(SYS_getcwd, path->at, (long)(path->end - path->at));
            if (bytes <= 0) return 0;
            path->at += bytes - 1;
            perflaw_say(path, "/");
        }
        perflaw_say(path, said);
    }
    return path->end - path->at > 64; /* room for the file's name */
}

/* The folder's descriptor, -1 where it is not to be trusted. */
PERFLAW_SLOW int perflaw_enter(const char *path, int strict) {
    struct stat about;
    syscall(SYS_mkdirat, (long)PERFLAW_HERE, path, 0700L);
    int flags = O_RDONLY | (strict ? PERFLAW_O_FLAGS : (PERFLAW_O_FLAGS & ~0400000));
    int folder = (int)syscall(SYS_openat, (long)PERFLAW_HERE, path, (long)flags, 0L);
    if (folder < 0) return -1;
    int fine = !fstat(folder, &about) && S_ISDIR(about.st_mode);
    if (strict) fine = fine && (long)about.st_uid == syscall(SYS_geteuid) && !(about.st_mode & 077);
    if (fine) return folder;
    perflaw_close(folder);
    return -1;
}

/* Field 22 of /proc/self/stat: with it a number of a process is never taken for that of a later one. */
PERFLAW_SLOW uint64_t perflaw_start_time(void) {
    char text[1024];
    int file = (int)syscall(SYS_openat, (long)PERFLAW_HERE, "/proc/self/stat", (long)(O_RDONLY | PERFLAW_O_FLAGS), 0L);
    if (file < 0) return 0;
    long bytes = syscall(SYS_read, (long)file, text, (long)sizeof text - 1);
    perflaw_close(file);
    text[bytes < 0 ? 0 : bytes] = 0;
    const char *at = strrchr(text, ')'); /* the program's name may hold anything */
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    return at ? perflaw_number(at + 1) : 0;
}

PERFLAW_SLOW uint64_t perflaw_image(void) {
    uint64_t bytes = 0;
    const void *random = (const void *)getauxval(25); /* AT_RANDOM */
    if (random) memcpy(&bytes, random, sizeof bytes);
    return bytes;
}

/* Number of rings that fit below the limit on a file's size: beyond it the kernel would end the program. */
PERFLAW_SLOW uint32_t perflaw_rings_that_fit(uint64_t ring_bytes) {
    struct rlimit most;
    uint64_t rings = perflaw_number(perflaw_variable("PERFLAW_PROBES_RINGS"));
    if (!rings || rings > PERFLAW_RINGS_MOST) rings = PERFLAW_RINGS_MOST;
    if (getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur == RLIM_INFINITY) return (uint32_t)rings;
    if (most.rlim_cur < PERFLAW_FRONT_BYTES) return 0;
    uint64_t fitting = (most.rlim_cur - PERFLAW_FRONT_BYTES) / ring_bytes;
    return (uint32_t)(fitting < rings ? fitting : rings);
}

PERFLAW_SLOW void perflaw_fill_head(perflaw_head *head, uint32_t rings, uint32_t ring_records) {
    head->version = PERFLAW_VERSION;
    head->pid = (uint32_t)syscall(SYS_getpid);
    head->rings = rings;
    head->ring_records = ring_records;
    head->probes = PERFLAW_PROBES_MOST;
    head->clock = PERFLAW_CLOCK;
    head->image = perflaw_image();
    memcpy(head->language, PERFLAW_LANGUAGE, sizeof PERFLAW_LANGUAGE);
    perflaw_pair_of_clocks(&head->tsc0, &head->ns0);
    __atomic_store_n(&head->magic, PERFLAW_MAGIC, __ATOMIC_RELEASE);
}

/* A new area in an open file. */
PERFLAW_SLOW perflaw_head *perflaw_make_area(int file) {
    uint64_t records = perflaw_number(perflaw_variable("PERFLAW_PROBES_RECORDS"));
    if (records < 16 || records > 1 << 20 || (records & (records - 1))) records = PERFLAW_RING_RECORDS;
    uint64_t ring_bytes = PERFLAW_RING_HEAD_BYTES + sizeof(perflaw_record) * records;
    uint32_t rings = perflaw_rings_that_fit(ring_bytes);
    if (!rings || syscall(SYS_fchmod, (long)file, 0600L)) return NULL; /* whatever the umask says */
    if (syscall(SYS_ftruncate, (long)file, (int64_t)(PERFLAW_FRONT_BYTES + rings * ring_bytes))) return NULL;
    if (!perflaw_allocate(file, 0, PERFLAW_FRONT_BYTES)) return NULL;
    perflaw_head *head = (perflaw_head *)perflaw_map(PERFLAW_FRONT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (head) perflaw_fill_head(head, rings, (uint32_t)records);
    return head;
}

/* The area that a library of this same program made before us, NULL if it is another's. */
PERFLAW_SLOW perflaw_head *perflaw_share_area(int folder, const char *name, perflaw_head *ours, int *file) {
    int shared = (int)syscall(SYS_openat, (long)folder, name, (long)(O_RDWR | PERFLAW_O_FLAGS), 0L);
    if (shared < 0) return NULL;
    struct stat about;
    perflaw_head *head = NULL;
    if (!fstat(shared, &about) && about.st_size > PERFLAW_FRONT_BYTES)
        head = (perflaw_head *)perflaw_map(PERFLAW_FRONT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
    if (head && head->magic == PERFLAW_MAGIC && head->version == PERFLAW_VERSION && head->pid == ours->pid &&
        head->image == ours->image && head->clock == PERFLAW_CLOCK) {
        perflaw_close(*file);
        *file = shared;
        return head;
    }
    if (head) perflaw_unmap(head, PERFLAW_FRONT_BYTES);
    perflaw_close(shared);
    return NULL;
}

/* Give the new area its name, or take the one that is there already. */
PERFLAW_SLOW perflaw_head *perflaw_settle(int folder, const char *made, perflaw_text *path, perflaw_head *ours, int *file) {
    char *name = path->at;
    perflaw_say_number(path, ours->pid);
    perflaw_say(path, ".");
    perflaw_say_number(path, perflaw_start_time());
    for (uint64_t more = 0; more < 100; more++) {
        perflaw_text longer = *path;
        if (more) perflaw_say(&longer, "."), perflaw_say_number(&longer, more);
        if (!syscall(SYS_linkat, (long)folder, made, (long)folder, name, 0L)) return ours;
        if (errno != EEXIST) break;
        perflaw_head *found = perflaw_share_area(folder, name, ours, file);
        if (found) return perflaw_unmap(ours, PERFLAW_FRONT_BYTES), found;
        *path->at = 0;
    }
    perflaw_unmap(ours, PERFLAW_FRONT_BYTES);
    return NULL;
}

/* The area of this process, made or shared; NULL where there cannot be one. */
PERFLAW_SLOW perflaw_head *perflaw_open_area(perflaw_state *process) {
    char made[64];
    struct stat about;
    int strict;
    perflaw_text path = {process->path, process->path + PERFLAW_PATH_MOST - 1}, passing = {made, made + sizeof made - 1};
    if (!perflaw_folder(&path, &strict)) return NULL;
    int folder = perflaw_enter(process->path, strict);
    if (folder < 0) return NULL;
    perflaw_say(&path, "/");
    perflaw_say(&passing, ".new-");
    perflaw_say_number(&passing, (uint64_t)syscall(SYS_getpid));
    perflaw_say(&passing, "-");
    perflaw_say_number(&passing, perflaw_now() ^ (uint64_t)(uintptr_t)process); /* libraries may be at it together */
    int flags = O_RDWR | O_CREAT | O_EXCL | PERFLAW_O_FLAGS;
    int file = (int)syscall(SYS_openat, (long)folder, made, (long)flags, 0600L);
    perflaw_head *head = file < 0 ? NULL : perflaw_make_area(file);
    if (head) head = perflaw_settle(folder, made, &path, head, &file);
    if (file >= 0) {
        syscall(SYS_unlinkat, (long)folder, made, 0L);
        if (head && !fstat(file, &about)) process->device = about.st_dev, process->inode = about.st_ino;
        perflaw_close(file);
    }
    perflaw_close(folder);
    return head;
}

#ifdef __cplusplus
}
#endif
#endif
