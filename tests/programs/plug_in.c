/* A library that programs load while they run. */
__attribute__((noinline)) int plug_in_inner(int number) { return number * 3 + 1; }
int plug_in(int number) {
    int sum = 0;
    for (volatile int at = 0; at < number; at++) sum += plug_in_inner(at);
    return sum;
}
