#include "definitions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "python/interpreter/positions.h"

/* ---- one line ---- */

Text definition_begin(const char *kind) {
    Text line = {0};
    text_add_word(&line, "(");
    text_add_quoted(&line, kind, strlen(kind));
    return line;
}

void definition_add_number(Text *line, int64_t number) {
    text_add_word(line, ", ");
    text_add_number(line, number);
}

static void add_bytes(Text *line, const char *text, size_t length) {
    text_add_word(line, ", ");
    text_add_quoted(line, text, length);
}

void definition_add_text(Text *line, const char *text) { add_bytes(line, text, strlen(text)); }

/* ---- the file ---- */

/* The definitions file of `process`, mapped. What is written there survives the program's death, costs no system call,
 * and leaves no descriptor for the program to meet. Behind the last line there are zero bytes. */
static char *written;
static size_t size, length;
static uint32_t process;
/* ROOM_FOR_END: kept free for the lines that end a recording, which say why it stopped. */
enum { FIRST_SIZE = 1 << 14, ROOM_FOR_END = 1 << 12 };

/* Map at least `needed` bytes of the file. 0 or errno. */
static int make_room(size_t needed) {
    char path[sizeof recording.folder + 16];
    snprintf(path, sizeof path, "%s/definitions", recording.folder);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    size_t larger = size ? size : FIRST_SIZE;
    while (larger < needed) larger *= 2;
    /* Disk space is allocated here, for else a full disk would be a SIGBUS at a later store. */
    int error = posix_fallocate(file, 0, (off_t)larger);
    void *place = error ? MAP_FAILED : mmap(NULL, larger, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!error && place == MAP_FAILED) error = errno;
    close(file);
    if (error) return error;
    if (written) munmap(written, size);
    written = place, size = larger;
    return 0;
}

void definitions_close(void) {
    if (written) munmap(written, size);
    written = NULL, size = length = 0, process = 0;
}

static int write_line(const Text *line) {
    if (process != recording.process) {
        definitions_close();
        process = recording.process;
    }
    int error = length + line->length + ROOM_FOR_END > size ? make_room(length + line->length + ROOM_FOR_END) : 0;
    if (error && (recording.active || length + line->length > size)) return error;
    memcpy(written + length, line->data, line->length - 1);
    /* Readers take lines that have their end, which is therefore written last. */
    __atomic_store_n(written + length + line->length - 1, '\n', __ATOMIC_RELEASE);
    length += line->length;
    return 0;
}

void definition_write(Text *line) {
    text_add_word(line, ")\n");
    int error = line->is_cut ? ENOMEM : write_line(line);
    if (error) recording_stop(ring_obstacle(error));
    text_free(line);
}

/* ---- components ---- */

/* Add the names of the parameters, *args and **kwargs last. Names that the compiler made up are left out. */
static void add_parameters(Text *line, const PyCodeObject *code) {
    int flags = code->co_flags, count = code->co_argcount + code->co_kwonlyargcount;
    count += !!(flags & CO_VARARGS) + !!(flags & CO_VARKEYWORDS);
    text_add_word(line, ", (");
    for (int at = 0; (flags & 3) == 3 && at < count; at++) {
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, at);
        if (PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) == '.') continue;
        text_add_object(line, name);
        text_add_word(line, ", ");
    }
    text_add_word(line, ")");
}

void define_component(const Function *function, int32_t number) {
    Text line = definition_begin("code");
    definition_add_number(&line, number);
    definition_add_text(&line, function->name);
    text_add_word(&line, ", ");
    text_add_object(&line, function->code->co_filename);
    definition_add_number(&line, function->code->co_firstlineno);
    definition_add_text(&line, function->is_own ? "own" : "library");
    add_parameters(&line, function->code);
    text_add_word(&line, ", (");
    if (function->is_own) positions_add_lines(function->code, &line);
    text_add_word(&line, ")");
    definition_write(&line);
    if (!(function->code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR))) return;
    line = definition_begin("coroutine");
    definition_add_number(&line, number);
    definition_write(&line);
}

