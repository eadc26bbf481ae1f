#include "memory.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiled/recording.h"

/* Copy as many as can be, in their order. Gives the bytes copied; -1 if the first failed. */
static int64_t copy_some(const struct iovec *to, const struct iovec *from, uint32_t count) {
    return syscall(SYS_process_vm_readv, recording.pid, to, (unsigned long)count, from, (unsigned long)count, 0ul);
}

/* The kernel stops at the first bad address: what was copied before it is whole, and what comes after it is tried anew. */
uint64_t memory_copy(const Copies *copies) {
    uint64_t failed = 0;
    for (uint32_t at = 0; at < copies->count;) {
        int64_t copied = copy_some(copies->to + at, copies->from + at, copies->count - at);
        while (at < copies->count && copied >= (int64_t)copies->to[at].iov_len) copied -= (int64_t)copies->to[at++].iov_len;
        if (at < copies->count) failed |= 1ull << copies->of[at++];
    }
    return failed;
}

int64_t memory_text_length(uintptr_t address, uint32_t most, char *chunk) {
    uint32_t limit = most && most < MAX_TEXT ? most : MAX_TEXT;
    for (uint32_t at = 0; at < limit;) {
        uint32_t size = CHUNK_BYTES - (uint32_t)((address + at) % CHUNK_BYTES); /* no page is crossed */
        if (size > limit - at) size = limit - at;
        struct iovec to = {chunk, size}, from = {(void *)(address + at), size};
        if (copy_some(&to, &from, 1) != (int64_t)size) return -1;
        const char *end = memchr(chunk, 0, size);
        if (end) return (int64_t)at + (end - chunk);
        at += size;
    }
    return most && most <= MAX_TEXT ? (int64_t)most : -1;
}
