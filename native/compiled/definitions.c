#include "definitions.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "threads.h"

typedef struct Line {
    size_t length;
    char text[16384];
} Line;
static Line line; /* protected by the lock; static, because the stacks of threads may be small */
static Interruptions interruptions; /* as they were before the line began; protected by the lock too */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add_byte(char byte) {
    if (line.length < sizeof line.text) line.text[line.length++] = byte;
}

static void add(const char *text) {
    while (*text) add_byte(*text++);
}

static void add_number(int64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, ", %lld", (long long)number);
    add(digits);
}

/* Add a Python string literal. */
static void add_quoted(const char *text, size_t length) {
    char escaped[8];
    add_byte('\'');
    for (; length--; text++) {
        unsigned char byte = (unsigned char)*text;
        int plain = byte >= ' ' && byte != 127 && byte != '\\' && byte != '\'';
        snprintf(escaped, sizeof escaped, "\\x%02x", byte);
        if (plain) add_byte(*text);
        else add(escaped);
    }
    add_byte('\'');
}

static void add_text(const char *text) {
    add(", ");
    add_quoted(text, strlen(text));
}

/* Signals are held until the line ends, because a handler that jumped out of here would leave the lock taken. */
static void begin(const char *kind) {
    Interruptions before;
    signals_hold(&before);
    pthread_mutex_lock(&lock);
    interruptions = before;
    line.length = 0;
    add("(");
    add_quoted(kind, strlen(kind));
}

/* Append the line to the file. 0 or errno. The file is opened for every line, so that the program never meets a
 * descriptor of ours. */
static int append(const char *path) {
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    ssize_t written = write(file, line.text, line.length);
    int error = written == (ssize_t)line.length ? 0 : written < 0 ? errno : ENOSPC;
    close(file);
    return error;
}

/* The same in a process that has a copy of the program's table of descriptors, where some are closed to have room. */
static int append_apart(void *path) {
    for (int number = 0; number < 64; number++) close(number);
    return append(path);
}

/* The child shares the memory, the program waits for it, no signal tells of its end, and wait() does not find it. */
static int append_without_descriptor(char *path) {
    static char stack[1 << 15] __attribute__((aligned(16))); /* the lock is held */
    int status, child = clone(append_apart, stack + sizeof stack, CLONE_VM | CLONE_VFORK, path);
    if (child < 0 || waitpid(child, &status, __WCLONE) != child) return EMFILE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EMFILE;
}

static void end(void) {
    char path[sizeof recording.folder + 16];
    add(")\n");
    snprintf(path, sizeof path, "%s/definitions", recording.folder);
    int saved = errno, error = line.length < sizeof line.text ? append(path) : ENOMEM;
    if (error == EMFILE) error = append_without_descriptor(path);
    errno = saved;
    Interruptions before = interruptions;
    pthread_mutex_unlock(&lock);
    if (error) recording_stop(ring_obstacle(error));
    signals_release(&before);
}

void define_text(const char *topic, const char *text) {
    begin("say");
    add_text(topic);
    add_text(text);
    end();
}

static void add_command_line(void) {
    char words[4096];
    ssize_t length = 0;
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        length = read(file, words, sizeof words - 1);
        close(file);
    }
    for (ssize_t at = 0; at < length;) {
        size_t word = strnlen(words + at, (size_t)(length - at));
        add_quoted(words + at, word);
        add(", ");
        at += (ssize_t)word + 1;
    }
}

void define_process(void) {
    pthread_mutex_init(&lock, NULL); /* in a forked child: another thread may have held it */
    begin("process");
    add_number(getpid());
    add_number(getppid());
    add(", (");
    add_command_line();
    add(")");
    end();
    define_metric(METRIC_CPU, "cpu", "ns");
}

void define_metric(int32_t number, const char *name, const char *unit) {
    begin("metric");
    add_number(number);
    add_text(name);
    add_text(unit);
    end();
}

void define_earlier(int32_t function) {
    begin("earlier");
    add_number(function);
    end();
}

void define_mark(int32_t number, const char *name) {
    begin("mark");
    add_number(number);
    add_text(name);
    end();
}

void loaded_place(const void *address, LoadedPlace *place) {
    Dl_info about = {0}, program = {0};
    const char *there = function_address(address);
    int is_found = dladdr(there, &about);
    place->file = is_found && about.dli_fname ? about.dli_fname : "";
    place->base = about.dli_fbase ? (const char *)address + ((const char *)about.dli_fbase - there) : NULL;
    place->symbol = is_found && about.dli_sname ? about.dli_sname : "";
    place->is_symbol_start = about.dli_saddr == there;
    if (!is_found) return;
    /* dladdr gives the program itself the word that it was started with, and servers write their titles over that
     * word. */
    if (!dladdr((void *)getauxval(AT_ENTRY), &program) || program.dli_fbase != about.dli_fbase) return;
    ssize_t length = readlink("/proc/self/exe", place->buffer, sizeof place->buffer - 1);
    if (length <= 0) return;
    place->buffer[length] = 0;
    place->file = place->buffer;
}

void define_function(int32_t number, const void *function, const LoadedPlace *place) {
    begin(number == NOT_SELECTED ? "unselected" : "address");
    if (number != NOT_SELECTED) add_number(number);
    add_text(place->file);
    add_number((const char *)function - (const char *)place->base);
    add_text(place->is_symbol_start ? place->symbol : "");
    end();
}

void define_feature(int32_t number, int32_t function, const char *name) {
    begin("feature");
    add_number(number);
    add_number(function);
    add_text(name);
    end();
}

void define_sample(int32_t function, uint32_t bits) {
    begin("sample");
    add_number(function);
    add_number(bits);
    end();
}

int define_virtual_table(int32_t number, const void *table, const LoadedPlace *place) {
    if (!place->base) return 0;
    begin("vtable");
    add_number(number);
    add_text(place->file);
    add_number((const char *)table - (const char *)place->base);
    add_text(place->symbol);
    end();
    return 1;
}

void define_cpu(const char *what, int64_t ns) {
    begin("cpu");
    add_text(what);
    add_number(ns);
    end();
}

void define_start(void) {
    begin("start");
    add_number(clock_ns(&recording.clock));
    add_number(recording.enter_ns + recording.exit_ns);
    add_number(0);
    add_text("");
    end();
}

void define_failure(const char *why) {
    begin("failed");
    add_text(why);
    end();
}

void define_end(const Totals *totals) {
    if (totals->foreign_events)
        define_text("stacks", "calls on stacks of the program's own (coroutines, alternative signal stacks) are left out");
    char count[24];
    snprintf(count, sizeof count, "%lld", (long long)recording.thread_count);
    define_text("threads", count);
    define_cpu("waited", totals->off_ns);
    begin("end");
    add_number(clock_ns(&recording.clock));
    add_number(totals->overhead_ns);
    add_number(totals->lost_records + totals->foreign_events / 2);
    add_text(recording.stop_reason ? recording.stop_reason : "");
    add_number(totals->unselected);
    add(", ()");
    end();
}
