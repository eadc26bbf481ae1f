#!/bin/sh
# Compiles the kernel with the flags given, runs it, and prints the flags that the compiler says it took: it writes them into the program.
set -eu
mkdir -p work
gcc "$@" -frecord-gcc-switches kernel.c -o work/kernel -lm
work/kernel "${KERNEL_SECONDS:-0.4}"
readelf -p .GCC.command.line work/kernel | tr ' ' '\n' | grep '^-'
