/* A library of plugs.c: -DNAME=one -DANSWER=7. Its constructor calls what is recorded, of the program and of itself. */
#define JOIN(a, b) a##b
#define NAMED(a, b) JOIN(a, b)

int plug_begins(int number);
int plug_answer = ANSWER;

__attribute__((noinline)) int NAMED(plug_inner_, NAME)(int number) {
    volatile int product = number;
    product *= ANSWER;
    return product;
}
int plug_work(int number) { return NAMED(plug_inner_, NAME)(number) + (plug_answer != ANSWER); }
__attribute__((noinline)) int NAMED(plug_begun_, NAME)(void) { return plug_begins(ANSWER) * 3 + 1; }
__attribute__((constructor)) static void begin(void) { plug_answer += NAMED(plug_begun_, NAME)() == 0; }
