#!/bin/sh
# Sees to it that the tests find what compiles C and C++ programs and reads them: gcc, g++, gcov, strip.
set -eu
if command -v gcc >/dev/null && command -v g++ >/dev/null && command -v gcov >/dev/null && command -v strip >/dev/null; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "gcc, g++, gcov or strip is missing; on Debian: apt-get install -y gcc g++ binutils" >&2
    exit 2
fi
echo "installing gcc, g++ and binutils"
apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc g++ binutils >/dev/null
