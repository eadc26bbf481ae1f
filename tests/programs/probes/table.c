/* Every probe of Table 1, with known counts; the file is C and C++. `table N` executes each N times. */
#include <perflaw.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { QUERY = 7 };
PERFLAW_PROBE(QUERY, "query", "");
PERFLAW_PROBE(8, "rows", "rows");
PERFLAW_FIELDS(8, "rows,bytes");
PERFLAW_PROBE(1023, "a name that is far longer than the 47 letters that an entry has room for", "");

static volatile int work;

/* Four pages that were never touched: four minor faults. */
static void fault(void) {
    char *pages = (char *)mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | 0x20 /* anonymous */, -1, 0);
    for (int page = 0; page < 4; page++) ((volatile char *)pages)[page * 4096] = 1;
    munmap(pages, 4 * 4096);
}

static void each(int at) {
    CNT_PROBE_BEGIN(1, 4);
    LAT_PROBE_BEGIN(QUERY, 1);
    TPT_PROBE_BEGIN(3, 3);
    LLC_PROBE_BEGIN(4, 1);
    FLT_PROBE_BEGIN(5, 1);
    CTXSW_PROBE_BEGIN(6, 5);
    PERFCNTR_PROBE_BEGIN(9, 1, 1);
    work = work + at;
    fault();
    PERFCNTR_PROBE_END(9);
    CTXSW_PROBE_END(6);
    FLT_PROBE_END(5);
    LLC_PROBE_END(4);
    TPT_PROBE_END(3);
    LAT_PROBE_END(QUERY);
    CNT_PROBE_END(1);
    SNAPSHOT_PROBE(8, 1, at, -at);
    SNAPSHOT_PROBE(10, 1);
    SNAPSHOT_PROBE(11, 2, 1, 2, 3, 4, 5, at);
}

static int never_called(void) {
    LAT_PROBE_BEGIN(12, 1);
    LAT_PROBE_END(12);
    return 0;
}

int main(int count, char **words) {
    SET_PERFCNTR(1, 0x2e, 0x41);
    for (int at = 0; at < atoi(words[1]); at++) each(at);
    return count == 99 ? never_called() : 0;
}
