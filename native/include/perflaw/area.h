/* Making the area: a file of the process in $PERFLAW_PROBES, else in /dev/shm/perflaw-<uid>/, with the name
 * "<pid>.<start time>". It appears under its name only when it is whole. If another program ran in this process
 * before (exec), or another language has an area in it, the name ends in ".1", ".2" and so on. Other libraries of
 * this program share the area. Every failure means that there are no probes; nothing here prints anything. */
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

/* The path of the folder; 0 if it is too long. *strict: it is the default one, which is where everybody may write. */
PERFLAW_SLOW int perflaw_folder_path(perflaw_text *path, int *strict) {
    const char *folder = perflaw_environment("PERFLAW_PROBES");
    *strict = !folder;
    if (!folder) {
        perflaw_text_add(path, PERFLAW_FOLDER);
        perflaw_text_add_number(path, (uint64_t)syscall(SYS_geteuid));
    } else {
        if (*folder != '/') { /* the folder must still be found when the program has changed its own */
            long bytes = syscall(SYS_getcwd, path->at, (long)(path->end - path->at));
            if (bytes <= 0) return 0;
            path->at += bytes - 1;
            perflaw_text_add(path, "/");
        }
        perflaw_text_add(path, folder);
    }
    return path->end - path->at > 64; /* there must be room for the file's name */
}

/* Make the folder if it does not exist, and open it. -1 if it is not to be trusted. */
PERFLAW_SLOW int perflaw_open_folder(const char *path, int strict) {
    struct stat about;
    syscall(SYS_mkdirat, (long)PERFLAW_HERE, path, 0700L);
    int flags = O_RDONLY | (strict ? PERFLAW_O_FLAGS : (PERFLAW_O_FLAGS & ~0400000));
    int folder = (int)syscall(SYS_openat, (long)PERFLAW_HERE, path, (long)flags, 0L);
    if (folder < 0) return -1;
    int trusted = !fstat(folder, &about) && S_ISDIR(about.st_mode);
    if (strict) trusted = trusted && (long)about.st_uid == syscall(SYS_geteuid) && !(about.st_mode & 077);
    if (trusted) return folder;
    perflaw_close(folder);
    return -1;
}

/* The start time of the process, field 22 of /proc/self/stat: with it a process is never taken for a later one of
 * the same number. */
PERFLAW_SLOW uint64_t perflaw_start_time(void) {
    char text[1024];
    int file = (int)syscall(SYS_openat, (long)PERFLAW_HERE, "/proc/self/stat", (long)(O_RDONLY | PERFLAW_O_FLAGS), 0L);
    if (file < 0) return 0;
    long bytes = syscall(SYS_read, (long)file, text, (long)sizeof text - 1);
    perflaw_close(file);
    text[bytes < 0 ? 0 : bytes] = 0;
    const char *at = strrchr(text, ')'); /* the program's name before it may hold anything */
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    return at ? perflaw_parse_number(at + 1) : 0;
}

/* Random bytes that differ between programs that run in one process one after another. */
PERFLAW_SLOW uint64_t perflaw_image_id(void) {
    uint64_t bytes = 0;
    const void *random = (const void *)getauxval(25); /* AT_RANDOM */
    if (random) memcpy(&bytes, random, sizeof bytes);
    return bytes;
}

/* How many rings fit below the limit on a file's size, beyond which the kernel would kill the program. */
PERFLAW_SLOW uint32_t perflaw_max_rings(uint64_t ring_bytes) {
    struct rlimit most;
    uint64_t rings = perflaw_parse_number(perflaw_environment("PERFLAW_PROBES_RINGS"));
    if (!rings || rings > PERFLAW_MAX_RINGS) rings = PERFLAW_MAX_RINGS;
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
    head->probes = PERFLAW_MAX_PROBES;
    head->clock = PERFLAW_CLOCK;
    head->image = perflaw_image_id();
    memcpy(head->language, PERFLAW_LANGUAGE, sizeof PERFLAW_LANGUAGE);
    perflaw_pair_of_clocks(&head->tsc0, &head->ns0);
    __atomic_store_n(&head->magic, PERFLAW_MAGIC, __ATOMIC_RELEASE);
}

/* Make an area in an open file. NULL if that fails. */
PERFLAW_SLOW perflaw_head *perflaw_create_area(int file) {
    uint64_t records = perflaw_parse_number(perflaw_environment("PERFLAW_PROBES_RECORDS"));
    if (records < 16 || records > 1 << 20 || (records & (records - 1))) records = PERFLAW_RING_RECORDS;
    uint64_t ring_bytes = PERFLAW_RING_HEAD_BYTES + sizeof(perflaw_record) * records;
    uint32_t rings = perflaw_max_rings(ring_bytes);
    if (!rings || syscall(SYS_fchmod, (long)file, 0600L)) return NULL; /* whatever the umask says */
    if (syscall(SYS_ftruncate, (long)file, (int64_t)(PERFLAW_FRONT_BYTES + rings * ring_bytes))) return NULL;
    if (!perflaw_allocate(file, 0, PERFLAW_FRONT_BYTES)) return NULL;
    perflaw_head *head = (perflaw_head *)perflaw_map(PERFLAW_FRONT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (head) perflaw_fill_head(head, rings, (uint32_t)records);
    return head;
}

/* The area that a library of this same program made before; NULL if it is another program's. */
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

/* Give the new area its name, or take the one that has it already. NULL if that fails. */
PERFLAW_SLOW perflaw_head *perflaw_publish_area(int folder, const char *made, perflaw_text *path, perflaw_head *ours,
                                                int *file) {
    char *name = path->at;
    perflaw_text_add_number(path, ours->pid);
    perflaw_text_add(path, ".");
    perflaw_text_add_number(path, perflaw_start_time());
    for (uint64_t more = 0; more < 100; more++) {
        perflaw_text longer = *path;
        if (more) perflaw_text_add(&longer, "."), perflaw_text_add_number(&longer, more);
        if (!syscall(SYS_linkat, (long)folder, made, (long)folder, name, 0L)) return ours;
        if (errno != EEXIST) break;
        perflaw_head *found = perflaw_share_area(folder, name, ours, file);
        if (found) return perflaw_unmap(ours, PERFLAW_FRONT_BYTES), found;
        *path->at = 0;
    }
    perflaw_unmap(ours, PERFLAW_FRONT_BYTES);
    return NULL;
}

/* The area of this process, made or shared; NULL if there cannot be one. */
PERFLAW_SLOW perflaw_head *perflaw_open_area(perflaw_state *process) {
    char made[64];
    struct stat about;
    int strict;
    perflaw_text path = {process->path, process->path + PERFLAW_MAX_PATH - 1}, temporary = {made, made + sizeof made - 1};
    if (!perflaw_folder_path(&path, &strict)) return NULL;
    int folder = perflaw_open_folder(process->path, strict);
    if (folder < 0) return NULL;
    perflaw_text_add(&path, "/");
    perflaw_text_add(&temporary, ".new-");
    perflaw_text_add_number(&temporary, (uint64_t)syscall(SYS_getpid));
    perflaw_text_add(&temporary, "-");
    /* several libraries may do this at once */
    perflaw_text_add_number(&temporary, perflaw_now() ^ (uint64_t)(uintptr_t)process);
    int flags = O_RDWR | O_CREAT | O_EXCL | PERFLAW_O_FLAGS;
    int file = (int)syscall(SYS_openat, (long)folder, made, (long)flags, 0600L);
    perflaw_head *head = file < 0 ? NULL : perflaw_create_area(file);
    if (head) head = perflaw_publish_area(folder, made, &path, head, &file);
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
