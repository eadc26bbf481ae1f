// Allocates and locks what its functions say: compiled with hooks, recorded with --metric.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define QUIET __attribute__((no_instrument_function))
static std::mutex lock;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static std::condition_variable ready;
static bool is_ready;
static std::atomic<bool> is_held, is_wanted, is_awaited;

extern "C" {
__attribute__((noinline)) void *takes(size_t size) { return malloc(size); }
__attribute__((noinline)) void *grows(void *block, size_t size) { return realloc(block, size); }
__attribute__((noinline)) void *aligned(size_t size) { return aligned_alloc(64, size); }
__attribute__((noinline)) char *makes(size_t size) { return new char[size]; }
__attribute__((noinline)) void holds() {
    lock.lock();
    is_held = true;
    while (!is_wanted) usleep(100);
    usleep(200000);
    lock.unlock();
}
__attribute__((noinline)) void waits() { lock.lock(); lock.unlock(); }
__attribute__((noinline)) void reads() { pthread_rwlock_rdlock(&shared); usleep(20000); pthread_rwlock_unlock(&shared); }
__attribute__((noinline)) void awaits() {
    std::unique_lock<std::mutex> held(lock);
    is_awaited = true;
    while (!is_ready) ready.wait(held);
}
__attribute__((noinline)) void touches(size_t pages) {
    char *block = (char *)mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t page = 0; page < pages; page++) block[page * 4096] = 1;
    munmap(block, pages * 4096);
}
__attribute__((noinline)) void sleeps() { for (int i = 0; i < 5; i++) usleep(2000); }
}

QUIET int main() {
    for (size_t n = 1; n <= 5; n++) {
        free(grows(takes(1000 * n), 5000 * n));
        free(aligned(640 * n));
        delete[] makes(100 * n);
        touches(10 * n);
        sleeps();
    }
    std::thread holder(holds);
    while (!is_held) usleep(100);
    is_wanted = true; // the holder keeps it for 200 ms from here, however late this thread came
    waits();
    holder.join();
    reads();
    std::thread waiter(awaits);
    while (!is_awaited) usleep(100);
    lock.lock(); // the waiter has given it back, so it waits
    usleep(200000);
    is_ready = true;
    lock.unlock();
    ready.notify_one();
    waiter.join();
}
