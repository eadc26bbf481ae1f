#!/bin/sh
# Makes or updates a virtual environment: environment.sh FOLDER VERSION EXTRA. Quick where nothing changed.
set -eu
folder=$1 version=$2 extra=$3
stamp=$folder/.perflaw-$extra
if [ -e "$stamp" ] && [ ! pyproject.toml -nt "$stamp" ]; then
    exit 0
fi
python=$(sh scripts/python.sh "$version")
if [ -z "$python" ]; then
    echo "no Python $version with venv found; on Debian: apt-get install -y python$version-venv" >&2
    exit 2
fi
echo "installing perflaw[$extra] into $folder (Python $version)"
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
"$folder/bin/python" -m pip install -qq --disable-pip-version-check --editable ".[$extra]"
touch "$stamp"
