/* libFuzzer gives files in any form to the core's readers of traces, and builds the tree of what they find. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/traces/otlp.h"
#include "core/traces/traces.h"

enum { NAMES = 1 << 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void play(Trace *trace, uint32_t process) {
    const char *bytes;
    const uint64_t *ends;
    uint32_t names = trace_texts(trace, 0, &bytes, &ends), numbers = trace_texts(trace, 1, &bytes, &ends);
    if (names >= NAMES || numbers >= NAMES) return;
    int32_t codes[NAMES] = {0}, sites[NAMES] = {0}, features[NAMES] = {0};
    for (uint32_t name = 1; name <= names; name++) codes[name] = (int32_t)name;
    for (uint32_t name = 1; name <= numbers; name++) features[name] = (int32_t)name % 3;
    int64_t outcome[6];
    Core *core = core_open(1, 16);
    if (!core) abort();
    trace_play(trace, process, core, codes, sites, names + 1, features, 7, 1000, outcome);
    core_finish(core);
    core_close(core);
}

/* run_bytes: how many bytes of spans are in memory. */
static void read_spans(const char *data, size_t size, uint32_t run_bytes) {
    FILE *beside = tmpfile();
    Otlp *otlp = beside ? otlp_open(fileno(beside), run_bytes) : NULL;
    if (!otlp) abort();
    int error = otlp_feed(otlp, data, size);
    if (!error) error = otlp_finish(otlp);
    uint32_t most = 0;
    for (uint32_t table = 0; table < 7; table++) {
        const char *bytes;
        const uint64_t *ends;
        uint32_t count = otlp_texts(otlp, table, &bytes, &ends);
        if (count > most) most = count;
    }
    Core *core = core_open(1, 16);
    if (!core) abort();
    if (!error && most < NAMES) {
        int32_t codes[NAMES] = {0}, sites[NAMES] = {0}, features[NAMES] = {0};
        double categories[NAMES] = {0};
        int64_t outcome[2];
        for (uint32_t number = 1; number <= most; number++) codes[number] = (int32_t)number, features[number] = (int32_t)number % 3;
        otlp_play(otlp, core, codes, sites, features, features, categories, 1, 2, 7, outcome);
    }
    core_finish(core);
    core_close(core);
    otlp_close(otlp);
    fclose(beside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size) {
        char *copy = malloc(size);
        if (!copy) abort();
        memcpy(copy, data, size);
        read_spans(copy, size, 1 << 23);
        read_spans(copy, size, 64);
        free(copy);
    }
    FILE *beside = tmpfile();
    Trace *trace = beside ? trace_open(fileno(beside)) : NULL;
    if (!trace) abort();
    size_t piece = 1 + size % 97;
    int error = 0;
    for (size_t at = 0; at < size && !error; at += piece) {
        size_t count = at + piece > size ? size - at : piece;
        char *copy = malloc(count); /* of exactly this size, so that reading beyond it is noticed */
        if (!copy) abort();
        memcpy(copy, data + at, count);
        error = trace_feed(trace, copy, count);
        free(copy);
    }
    if (!error && !trace_finish(trace)) {
        int64_t words[6];
        for (uint32_t process = 0; process < 4 && trace_process(trace, process, words); process++) play(trace, process);
    }
    trace_close(trace);
    fclose(beside);
    return 0;
}
