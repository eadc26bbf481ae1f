#!/bin/sh
# Sees to it that the studies under examples/ and benchmarks of servers find what they run: servers.sh, or servers.sh tests for what the tests make of them.
set -eu
missing=
need() { # what, package
    [ -n "$1" ] || missing="$missing $2"
}
need "$(command -v gcc || true)" gcc
need "$(command -v readelf || true)" binutils
need "$(command -v sqlite3 || true)" sqlite3
need "$(ls /usr/include/sqlite3.h 2>/dev/null || true)" libsqlite3-dev
need "$(ls /usr/lib/postgresql/*/bin/postgres 2>/dev/null || true)" postgresql
if [ "${1:-}" != tests ]; then
    need "$(command -v redis-server || true)" redis-server
    need "$(command -v redis-benchmark || true)" redis-tools
    need "$(ls /usr/sbin/nginx 2>/dev/null || true)" nginx
    need "$(command -v memcached || true)" memcached
    need "$(ls /usr/sbin/lighttpd 2>/dev/null || true)" lighttpd
    need "$(command -v jq || true)" jq
    need "$(command -v ffmpeg || true)" ffmpeg
    need "$(ls /usr/sbin/mariadbd 2>/dev/null || true)" mariadb-server
    need "$(ls /usr/include/fftw3.h 2>/dev/null || true)" libfftw3-dev
    need "$(ls /usr/lib/apache2/modules/mod_mpm_prefork.so 2>/dev/null || true)" apache2-bin
fi
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing; on Debian: apt-get install -y$missing" >&2
    exit 2
fi
echo "installing$missing"
# RUNLEVEL=1: the packages are not to start servers of their own; each example starts one of its own, on loopback.
# shellcheck disable=SC2086 (words)
apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
