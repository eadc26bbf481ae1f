#include "otlp.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/record.h"
#include "decimal.h"
#include "protobuf.h"
#include "spans.h"
#include "spill.h"

#define EXPORTED __attribute__((visibility("default")))

enum { MOST_TEXTS = 33, MOST_ATTRIBUTES = 256, MOST_KEYS = 1 << 16, MOST_ID = 64, MAX_LINE = INT32_MAX };
static const uint64_t MAX_NS = UINT64_C(1) << 62;

struct Otlp {
    Names services, names, files, keys, texts, components;
    Names key_texts;   /* 8 bytes: key and text, 0 for any number */
    Names identities;  /* a byte, the size of the trace's identity; it, and that of the span */
    Names groups;      /* 8 bytes: service and name */
    uint32_t *text_counts, text_room; /* by key: how many different texts */
    char *has_numbers;                /* by key: whether any span has a number of it */
    uint32_t number_room;
    uint32_t *by_identity, identity_room;
    uint32_t failing_room;
    Forest forest;
    Spill spill;
    uint64_t given;  /* spans that were read */
    int64_t first;   /* their first stamp, of those too that turn out to occur twice */
    int is_spilled;  /* whether the spans are in the file, and not in the forest */
    int error, has_failed, has_links;
};

static int fail(Otlp *otlp, int error) {
    if (!otlp->error) otlp->error = error;
    return 0;
}

/* Make room for an item of an array; new items are zero. */
static int make_room(Otlp *otlp, void **array, uint32_t *room, uint32_t wanted, size_t size) {
    if (wanted < *room) return 1;
    uint32_t larger_room = wanted * 2 + 64;
    char *larger = realloc(*array, larger_room * size);
    if (!larger) return fail(otlp, ENOMEM);
    memset(larger + *room * size, 0, (larger_room - *room) * size);
    *array = larger;
    *room = larger_room;
    return 1;
}

static uint32_t number_of(Otlp *otlp, Names *names, const void *bytes, size_t size) {
    uint32_t number = names_number(names, (Slice){size ? bytes : "", size});
    if (!number) fail(otlp, ENOMEM);
    return number;
}

/* ---- attributes ---- */

enum { KIND_NONE, KIND_TEXT, KIND_BOOL, KIND_INT, KIND_DOUBLE };
typedef struct KeyValue {
    Slice key, text;
    int kind;
    double number;
} KeyValue;

static int read_pair(Otlp *otlp, Slice bytes, KeyValue *pair) {
    Message message = message_of(bytes);
    Field field;
    *pair = (KeyValue){.key = {"", 0}};
    while (message_next(&message, &field)) {
        if (field.key == 1) {
            if (!field.bytes.at) return fail(otlp, EBADMSG);
            pair->key = field.bytes;
        } else if (field.key == 2) {
            if (!field.bytes.at) return fail(otlp, EBADMSG);
            Message value = message_of(field.bytes);
            while (message_next(&value, &field)) {
                if (field.key < 1 || field.key > 4) continue;
                int is_bytes = field.bytes.at != NULL;
                if (is_bytes != (field.key == 1) && field.key != 2) return fail(otlp, EBADMSG);
                pair->kind = (int)field.key;
                pair->text = field.bytes;
                if (field.key == 2) pair->number = is_bytes ? field.bytes.size != 0 : field.number != 0;
                else if (field.key == 3) pair->number = (double)(int64_t)field.number;
                else if (field.key == 4) memcpy(&pair->number, &field.number, sizeof(double));
            }
            if (value.is_wrong) return fail(otlp, EBADMSG);
        }
    }
    return !message.is_wrong || fail(otlp, EBADMSG);
}

static int is_key(const KeyValue *pair, const char *key) { return pair->key.size == strlen(key) && !memcmp(pair->key.at, key, pair->key.size); }

/* What the attributes of a span say of where its code is. */
typedef struct Place {
    uint32_t file;
    int32_t line;
    int file_rank, line_rank; /* 2: by the current name of the attribute, 1: by the older one */
} Place;

