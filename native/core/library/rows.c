#include "rows.h"

#include <string.h>

void sink_put(RowSink *sink, const void *row, size_t size) {
    if (size && sink->needed + size <= sink->size) memcpy(sink->to + sink->needed, row, size);
    sink->needed += size;
}

void sink_split(int64_t *words, Sum sum) {
    words[0] = (int64_t)(uint64_t)sum;
    words[1] = (int64_t)(uint64_t)(sum >> 64);
}
