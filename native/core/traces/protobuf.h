/* Messages of Protocol Buffers without their schema, as imports/protobuf.py reads them: fields by number.
 *
 * Ownership: slices point into the message. Threads: any. Cost: some nanoseconds a field.
 */
#ifndef PERFLAW_PROTOBUF_H
#define PERFLAW_PROTOBUF_H

#include <string.h>

#include "json.h"

typedef struct Message {
    const uint8_t *at, *end;
    int is_wrong; /* it is damaged; no field is given any more */
} Message;
typedef struct Field {
    uint64_t key;    /* its number */
    uint64_t number; /* a varint, or the bits of a fixed number */
    Slice bytes;     /* at is NULL if it is a number */
} Field;

static inline Message message_of(Slice bytes) {
    const uint8_t *at = (const uint8_t *)bytes.at;
    return (Message){at, at + bytes.size, 0};
}

static inline int message_varint(Message *message, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; message->at < message->end && shift < 70; shift += 7) {
        uint8_t byte = *message->at++;
        if (shift < 64) *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return 1;
    }
    message->is_wrong = 1;
    return 0;
}

/* The next field; 0 at the end, or where the message is damaged. */
static inline int message_next(Message *message, Field *field) {
    uint64_t key;
    if (message->is_wrong || message->at == message->end || !message_varint(message, &key)) return 0;
    uint64_t left, size = (key & 7) == 1 ? 8 : 4;
    *field = (Field){.key = key >> 3};
    switch (key & 7) {
        case 0: return message_varint(message, &field->number);
        case 2:
            if (!message_varint(message, &size)) return 0;
            /* fall through */
        case 1:
        case 5:
            left = (uint64_t)(message->end - message->at);
            if (size > left) return !(message->is_wrong = 1);
            if ((key & 7) == 2) field->bytes = (Slice){(const char *)message->at, size};
            else memcpy(&field->number, message->at, size);
            message->at += size;
            return 1;
        default: return !(message->is_wrong = 1);
    }
}

#endif