static int take_place(Otlp *otlp, const KeyValue *pair, Place *place, int *is_line) {
    int file_rank = is_key(pair, "code.file.path") ? 2 : is_key(pair, "code.filepath") ? 1 : 0;
    int line_rank = is_key(pair, "code.line.number") ? 2 : is_key(pair, "code.lineno") ? 1 : 0;
    *is_line = line_rank != 0;
    if (file_rank > place->file_rank) {
        if (pair->kind != KIND_TEXT) return fail(otlp, EBADMSG);
        place->file_rank = file_rank;
        place->file = pair->text.size ? number_of(otlp, &otlp->files, pair->text.at, pair->text.size) : 0;
    }
    if (line_rank > place->line_rank) {
        double line = pair->kind == KIND_INT || pair->kind == KIND_DOUBLE ? pair->number : -1;
        if (pair->kind == KIND_TEXT && !decimal_double(pair->text, &line)) line = -1;
        place->line_rank = line_rank;
        place->line = line >= 0 && line <= MAX_LINE ? (int32_t)line : 0;
    }
    return !otlp->error;
}

/* Number of a text of an attribute, if it has few different ones so far. */
static uint32_t text_of(Otlp *otlp, uint32_t key, Slice text) {
    if (!make_room(otlp, (void **)&otlp->text_counts, &otlp->text_room, key, sizeof(uint32_t))) return 0;
    uint32_t number = names_find(&otlp->texts, text);
    uint32_t both[2] = {key, number};
    if (number && names_find(&otlp->key_texts, (Slice){(const char *)both, sizeof both})) return number;
    if (otlp->text_counts[key] == MOST_TEXTS) return 0;
    if (!(both[1] = number_of(otlp, &otlp->texts, text.at, text.size))) return 0;
    otlp->text_counts[key]++;
    return number_of(otlp, &otlp->key_texts, both, sizeof both) ? both[1] : 0;
}

/* Note that an attribute has numbers: as its pair with the text 0, which is none. */
static int note_number(Otlp *otlp, uint32_t key) {
    const uint32_t both[2] = {key, 0};
    if (!make_room(otlp, (void **)&otlp->has_numbers, &otlp->number_room, key, 1)) return 0;
    if (otlp->has_numbers[key]) return 1;
    otlp->has_numbers[key] = 1;
    return number_of(otlp, &otlp->key_texts, both, sizeof both) != 0;
}

static int add_attribute(Otlp *otlp, TraceSpan *span, const KeyValue *pair) {
    Forest *forest = &otlp->forest;
    if (pair->kind == KIND_NONE || (pair->kind != KIND_TEXT && !isfinite(pair->number))) return fail(otlp, EBADMSG);
    uint32_t key = number_of(otlp, &otlp->keys, pair->key.at, pair->key.size);
    if (!key || key > MOST_KEYS || span->attribute_count == MOST_ATTRIBUTES) return fail(otlp, EBADMSG);
    if (forest->attribute_count == forest->attribute_room) {
        uint64_t room = forest->attribute_room * 2 + 1024;
        Attribute *larger = realloc(forest->attributes, room * sizeof *larger);
        if (!larger) return fail(otlp, ENOMEM);
        forest->attributes = larger;
        forest->attribute_room = room;
    }
    Attribute *first = forest->attributes + span->first_attribute, *at = first + span->attribute_count;
    for (const Attribute *known = first; known < at; known++)
        if (known->key == key) return fail(otlp, EBADMSG); /* no exporter writes a key twice */
    *at = (Attribute){key, pair->kind == KIND_TEXT ? SPAN_TEXT : SPAN_NUMBER, pair->number};
    if (pair->kind == KIND_TEXT) at->value = text_of(otlp, key, pair->text);
    else if (!note_number(otlp, key)) return 0;
    forest->attribute_count++;
    span->attribute_count++;
    return !otlp->error;
}

/* An attribute of a span. Lists and mappings are left out, as are lines, which are no feature. */
static int take_attribute(Otlp *otlp, TraceSpan *span, Slice bytes, Place *place) {
    KeyValue pair;
    int is_line;
    if (!read_pair(otlp, bytes, &pair) || !take_place(otlp, &pair, place, &is_line)) return 0;
    if (pair.kind == KIND_NONE || (is_line && pair.kind != KIND_TEXT)) return 1;
    if (pair.kind == KIND_DOUBLE && !isfinite(pair.number)) return 1;
    return add_attribute(otlp, span, &pair);
}

/* ---- spans ---- */

