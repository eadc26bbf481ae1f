#!/bin/sh
# Every check: lint, types and all tests on each Python found (3.11 must be there).
set -eu
sh scripts/browser.sh
sh scripts/compilers.sh
sh scripts/servers.sh tests
sh scripts/promtool.sh
sh scripts/environment.sh .venv-3.11 3.11 test
echo "lint and types"
.venv-3.11/bin/ruff check .
.venv-3.11/bin/ruff format --check --quiet .
.venv-3.11/bin/mypy
(cd src/perflaw/collect/target && ../../../../.venv-3.11/bin/mypy --strict _perflaw_tracer.py _perflaw_nothing.py sitecustomize.py)
for version in 3.11 3.12 3.13; do
    if [ "$version" != 3.11 ] && [ -z "$(sh scripts/python.sh "$version")" ]; then
        echo "no Python $version here: its tests are left out"
        continue
    fi
    sh scripts/environment.sh ".venv-$version" "$version" test
    echo "tests on Python $version"
    ".venv-$version/bin/python" -m pytest -n 2 "$@"
done
