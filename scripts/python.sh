#!/bin/sh
# Prints the path of a Python of the asked version (3.11) that starts, or nothing. Looks on PATH, then among pyenv's.
version=$1
for candidate in $(which -a "python$version" python3 2>/dev/null) "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
    found=$("$candidate" -c 'import sys, venv, ensurepip; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
    if [ "$found" = "$version" ]; then
        echo "$candidate"
        exit 0
    fi
done
