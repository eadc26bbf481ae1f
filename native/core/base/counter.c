#include "counter.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>

static struct rusage usage_of_thread(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage;
}

int64_t counter_context_switches(void) {
    struct rusage usage = usage_of_thread();
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

int64_t counter_page_faults(void) {
    struct rusage usage = usage_of_thread();
    return usage.ru_minflt + usage.ru_majflt;
}

#define PREFIX "plugin:"

int counter_is_plugin(const char *line) { return !strncmp(line, PREFIX, strlen(PREFIX)); }

ReadCounter counter_open_plugin(char *line, const char **name, const char **unit, const char **reason) {
    char *first = line + strlen(PREFIX), *second = strchr(first, ':'), *symbol = strrchr(first, ':');
    *name = first, *unit = "", *reason = "its description is not NAME:UNIT:LIBRARY:SYMBOL";
    char *path = second && second != symbol ? strchr(second + 1, ':') : NULL;
    if (!path || path == symbol) return NULL;
    *second = *path = *symbol = 0;
    *unit = second + 1;
    void *library = dlopen(path + 1, RTLD_NOW | RTLD_LOCAL);
    ReadCounter read = library ? (ReadCounter)dlsym(library, symbol + 1) : NULL;
    if (!read) *reason = dlerror();
    return read;
}