void define_aside(int32_t number, const char *name) {
    Text line = definition_begin("code");
    definition_add_number(&line, number);
    definition_add_text(&line, name);
    text_add_word(&line, ", ''");
    definition_add_number(&line, 0);
    definition_add_text(&line, "library");
    text_add_word(&line, ", (), ()");
    definition_write(&line);
}

/* ---- features, types, metrics, texts ---- */

void define_feature(const Function *function, int32_t number, const char *name) {
    Text line = definition_begin("feature");
    definition_add_number(&line, number);
    definition_add_number(&line, function->number);
    definition_add_text(&line, name);
    definition_write(&line);
}

void define_type(int32_t number, const char *name, size_t length) {
    Text line = definition_begin("type");
    definition_add_number(&line, number);
    add_bytes(&line, name, length);
    definition_write(&line);
}

void define_sample(const Function *function, uint32_t bits) {
    Text line = definition_begin("sample");
    definition_add_number(&line, function->number);
    definition_add_number(&line, bits);
    definition_write(&line);
}

void define_metric(int32_t number, const char *name, const char *unit) {
    Text line = definition_begin("metric");
    definition_add_number(&line, number);
    definition_add_text(&line, name);
    definition_add_text(&line, unit);
    definition_write(&line);
}

void define_mark(int32_t number, const char *name) {
    Text line = definition_begin("mark");
    definition_add_number(&line, number);
    definition_add_text(&line, name);
    definition_write(&line);
}

void define_text(const char *topic, const char *text) {
    Text line = definition_begin("say");
    definition_add_text(&line, topic);
    definition_add_text(&line, text);
    definition_write(&line);
}

void define_note(Text *notes, const char *topic, const char *note) {
    if (notes->length && strstr(notes->data, note)) return;
    if (notes->length) text_add_word(notes, "; ");
    text_add_word(notes, note);
    text_add(notes, "", 1);
    notes->length--; /* the zero byte ends the string, and the next note overwrites it */
    if (!notes->is_cut) define_text(topic, notes->data);
}

/* ---- the process ---- */

void define_process(void) {
    Text line = definition_begin("process");
    definition_add_number(&line, getpid());
    definition_add_number(&line, getppid());
    text_add_word(&line, ", (");
    PyObject *words = PySys_GetObject("orig_argv"); /* the program may have put anything there */
    for (Py_ssize_t at = 0; words && PyList_CheckExact(words) && at < PyList_GET_SIZE(words); at++) {
        text_add_object(&line, PyList_GET_ITEM(words, at));
        text_add_word(&line, ", ");
    }
    text_add_word(&line, ")");
    definition_write(&line);
}

void define_cpu(const char *moment, int64_t ns) {
    Text line = definition_begin("cpu");
    definition_add_text(&line, moment);
    definition_add_number(&line, ns);
    definition_write(&line);
}

void define_start(void) {
    Text line = definition_begin("start");
    definition_add_number(&line, clock_ns(&recording.clock));
    definition_add_number(&line, recording.costs.call.enter_ns + recording.costs.call.exit_ns);
    definition_add_number(&line, recording.costs.other_ns);
    definition_add_text(&line, PY_VERSION);
    definition_write(&line);
}

void define_end(int64_t overhead_ns, int64_t lost_records, const char *how) {
    define_cpu("ended", cpu_of_process_ns());
    Text line = definition_begin("end");
    definition_add_number(&line, clock_ns(&recording.clock));
    definition_add_number(&line, overhead_ns);
    definition_add_number(&line, lost_records);
    definition_add_text(&line, recording.stop_reason ? recording.stop_reason : "");
    definition_add_number(&line, recording.unselected_functions);
    text_add_word(&line, ", (");
    text_add(&line, recording.unselected_names.data, recording.unselected_names.length);
    text_add_word(&line, ")");
    definition_write(&line);
    if (*how) define_text("end", how);
}
