/* Lines of the definitions file: what the numbers in the records stand for (record/records.py reads them). */
#include "hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct Line {
    size_t length;
    char text[16384];
} Line;
static Line line; /* under the lock, for stacks of threads may be small */
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

/* A Python string literal. */
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

static void add_words(const char *words) {
    add(", ");
    add_quoted(words, strlen(words));
}

static void begin(const char *kind) {
    pthread_mutex_lock(&lock);
    line.length = 0;
    add("(");
    add_quoted(kind, strlen(kind));
}

/* Opened for every line: no descriptor of ours stays where the program would meet it. */
static void end(void) {
    char path[sizeof hooks.folder + 16];
    add(")\n");
    snprintf(path, sizeof path, "%s/definitions", hooks.folder);
    int saved = errno, file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int whole = file >= 0 && line.length < sizeof line.text && write(file, line.text, line.length) == (ssize_t)line.length;
    if (file >= 0) close(file);
    errno = saved;
    pthread_mutex_unlock(&lock);
    if (!whole) process_stop("cannot write to the spool: is the disk full?");
}

void tell_words(const char *topic, const char *words) {
    begin("say");
    add_words(topic);
    add_words(words);
    end();
}

static void add_command_line(void) {
    char read_in[4096];
    ssize_t length = 0;
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        length = read(file, read_in, sizeof read_in - 1);
        close(file);
    }
    for (ssize_t at = 0; at < length;) {
        size_t word = strnlen(read_in + at, (size_t)(length - at));
        add_quoted(read_in + at, word);
        add(", ");
        at += (ssize_t)word + 1;
    }
}

void tell_process(void) {
    pthread_mutex_init(&lock, NULL); /* in a forked child another thread may have held it */
    begin("process");
    add_number(getpid());
    add_number(getppid());
    add(", (");
    add_command_line();
    add(")");
    end();
    begin("metric");
    add_number(METRIC_CPU);
    add_words("cpu");
    add_words("ns");
    end();
}

void tell_function(int32_t number, const void *function) {
    char room[4096];
    const void *base;
    Dl_info about = {0};
    const char *module = module_of(function, &base, room, sizeof room);
    int exported = dladdr(function, &about) && about.dli_sname && about.dli_saddr == function;
    begin(number == LEFT_OUT ? "unselected" : "address");
    if (number != LEFT_OUT) add_number(number);
    add_words(module);
    add_number((const char *)function - (const char *)base);
    add_words(exported ? about.dli_sname : "");
    end();
}

void tell_start(void) {
    begin("start");
    add_number(clock_ns(&hooks.clock));
    add_number(hooks.enter_ns + hooks.exit_ns);
    add_number(0);
    add_words("");
    end();
}

void tell_end(void) {
    int64_t taken = 0, missed = 0, foreign = 0;
    for (const Thread *thread = threads_all(); thread; thread = thread->next) {
        taken += thread->taken;
        missed += thread->lost;
        foreign += thread->foreign;
    }
    if (foreign) tell_words("stacks", "calls on stacks of the program's own (coroutines, alternative signal stacks) are left out");
    char count[24];
    snprintf(count, sizeof count, "%lld", (long long)hooks.threads);
    tell_words("threads", count);
    begin("end");
    add_number(clock_ns(&hooks.clock));
    add_number(taken);
    add_number(missed + foreign / 2);
    add_words(hooks.lost ? hooks.lost : "");
    add_number(0);
    add_number(known_unselected());
    add(", ()");
    end();
}