/* Number of the identity of a span, or of the span that is its parent. */
static uint32_t identity(Otlp *otlp, Slice trace, Slice span) {
    char key[1 + 2 * MOST_ID];
    if (trace.size > MOST_ID || span.size > MOST_ID) return (uint32_t)fail(otlp, EBADMSG);
    key[0] = (char)trace.size;
    if (trace.size) memcpy(key + 1, trace.at, trace.size);
    if (span.size) memcpy(key + 1 + trace.size, span.at, span.size);
    return number_of(otlp, &otlp->identities, key, 1 + trace.size + span.size);
}

static int is_failed(Otlp *otlp, Slice status) {
    Message message = message_of(status);
    Field field;
    int found = 0;
    while (message_next(&message, &field)) found |= field.key == 3 && !field.bytes.at && field.number == 2;
    if (message.is_wrong) fail(otlp, EBADMSG);
    return found;
}

/* What a span has, beside its attributes. */
typedef struct SpanFields {
    Slice trace, span, parent, name;
    uint64_t start, end;
} SpanFields;

static int take_field(Otlp *otlp, SpanFields *fields, const Field *field) {
    Slice *bytes = field->key == 1   ? &fields->trace
                   : field->key == 2 ? &fields->span
                   : field->key == 4 ? &fields->parent
                   : field->key == 5 ? &fields->name
                                     : NULL;
    uint64_t *number = field->key == 7 ? &fields->start : field->key == 8 ? &fields->end : NULL;
    if ((bytes && !field->bytes.at) || (number && field->bytes.at)) return fail(otlp, EBADMSG);
    if (bytes) *bytes = field->bytes;
    if (number) *number = field->number;
    return 1;
}

/* What a span says. Its attributes are the last ones of the forest. */
static int parse_span(Otlp *otlp, Slice bytes, uint32_t service, TraceSpan *span, SpanFields *fields) {
    *span = (TraceSpan){.first_attribute = otlp->forest.attribute_count};
    *fields = (SpanFields){0};
    Place place = {0};
    Message message = message_of(bytes);
    Field field;
    while (message_next(&message, &field)) {
        if (field.key == 13) span->links++;
        else if (field.key != 9 && field.key != 15) take_field(otlp, fields, &field);
        else if (!field.bytes.at) fail(otlp, EBADMSG);
        else if (field.key == 15) span->failed = (uint32_t)is_failed(otlp, field.bytes);
        else take_attribute(otlp, span, field.bytes, &place);
        if (otlp->error) return 0;
    }
    int is_sound = !message.is_wrong && fields->span.size && fields->name.size && fields->start < MAX_NS && fields->end < MAX_NS;
    is_sound = is_sound && fields->trace.size <= MOST_ID && fields->span.size <= MOST_ID && fields->parent.size <= MOST_ID;
    if (!is_sound || (fields->end && fields->end < fields->start)) return fail(otlp, EBADMSG);
    span->start = (int64_t)fields->start;
    span->end = fields->end ? (int64_t)fields->end : INT64_MAX;
    uint32_t group[2] = {service, number_of(otlp, &otlp->names, fields->name.at, fields->name.size)};
    uint32_t component[4] = {service, group[1], place.file, (uint32_t)place.line};
    span->group = number_of(otlp, &otlp->groups, group, sizeof group);
    span->component = number_of(otlp, &otlp->components, component, sizeof component);
    if (otlp->error || otlp->components.count >= MAX_CODE) return fail(otlp, EBADMSG);
    return 1;
}

/* Add a span to the forest, if it is the first of its identity. */
static int keep_span(Otlp *otlp, TraceSpan *span, const SpanFields *fields) {
    Forest *forest = &otlp->forest;
    span->identity = identity(otlp, fields->trace, fields->span);
    span->parent = fields->parent.size ? identity(otlp, fields->trace, fields->parent) : 0;
    if (otlp->error) return 0;
    uint32_t most = span->parent > span->identity ? span->parent : span->identity;
    if (!make_room(otlp, (void **)&otlp->by_identity, &otlp->identity_room, most, sizeof(uint32_t))) return 0;
    if (otlp->by_identity[span->identity]) {
        forest->duplicates++;
        forest->attribute_count = span->first_attribute;
        return 1;
    }
    if (forest->count == forest->room) {
        uint64_t room = forest->room * 2 + 256;
        TraceSpan *larger = room < UINT32_MAX / 4 ? realloc(forest->spans, room * sizeof *larger) : NULL;
        if (!larger) return fail(otlp, ENOMEM);
        forest->spans = larger;
        forest->room = room;
    }
    forest->spans[forest->count] = *span;
    otlp->has_links |= span->links != 0;
    otlp->by_identity[span->identity] = (uint32_t)++forest->count;
    return 1;
}

