/* Opens and closes libraries while it is recorded: opening LIBRARY ... For each line of standard input it opens the next one, waits until
 * its function was changed, calls it and closes it. In the end other memory lies where the library was. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE 16384

__attribute__((noinline, noclone)) int plug_caller(int (*work)(int), int number) {
    int sum = 0;
    for (int at = 0; at < number; at++) sum += work(at);
    return sum;
}

int main(int count, char **words) {
    char line[64], *base = NULL;
    int wrong = count < 2, opened = 0;
    alarm(120);
    puts("ready");
    fflush(stdout);
    while (read(0, line, sizeof line) > 0) {
        void *library = dlopen(words[1 + opened++ % (count - 1)], RTLD_NOW);
        volatile unsigned char *code = dlsym(library, "plug_work");
        while (*code != 0xe9) usleep(1000);
        wrong += plug_caller((int (*)(int))dlsym(library, "plug_work"), 5) != 5 * 7 + 10;
        base = (char *)((struct link_map *)library)->l_addr;
        dlclose(library);
        puts("called");
        fflush(stdout);
    }
    char *mapped = mmap(base, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    int is_reused = mapped == base; /* if nothing else was faster */
    if (is_reused) memset(mapped, 0x90, SIZE);
    puts("mapped");
    fflush(stdout);
    while (access(words[1], F_OK) == 0) usleep(1000);
    for (int at = 0; is_reused && at < SIZE; at++) wrong += mapped[at] != (char)0x90;
    printf("%d wrong\n", wrong);
}
