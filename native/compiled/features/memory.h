/* Reads of memory that may not be there: what a pointer of the program points to may be freed, or the pointer may be none.
 * The kernel copies, so a bad address is a failed read and never a signal, whatever other threads unmap meanwhile.
 *
 * Ownership: none. Threads: any. Cost: about 1 us a call, however many copies it makes. errno is not kept. */
#ifndef PERFLAW_COMPILED_FEATURES_MEMORY_H
#define PERFLAW_COMPILED_FEATURES_MEMORY_H

#include <stdint.h>
#include <sys/uio.h>

enum { MAX_COPIES = 64, CHUNK_BYTES = 1024, MAX_TEXT = 1 << 16 };

/* Copies to be made at once. */
typedef struct Copies {
    struct iovec to[MAX_COPIES], from[MAX_COPIES];
    uint8_t of[MAX_COPIES]; /* the caller's number of each */
    uint32_t count;
} Copies;

/* Make all copies. Bit n of the result is set if one with the caller's number n failed. */
uint64_t memory_copy(const Copies *copies);
/* Characters before the zero byte of a text, of which there are at most `most`. -1 if it cannot be read, or has no end
 * within MAX_TEXT. `chunk` has room for CHUNK_BYTES. */
int64_t memory_text_length(uintptr_t address, uint32_t most, char *chunk);

#endif
