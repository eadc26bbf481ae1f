/* Spans of OpenTelemetry in protobuf, to the call tree, as the import uses them by ctypes; imports/otlp.py does the same.
 *
 * What a span is in the tree depends on spans of its trace alone. So once they are too many for memory, spans go to a file as
 * they came, in parts by their trace, and a part at a time becomes calls.
 *
 * A message may hold anything: what cannot be read is EBADMSG, and the Python reader tells what is wrong.
 *
 * Ownership: a handle is the opener's until otlp_close. Threads: one at a time per handle.
 * Cost: some 1000 ns a span.
 */
#ifndef PERFLAW_OTLP_H
#define PERFLAW_OTLP_H

#include "core/library/core.h"

typedef struct Otlp Otlp;

/* file: descriptor of an empty file for the spans beyond the first ones, of which memory holds `run_bytes` bytes; it stays the
 * caller's. NULL if there is no memory. */
Otlp *otlp_open(int file, uint32_t run_bytes);
/* Read whole messages, one or more; nothing of the data is needed afterwards. 0 or errno. */
int otlp_feed(Otlp *otlp, const char *data, uint64_t size);
/* The file has ended. 0 or errno; EBADMSG too where spans are their own ancestors, which otlp_play tells of spans in the file. */
int otlp_finish(Otlp *otlp);
/* A table of texts, as of trace_texts. 0: services, 1: names, 2: files, 3: keys of attributes, 4: texts of attributes, 5:
 * components (four numbers of 32 bits: service, name, file, line), 6: what an attribute has (its key, a text, 0 for
 * numbers; at most 33 texts of each key). */
uint32_t otlp_texts(const Otlp *otlp, uint32_t table, const char **bytes, const uint64_t **ends);
/* Spans; those that were left out since they occur twice, have a parent that is missing, do not lie in their parent's time,
 * overlap a callee; the first stamp; whether any span failed, and whether any has links. Whole after otlp_play. */
void otlp_counts(const Otlp *otlp, int64_t *words);
/* Add all calls to the tree of a core (forest_play), once. 0 or errno. */
int otlp_play(Otlp *otlp, Core *core, const int32_t *codes, const int32_t *sites, const int32_t *features,
              const int32_t *category_features, const double *categories, int32_t failed, int32_t links, int32_t key,
              int64_t *outcome);
void otlp_close(Otlp *otlp);

#endif
