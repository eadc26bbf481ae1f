#include "interrupt.h"

#include <errno.h>
#include <signal.h>

#define EXPORTED __attribute__((visibility("default")))

static struct sigaction handler;
static volatile sig_atomic_t by_terminal = -1;

static void note(int number, siginfo_t *about, void *context) {
    by_terminal = about->si_code == SI_KERNEL;
    if (handler.sa_flags & SA_SIGINFO) handler.sa_sigaction(number, about, context);
    else handler.sa_handler(number);
}

EXPORTED int core_watch_interrupts(void) {
    struct sigaction now;
    if (sigaction(SIGINT, NULL, &now)) return errno;
    int has_info = now.sa_flags & SA_SIGINFO;
    if (has_info && now.sa_sigaction == note) return 0;
    if (!has_info && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return ENOENT;
    handler = now;
    now.sa_sigaction = note;
    now.sa_flags |= SA_SIGINFO;
    return sigaction(SIGINT, &now, NULL) ? errno : 0;
}

EXPORTED int core_interrupted_by_terminal(void) { return by_terminal; }
