/* Functions whose first instructions are in a loop. Usage: heads NUMBER; or heads serve, which goes on until its input ends. With
 * CANCELS, a thread is ended within such a loop, and has something to clean up. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define ASSEMBLED(name, code) \
    __asm__(".globl " #name "\n.type " #name ", @function\n" #name ":\n" code ".size " #name ", .-" #name "\n")

typedef struct List { struct List *next; long value; } List;
static volatile long done;

/* What compilers make of these is up to them. */
APART List *last(List *list) {
    while (list->next) list = list->next;
    return list;
}
APART long length(const char *text) {
    const char *at = text;
    while (*at) at++;
    return at - text;
}
APART long tail(long number, long sum) { return number ? tail(number - 1, sum + number) : sum; }
/* These jump to one another: each jump is a call. */
APART long pong(long number);
APART long ping(long number) {
    done++;
    return number ? pong(number - 1) : 7;
}
APART long pong(long number) {
    done++;
    return ping(number);
}

/* Back to the first instruction, to the second one, and to both from within and around an inner loop. */
long to_first(long turns, long sum);
ASSEMBLED(to_first, "leaq 1(%rsi), %rsi\n decq %rdi\n jnz to_first\n movq %rsi, %rax\n ret\n");
long to_second(long turns);
ASSEMBLED(to_second, "xorl %eax, %eax\n 1: addq %rdi, %rax\n decq %rdi\n jnz 1b\n ret\n");
long nested(long turns, long sum);
ASSEMBLED(nested, "0: movl $3, %ecx\n"
                  "1: incq %rsi\n testb $1, %cl\n jz 2f\n incq %rsi\n"
                  "2: decl %ecx\n jnz 1b\n leaq seven(%rip), %rax\n addq (%rax), %rsi\n"
                  "decq %rdi\n jz 3f\n testb $1, %dil\n jz 0b\n jmp 0b\n"
                  "3: movq %rsi, %rax\n ret\n");
long seven = 7;
/* The same call goes on: by a jump from unlikely code elsewhere, from far away, after a call, by a table. */
long unlikely(long turns, long sum);
ASSEMBLED(unlikely, "leaq 1(%rsi), %rsi\n decq %rdi\n jnz unlikely.cold\n movq %rsi, %rax\n ret\n");
__asm__(".pushsection .text.unlikely, \"ax\", @progbits\n .type unlikely.cold, @function\n"
        "unlikely.cold: jmp unlikely\n .size unlikely.cold, .-unlikely.cold\n .popsection\n");
long far(long turns, long sum);
ASSEMBLED(far, "leaq 1(%rsi), %rsi\n .fill 500, 1, 0x90\n decq %rdi\n jnz far\n movq %rsi, %rax\n ret\n");
long with_calls(long turns, long sum);
ASSEMBLED(with_calls, "pushq %rdi\n pushq %rsi\n subq $8, %rsp\n movl $1, %edi\n xorl %esi, %esi\n call to_first\n addq $8, %rsp\n"
                      "popq %rsi\n addq %rax, %rsi\n popq %rdi\n decq %rdi\n jnz with_calls\n movq %rsi, %rax\n ret\n");
long by_table(long turns, long sum);
ASSEMBLED(by_table, "leaq 1(%rsi), %rsi\n decq %rdi\n xorl %eax, %eax\n testq %rdi, %rdi\n setz %al\n leaq 1f(%rip), %rdx\n"
                    "movslq (%rdx,%rax,4), %rax\n addq %rdx, %rax\n jmp *%rax\n 2: movq %rsi, %rax\n ret\n"
                    ".pushsection .rodata\n .balign 4\n 1: .long by_table-1b, 2b-1b\n .popsection\n");
/* Until there is something else. */
void spin(volatile int *goes_on);
ASSEMBLED(spin, ".cfi_startproc\n 1: cmpl $0, (%rdi)\n jne 1b\n ret\n .cfi_endproc\n");

APART long step(long number) { return done += number; }

APART int round_of_all(void) {
    List third = {NULL, 3}, second = {&third, 2}, first = {&second, 1};
    step(1);
    int wrong = last(&first) != &third;
    wrong += length("twelve bytes") != 12;
    wrong += tail(10, 0) != 55;
    wrong += ping(3) != 7;
    wrong += to_first(10, 0) != 10;
    wrong += to_second(10) != 55;
    wrong += nested(4, 0) != 4 * (3 + 2 + 7);
    wrong += unlikely(10, 0) != 10;
    wrong += far(10, 0) != 10;
    wrong += with_calls(10, 0) != 10;
    wrong += by_table(10, 0) != 10;
    return wrong;
}

static volatile int goes_on = 1, is_there;
#ifdef CANCELS
static volatile int cleaned;
static void clean(int *unused) {
    (void)unused;
    cleaned = 1;
}
static void *thread(void *unused) {
    __attribute__((cleanup(clean))) int guard = 0;
    (void)guard;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    is_there = 1;
    spin(&goes_on);
    return unused;
}
static int is_wrong_after_cancelling(void) {
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    usleep(50000);
    pthread_cancel(other);
    pthread_join(other, NULL);
    return !cleaned;
}
#else
static int is_wrong_after_cancelling(void) { return 0; }
static void *thread(void *unused) {
    is_there = 1;
    spin(&goes_on);
    return unused;
}
#endif

int main(int count, char **words) {
    int wrong = 0, serves = count > 1 && !strcmp(words[1], "serve");
    pthread_t other;
    struct pollfd input = {0, POLLIN, 0};
    if (serves) pthread_create(&other, NULL, thread, NULL);
    while (serves && !is_there) usleep(1000);
    if (serves) puts("ready"), fflush(stdout);
    for (long at = serves ? 0 : strtol(words[1], NULL, 10); serves ? poll(&input, 1, 0) == 0 : at > 0; at--) wrong += round_of_all();
    wrong += is_wrong_after_cancelling();
    goes_on = 0;
    if (serves) pthread_join(other, NULL);
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