static void forget_spans(Otlp *otlp) {
    forest_clear(&otlp->forest);
    names_free(&otlp->identities);
    otlp->identities = (Names){0};
    free(otlp->by_identity);
    otlp->by_identity = NULL;
    otlp->identity_room = 0;
}

/* Part of the file for the spans of a trace (FNV-1a). */
static uint32_t part_of(Slice trace) {
    uint32_t hash = 2166136261u;
    for (size_t at = 0; at < trace.size; at++) hash = (hash ^ (uint8_t)trace.at[at]) * 16777619u;
    return hash ^ hash >> 16;
}

static int take_span(Otlp *otlp, Slice bytes, uint32_t service) {
    TraceSpan span;
    SpanFields fields;
    if (!parse_span(otlp, bytes, service, &span, &fields)) return 0;
    if (!make_room(otlp, (void **)&otlp->forest.failing, &otlp->failing_room, span.group, 1)) return 0;
    otlp->forest.failing[span.group] |= span.failed != 0;
    otlp->has_failed |= span.failed != 0;
    if (!otlp->given++ || span.start < otlp->first) otlp->first = span.start;
    if (otlp->is_spilled) {
        otlp->forest.attribute_count = 0;
        otlp->has_links |= span.links != 0;
    } else if (!keep_span(otlp, &span, &fields)) {
        return 0;
    }
    int error = spill_add(&otlp->spill, part_of(fields.trace), service, bytes);
    if (!error && spill_is_full(&otlp->spill)) {
        error = spill_write(&otlp->spill);
        if (!otlp->is_spilled) {
            otlp->is_spilled = 1;
            otlp->forest.duplicates = 0; /* they are counted as the parts are read */
            forget_spans(otlp);
        }
    }
    return !error || fail(otlp, error);
}

static int take_spilled(void *otlp, uint32_t service, Slice bytes) {
    TraceSpan span;
    SpanFields fields;
    return parse_span(otlp, bytes, service, &span, &fields) && keep_span(otlp, &span, &fields);
}

/* The name of a resource's service. */
static Slice service_of(Otlp *otlp, Slice resource_spans) {
    Slice service = {"", 0};
    Message message = message_of(resource_spans);
    Field field;
    while (message_next(&message, &field) && !otlp->error) {
        if (field.key != 1) continue;
        if (!field.bytes.at) return fail(otlp, EBADMSG), service;
        Message resource = message_of(field.bytes);
        while (message_next(&resource, &field) && !otlp->error) {
            KeyValue pair;
            if (field.key != 1) continue;
            if (!field.bytes.at || !read_pair(otlp, field.bytes, &pair)) return fail(otlp, EBADMSG), service;
            if (!is_key(&pair, "service.name")) continue;
            if (pair.kind != KIND_TEXT) return fail(otlp, EBADMSG), service;
            service = pair.text;
        }
        if (resource.is_wrong) fail(otlp, EBADMSG);
    }
    if (message.is_wrong) fail(otlp, EBADMSG);
    return service;
}

static int take_resource(Otlp *otlp, Slice resource_spans) {
    Slice name = service_of(otlp, resource_spans);
    uint32_t service = 0; /* one without spans is none of the file's */
    Message message = message_of(resource_spans);
    Field field;
    while (!otlp->error && message_next(&message, &field)) {
        if (field.key != 2) continue;
        if (!field.bytes.at) return fail(otlp, EBADMSG);
        Message scope = message_of(field.bytes);
        while (!otlp->error && message_next(&scope, &field)) {
            if (field.key != 2) continue;
            if (!field.bytes.at) return fail(otlp, EBADMSG);
            if (!service && !(service = number_of(otlp, &otlp->services, name.at, name.size))) return 0;
            take_span(otlp, field.bytes, service);
        }
        if (scope.is_wrong) fail(otlp, EBADMSG);
    }
    return !otlp->error;
}

