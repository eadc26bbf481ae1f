#include "cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__x86_64__) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAVE_RSEQ 1
#endif

static int64_t reading_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t cpu_spent_ns(void) { return reading_ns(CLOCK_THREAD_CPUTIME_ID); }

/* ns that the calling thread waited for a CPU by the scheduler's account, -1 if the kernel keeps none. The file is not
 * kept open, for the program would see it. */
static int64_t run_delay_ns(void) {
    char text[96];
    long long spent, delay = -1;
    int error = errno, file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    errno = error;
    if (length <= 0) return -1;
    text[length] = 0;
    return sscanf(text, "%lld %lld", &spent, &delay) == 2 ? delay : -1;
}

static int64_t voluntary_switches(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

int64_t cpu_of_process_ns(void) { return reading_ns(CLOCK_PROCESS_CPUTIME_ID); }

#ifdef HAVE_RSEQ
/* The kernel expects the signature before the address that it would abort to. It never aborts, because no code is
 * covered. */
static const struct {
    uint32_t signature, abort[3];
} abort_target = {RSEQ_SIG, {0}};
static const struct rseq_cs no_code __attribute__((aligned(32))) = {
    .start_ip = (uintptr_t)&abort_target, .post_commit_offset = 1, .abort_ip = (uintptr_t)abort_target.abort};
const uint64_t cpu_armed = (uintptr_t)&no_code;

static volatile uint64_t *flag_of_thread(void) {
    if (!__rseq_size) return NULL;
    return (volatile uint64_t *)((char *)__builtin_thread_pointer() + __rseq_offset + offsetof(struct rseq, rseq_cs));
}
#else
const uint64_t cpu_armed = 0;
static volatile uint64_t *flag_of_thread(void) { return NULL; }
#endif

const char *cpu_start(Cpu *cpu, const Clock *clock) {
    *cpu = (Cpu){.flag = flag_of_thread()};
    cpu->wall = cpu->last_event = clock_ns(clock);
    cpu->spent = cpu_spent_ns();
    cpu->queued = run_delay_ns();
    cpu->voluntary = voluntary_switches();
    cpu->gap = cpu->flag ? CPU_STEAL_GAP_NS : CPU_GAP_NS;
    if (!cpu->flag) return "CLOCK_THREAD_CPUTIME_ID after gaps of 5 us: rseq is not registered (glibc before 2.35)";
    *cpu->flag = cpu_armed;
    return "CLOCK_THREAD_CPUTIME_ID after each switch, which rseq tells, and after gaps of 50 us";
}

void cpu_ignore(Cpu *cpu) {
    cpu->flag = (volatile uint64_t *)&cpu_armed;
    cpu->gap = INT64_MAX;
}

/* Both clocks at one moment, which is given. A kernel likes to switch at the end of a system call, so after the CPU
 * clock was read: then both are read again, because what passed meanwhile is off the CPU but not in the reading. Such
 * a switch need not clear the flag. */
static int64_t readings(const Clock *clock, int64_t *spent) {
    int64_t moment, after = clock_ns(clock);
    int tries = 4;
    do {
        moment = after;
        *spent = cpu_spent_ns();
        after = clock_ns(clock);
    } while (after - moment > CPU_GAP_NS && --tries);
    return moment;
}

int64_t cpu_off(Cpu *cpu, const Clock *clock, int64_t *now) {
    if (cpu->flag) *cpu->flag = cpu_armed;
    int64_t spent, moment = readings(clock, &spent);
    if (moment - *now > CPU_GAP_NS) *now = moment;
    /* The sum since the beginning is taken, so that it never adds up that the two readings are not simultaneous. */
    int64_t off = moment - cpu->wall - (spent - cpu->spent), more = off - cpu->reported;
    if (more <= 0) return 0;
    cpu->reported = off;
    return more;
}

int64_t cpu_off_since(Cpu *cpu, const Clock *clock, int64_t last, int64_t *now) {
    int64_t off = cpu_off(cpu, clock, now), passed = *now > last ? *now - last : 0;
    if (off && !passed) cpu_queued(cpu, off);
    return off < passed ? off : passed;
}

int64_t cpu_off_in_tracer(Cpu *cpu, const Clock *clock, int64_t *now) {
    int64_t off = cpu_off(cpu, clock, now);
    if (off) cpu_queued(cpu, off);
    return off;
}

int64_t cpu_queued(Cpu *cpu, int64_t off) {
    int64_t before = cpu->queued, more = 0;
    if (off > CPU_QUEUED_NS) cpu->queued = run_delay_ns();
    if (cpu->queued > before) more = cpu->queued - before;
    int64_t voluntary = voluntary_switches(); /* with those of the reading of a file above */
    if (voluntary == cpu->voluntary) return off; /* it never gave up the CPU */
    cpu->voluntary = voluntary;
    return more < off ? more : off;
}

void cpu_leave_out(Cpu *cpu, int64_t wall, int64_t spent) {
    cpu->wall += wall;
    cpu->spent += spent;
    cpu_queued(cpu, wall - spent);
}
