#!/bin/sh
# Sees to it that the tests find what compiles C and C++ programs, reads them and traces them, and PHP with Xdebug; compilers.sh all for the slow ones too.
set -eu
wanted="gcc g++ clang llvm-cov gcov strip uftrace lttng babeltrace2 lttng-gen-tp php"
packages="gcc g++ clang llvm libclang-rt-dev libc++-dev libc++abi-dev binutils uftrace lttng-tools liblttng-ust-dev babeltrace2 php-cli php-xdebug php-parser"
if [ "${1:-}" = all ]; then # slow tests record a Java program
    wanted="$wanted java javac jfr"
    packages="$packages default-jdk-headless"
fi
missing=
for tool in $wanted; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
# Programs with clang's coverage are linked with a part of its runtime, which is no command.
runtime=$(clang --print-resource-dir 2>/dev/null || true)
ls "$runtime"/lib/*/libclang_rt.profile* >/dev/null 2>&1 || missing="$missing libclang_rt.profile"
# Nor is clang's own C++ library.
echo '#include <ciso646>' | clang++ -stdlib=libc++ -E -x c++ - >/dev/null 2>&1 || missing="$missing libc++"
# An extension and a package of PHP are no commands either.
[ -n "$(php -r 'echo phpversion("xdebug");' 2>/dev/null || true)" ] || missing="$missing php-xdebug"
[ -e /usr/share/php/PhpParser/autoload.php ] || missing="$missing php-parser"
if [ -z "$missing" ]; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing:$missing; on Debian: apt-get install -y $packages" >&2
    exit 2
fi
echo "installing $packages"
# shellcheck disable=SC2086 (words)
apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
