#!/bin/sh
# Runs benchmarks by name, one after the other, all of them even where one misses its bar; then exits with status 1.
missed=""
for name in "$@"; do
    echo "== benchmarks/$name.py"
    .venv/bin/python "benchmarks/$name.py" || missed="$missed $name"
done
[ -z "$missed" ] || { echo "missed:$missed" >&2; exit 1; }
