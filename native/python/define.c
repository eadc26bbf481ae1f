/* Lines of the definitions file: what the numbers in the records stand for (record/records.py reads them). */
#include "lines_count.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void append(const Text *line) {
    char path[sizeof recorder.folder + 16];
    snprintf(path, sizeof path, "%s/definitions", recorder.folder);
    /* Opened for every line: no descriptor of ours stays where the target would meet it. */
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), error = 0;
    if (file < 0 || write(file, line->data, line->length) != (ssize_t)line->length) error = errno ? errno : EIO;
    if (file >= 0) close(file);
    if (error || line->torn) process_stop("cannot write to the spool: is the disk full?");
}

static Text begin(const char *kind) {
    Text line = {0};
    text_word(&line, "(");
    text_quote(&line, kind, strlen(kind));
    return line;
}

static void add_number(Text *line, int64_t number) {
    text_word(line, ", ");
    text_number(line, number);
}

static void add_text(Text *line, const char *text, size_t length) {
    text_word(line, ", ");
    text_quote(line, text, length);
}

static void add_words(Text *line, const char *words) { add_text(line, words, strlen(words)); }

static void end(Text *line) {
    text_word(line, ")\n");
    append(line);
    text_free(line);
}

/* Names of the parameters, *args and **kwargs last; those that the compiler made up are left out. */
static void add_parameters(Text *line, const PyCodeObject *code) {
    int flags = code->co_flags, count = code->co_argcount + code->co_kwonlyargcount;
    count += !!(flags & CO_VARARGS) + !!(flags & CO_VARKEYWORDS);
    text_word(line, ", (");
    for (int at = 0; (flags & 3) == 3 && at < count; at++) {
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, at);
        if (PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) == '.') continue;
        text_object(line, name);
        text_word(line, ", ");
    }
    text_word(line, ")");
}

void define_component(const Function *function, int32_t number) {
    Text line = begin("code");
    add_number(&line, number);
    add_words(&line, function->name);
    text_word(&line, ", ");
    text_object(&line, function->code->co_filename);
    add_number(&line, function->code->co_firstlineno);
    add_words(&line, function->own ? "own" : "library");
    add_parameters(&line, function->code);
    text_word(&line, ", (");
    if (function->own) lines_of(function->code, &line);
    text_word(&line, ")");
    end(&line);
}

void define_aside(int32_t number, const char *name) {
    Text line = begin("code");
    add_number(&line, number);
    add_words(&line, name);
    text_word(&line, ", ''");
    add_number(&line, 0);
    add_words(&line, "library");
    text_word(&line, ", (), ()");
    end(&line);
}

/* Every line that has code, by its place among the counters; the branches that are wanted. */
void define_counts(const Lines *lines, const uint8_t *present, int file, int place) {
    Text line = begin("counts");
    const int numbers[] = {lines->number, file, place, lines->first, lines->span};
    for (size_t at = 0; at < sizeof numbers / sizeof *numbers; at++) add_number(&line, numbers[at]);
    text_word(&line, ", (");
    for (int at = 0; at < lines->span; at++)
        if (present[at]) {
            text_number(&line, at);
            text_word(&line, ", ");
        }
    text_word(&line, "), (");
    int wanted[MOST_BLOCKS] = {0}, branches = lines->branches ? lines->branches->count : 0;
    for (int at = 0; branches && at < lines->branches->sites; at++)
        wanted[lines->branches->site[at].branch] = lines->branches->site[at].wanted;
    for (int at = 0; at < branches; at++) {
        if (!wanted[at]) continue;
        const int64_t about[] = {at, lines->branches->branch[at].line, lines->branches->branch[at].rank};
        for (int part = 0; part < 3; part++) {
            text_word(&line, part ? ", " : "(");
            text_number(&line, about[part]);
        }
        text_word(&line, "), ");
    }
    text_word(&line, ")");
    end(&line);
}

void define_feature(const Function *function, int32_t number, const char *name) {
    Text line = begin("feature");
    add_number(&line, number);
    add_number(&line, function->number);
    add_words(&line, name);
    end(&line);
}

void define_type(int32_t number, const char *name, size_t length) {
    Text line = begin("type");
    add_number(&line, number);
    add_text(&line, name, length);
    end(&line);
}

void define_metric(int32_t number, const char *name, const char *unit) {
    Text line = begin("metric");
    add_number(&line, number);
    add_words(&line, name);
    add_words(&line, unit);
    end(&line);
}

void define_words(const char *topic, const char *words) {
    Text line = begin("say");
    add_words(&line, topic);
    add_words(&line, words);
    end(&line);
}

void define_process(void) {
    Text line = begin("process");
    add_number(&line, getpid());
    add_number(&line, getppid());
    text_word(&line, ", (");
    PyObject *words = PySys_GetObject("orig_argv"); /* a list, whatever the target did to it */
    for (Py_ssize_t at = 0; words && PyList_CheckExact(words) && at < PyList_GET_SIZE(words); at++) {
        text_object(&line, PyList_GET_ITEM(words, at));
        text_word(&line, ", ");
    }
    text_word(&line, ")");
    end(&line);
}

void define_start(void) {
    Text line = begin("start");
    add_number(&line, clock_ns(&recorder.clock));
    add_number(&line, recorder.costs.enter_ns + recorder.costs.exit_ns);
    add_number(&line, recorder.costs.other_ns);
    add_text(&line, PY_VERSION, strlen(PY_VERSION));
    end(&line);
}

void define_end(const char *how) {
    Text line = begin("end");
    int64_t taken = 0;
    for (const Thread *thread = threads_all(); thread; thread = thread->next) taken += thread->taken;
    add_number(&line, clock_ns(&recorder.clock));
    add_number(&line, taken);
    add_number(&line, recorder.missed);
    add_words(&line, recorder.lost ? recorder.lost : "");
    add_number(&line, recorder.library);
    add_number(&line, recorder.unselected);
    text_word(&line, ", (");
    text_add(&line, recorder.left_out.data, recorder.left_out.length);
    text_word(&line, ")");
    end(&line);
    if (*how) define_words("end", how);
}