/* All exports of a file, whether or not each stands after its length in four bytes. */
static void read_all(Otlp *otlp, const char *data, uint64_t size) {
    for (uint64_t at = 0; at < size && !otlp->error;) {
        uint64_t length = size - at;
        if (data[at] != 0x0A) {
            const uint8_t *head = (const uint8_t *)data + at;
            if (length < 4) {
                fail(otlp, EBADMSG);
                return;
            }
            length = (uint64_t)head[0] << 24 | (uint64_t)head[1] << 16 | (uint64_t)head[2] << 8 | head[3];
            at += 4;
        }
        if (length > size - at) {
            fail(otlp, EBADMSG);
            return;
        }
        Message message = message_of((Slice){data + at, length});
        Field field;
        while (!otlp->error && message_next(&message, &field)) {
            if (field.key != 1) continue;
            if (field.bytes.at) take_resource(otlp, field.bytes);
            else fail(otlp, EBADMSG);
        }
        if (message.is_wrong) fail(otlp, EBADMSG);
        at += length;
    }
}

EXPORTED Otlp *otlp_open(int file, uint32_t run_bytes) {
    Otlp *otlp = calloc(1, sizeof(Otlp));
    if (otlp) otlp->spill = (Spill){.file = file, .run_bytes = run_bytes};
    return otlp;
}

EXPORTED int otlp_feed(Otlp *otlp, const char *data, uint64_t size) {
    read_all(otlp, data, size);
    return otlp->error;
}

EXPORTED int otlp_finish(Otlp *otlp) {
    if (!otlp->error && otlp->is_spilled) fail(otlp, spill_write(&otlp->spill));
    else if (!otlp->error && otlp->forest.count) fail(otlp, forest_choose(&otlp->forest, otlp->by_identity));
    return otlp->error;
}

EXPORTED uint32_t otlp_texts(const Otlp *otlp, uint32_t table, const char **bytes, const uint64_t **ends) {
    const Names *tables[] = {&otlp->services, &otlp->names, &otlp->files, &otlp->keys, &otlp->texts, &otlp->components, &otlp->key_texts};
    const Names *names = tables[table % 7];
    *bytes = names->bytes;
    *ends = names->ends;
    return names->count;
}

EXPORTED void otlp_counts(const Otlp *otlp, int64_t *words) {
    const Forest *forest = &otlp->forest;
    const int64_t found[] = {
        (int64_t)(otlp->is_spilled ? otlp->given : forest->count),
        (int64_t)forest->duplicates,
        (int64_t)forest->orphans,
        (int64_t)forest->outlive,
        (int64_t)forest->overlap,
        otlp->is_spilled ? otlp->first : forest->root_count ? forest->spans[forest->roots[0]].start : 0,
        otlp->has_failed,
        otlp->has_links,
    };
    memcpy(words, found, sizeof found);
}

EXPORTED int otlp_play(Otlp *otlp, Core *core, const int32_t *codes, const int32_t *sites, const int32_t *features,
                       const int32_t *category_features, const double *categories, int32_t failed, int32_t links, int32_t key,
                       int64_t *outcome) {
    const SpanMeaning meaning = {codes, sites, features, category_features, categories, failed, links, key};
    if (!otlp->is_spilled) return forest_play(&otlp->forest, core_tree(core), &meaning, outcome);
    outcome[0] = INT64_MIN;
    outcome[1] = 0;
    for (uint32_t part = 0; part < SPILL_PARTS; part++) {
        int64_t of_part[2];
        int error = spill_read(&otlp->spill, part, take_spilled, otlp);
        if (!error) error = otlp->error;
        if (!error && otlp->forest.count) {
            error = forest_choose(&otlp->forest, otlp->by_identity);
            if (!error) error = forest_play(&otlp->forest, core_tree(core), &meaning, of_part);
            if (!error && of_part[0] > outcome[0]) outcome[0] = of_part[0];
            if (!error) outcome[1] += of_part[1];
        }
        if (error) return error;
        forget_spans(otlp);
    }
    return 0;
}

EXPORTED void otlp_close(Otlp *otlp) {
    Names *all[] = {&otlp->services, &otlp->names,      &otlp->files,     &otlp->keys,  &otlp->texts,
                    &otlp->components, &otlp->key_texts, &otlp->identities, &otlp->groups};
    for (size_t which = 0; which < sizeof all / sizeof *all; which++) names_free(all[which]);
    free(otlp->text_counts);
    free(otlp->has_numbers);
    free(otlp->by_identity);
    forest_free(&otlp->forest);
    spill_free(&otlp->spill);
    free(otlp);
}
