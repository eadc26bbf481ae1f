/* For programs whose branches are recorded: compile them with
 *
 *     -g -fsanitize-coverage=trace-pc $(perflaw --cflags) -include perflaw/branches.h
 *
 * The compiler then calls the function below in every block of code. Until `perflaw record --collect branches` counts branches,
 * a block costs a call, a load and a test; the source needs no change.
 *
 * Ownership: none. Threads: any. */
#ifndef PERFLAW_BRANCHES_H
#define PERFLAW_BRANCHES_H

#ifdef __cplusplus
extern "C" {
#endif

/* Each program and library has its own. The attribute would conflict with what gcc knows of the function. */
__asm__(".hidden __sanitizer_cov_trace_pc");

/* Set by what counts. */
__attribute__((weak, visibility("hidden"))) void (*volatile perflaw_on_block)(const void *returns);

#if defined(__clang__)
__attribute__((weak, used, noinline, no_sanitize("coverage"), no_instrument_function))
#else
__attribute__((weak, used, noinline, no_sanitize_coverage, no_instrument_function))
#endif
void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void) {
    void (*on_block)(const void *) = perflaw_on_block;
    if (on_block) on_block(__builtin_return_address(0));
}

#ifdef __cplusplus
}
#endif

#endif
