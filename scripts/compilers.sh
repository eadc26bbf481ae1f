#!/bin/sh
# Sees to it that the tests find what compiles C and C++ programs, reads them and traces them.
set -eu
wanted="gcc g++ clang gcov strip uftrace"
packages="gcc g++ clang binutils uftrace"
missing=
for tool in $wanted; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
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
