#!/bin/sh
# Every check: lint, types and the tests. Python 3.11 must be there; of 3.12 and 3.13 those that are found are tested.
#   test.sh         all tests but the slow ones on 3.11; on the others those that depend on the interpreter, with every second
#                   value of a parameter on 3.12 and the others on 3.13, which tell a recorder of events alike
#   test.sh --all   all tests, slow ones too, on every Python, with the full number of Hypothesis examples
# Further arguments go to pytest.
set -eu
all=
if [ "${1:-}" = --all ]; then
    all=yes
    shift
fi
extra=interpreter
if [ -n "$all" ]; then
    extra=test
    export PERFLAW_TEST_EXAMPLES=full
fi
unset PYTHONDONTWRITEBYTECODE # else each of the thousand programs that tests start compiles what it imports
sh scripts/browser.sh ${all:+all}
sh scripts/compilers.sh ${all:+all}
sh scripts/servers.sh tests
sh scripts/promtool.sh
python=.venv-3.11/bin/python
others=
for version in 3.12 3.13; do
    if [ -n "$(sh scripts/python.sh "$version")" ]; then
        others="$others $version"
    else
        echo "no Python $version here: its tests are left out"
    fi
done
{ # README's commands are run in .venv
    echo .venv-3.11 3.11 test
    echo .venv 3.11 demo
    for version in $others; do
        echo ".venv-$version" "$version" "$extra"
    done
} | xargs -P 3 -L 1 sh scripts/environment.sh

echo "lint"
$python -m ruff check .
$python -m ruff format --check --quiet .
mkdir -p build
types() { # what enters the target is checked for each Python, by itself, because its modules are top-level ones there
    {
        for version in 3.11 ${all:+$others}; do
            echo "nice $python -m mypy --python-version $version"
        done
        for version in 3.11 $others; do
            echo "cd src/perflaw/record/python/target && nice ../../../../../$python -m mypy --strict --python-version $version _perflaw_tracer.py _perflaw_nothing.py sitecustomize.py"
        done
    } | xargs -I COMMAND sh -c COMMAND
}
# Beside the tests, which often wait for a program; what it says is printed after them.
types >build/types.txt 2>&1 &
types=$!

tests() { # version, number of workers, arguments of pytest
    version=$1 workers=$2
    shift 2
    ".venv-$version/bin/python" -m compileall -q src # else every program that tests start would compile what it imports
    echo "tests on Python $version"
    # Assertions are rewritten for those that fail alone, below: rewriting all of them takes longer than most tests.
    ".venv-$version/bin/python" -m pytest --cache-clear -o "cache_dir=.pytest_cache/$version" --assert=plain \
        --durations 30 --durations-min 2 -n "$workers" --dist loadfile ${all:+-m ""} "$@"
}
again() { # version, status of the tests, arguments of pytest
    version=$1 status=$2
    shift 2
    [ "$status" != 0 ] || return 0
    failed=$(grep -c true ".pytest_cache/$version/v/cache/lastfailed" || true)
    # Tests record programs by the real clock, and a machine that stops for a moment may break one of them. What is wrong
    # fails alone too; what fails only once is named and waits for its cause to be found.
    echo "THESE FAILED on Python $version and run once more, alone:"
    cat ".pytest_cache/$version/v/cache/lastfailed"
    ".venv-$version/bin/python" -m pytest -o "cache_dir=.pytest_cache/$version" --last-failed --last-failed-no-failures none \
        --maxfail 3 ${all:+-m ""} "$@"
    [ "$status" = 1 ] && [ "$failed" -le 2 ] || exit "$status"
    echo "FAILED ONCE, PASSED ALONE: find the cause"
}
status=0
tests 3.11 2 "$@" || status=$?
echo "types"
wait "$types" || { cat build/types.txt; exit 1; }
cat build/types.txt
again 3.11 "$status" "$@"
if [ -n "$all" ]; then
    echo "damaged input for every reader"
    $python benchmarks/fuzz.py --seconds 60
    for version in $others; do
        status=0
        tests "$version" 2 "$@" || status=$?
        again "$version" "$status" "$@"
    done
    exit
fi
# The others side by side, one process each. Files are chosen by their text, for these environments lack what others import.
# shellcheck disable=SC2046 (words)
set -- -m "interpreter and not any_python and not slow" $(grep -rl --include="test_*.py" "pytest.mark.interpreter" tests) "$@"
for version in $others; do
    (
        status=0
        tests "$version" 0 "$@" || status=$?
        echo "$status" >"build/status-$version"
    ) >"build/tests-$version.txt" 2>&1 &
done
wait
for version in $others; do
    cat "build/tests-$version.txt"
    again "$version" "$(cat "build/status-$version")" "$@"
done
