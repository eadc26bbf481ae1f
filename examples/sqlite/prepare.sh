#!/bin/sh
# Builds the program and makes its table of taxi trips, once, in work/. TRIPS_ROWS says how many (a million).
set -eu
mkdir -p work
flags=$(perflaw --cflags 2>/dev/null) || flags=-I../../native/include
gcc -O2 -pthread $flags query_trips.c -o work/query_trips -lsqlite3
gcc -O2 make_trips.c -o work/make_trips -lsqlite3 -lm
made=work/trips-${TRIPS_ROWS:-1000000}
if [ ! -e "$made" ]; then
    rm -f work/trips-* work/trips.db
    work/make_trips work/trips.db "${TRIPS_ROWS:-1000000}" 1
    touch "$made"
fi
