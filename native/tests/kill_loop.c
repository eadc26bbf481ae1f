/* Enters and exits until it is killed, counting in a shared page. `begun` is stored before an exit and `done` after it:
 * a reader of the dead process's arena must find done <= completed <= begun, which differ by the one in flight. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calltree.h"

typedef struct Page {
    volatile uint64_t ready, begun, done;
} Page;

static void leave(Arena *arena, Thread *thread, Page *page, int64_t stamp, int64_t frame) {
    page->begun++;
    arena_publish();
    calltree_exit(arena, thread, stamp, frame);
    arena_publish();
    page->done++;
    page->ready = 1;
}

/* New sites now and then, so that tables, rows and the file grow while the kill comes. */
int main(int count, char **words) {
    Arena arena;
    if (count != 3 || arena_create(&arena, words[1], 1ull << 33) || calltree_begin(&arena, 1, MAX_DISTANCE)) return 1;
    int file = open(words[2], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096)) return 1;
    Page *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) return 1;
    Thread *thread = calltree_thread(&arena, 1);
    uint64_t chance = 1;
    for (int64_t stamp = 0;; stamp += 8) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        int32_t site = (int32_t)(chance >> 60), spread = (int32_t)(chance >> 40 & 1023);
        calltree_enter(&arena, thread, &(Event){stamp, 1, 1, 0, (int32_t)(chance >> 34), EVENT_ENTER});
        calltree_enter(&arena, thread, &(Event){stamp + 1, 2, 2, site, -1, EVENT_ENTER});
        calltree_enter(&arena, thread, &(Event){stamp + 2, 3, 3, spread, -1, EVENT_ENTER});
        leave(&arena, thread, page, stamp + 3, 3);
        leave(&arena, thread, page, stamp + 4, 2);
        leave(&arena, thread, page, stamp + 6 + site, 1);
    }
}
