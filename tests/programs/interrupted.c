/* A signal handler interrupts a function at its second instruction, which cannot read what its argument points to, and waits for
 * a line before it returns there with a better argument. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
static long seven = 7;
static volatile int goes_on = 1;

long entered(const long *place);
__asm__(".globl entered\n"
        ".type entered, @function\n"
        "entered:\n"
        "    xorl %eax, %eax\n"
        "    movq (%rdi), %rax\n"
        "    addq $1, %rax\n"
        "    ret\n"
        ".size entered, .-entered\n");

APART long other(long number) { return number * 3 + 1; }

static void *call_other(void *sum) {
    while (goes_on) {
        *(long *)sum += other(*(long *)sum);
        usleep(1000);
    }
    return NULL;
}

static void handle(int number, siginfo_t *about, void *context) {
    char line;
    (void)number, (void)about;
    if (write(1, "ready\n", 6) != 6 || read(0, &line, 1) != 1) _exit(1);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RDI] = (greg_t)&seven;
}

int main(void) {
    pthread_t thread;
    long sum = 0;
    char line;
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    pthread_create(&thread, NULL, call_other, &sum);
    int wrong = entered(NULL) != 8;
    puts("returned");
    fflush(stdout);
    while (read(0, &line, 1) == 1) continue;
    for (int at = 0; at < 1000; at++) wrong += entered(&seven) != 8;
    goes_on = 0;
    pthread_join(thread, NULL);
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
