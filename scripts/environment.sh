#!/bin/sh
# Makes or updates a virtual environment: environment.sh FOLDER VERSION EXTRA. Quick where nothing changed.
# Several may be made at once: what they depend on is installed side by side, perflaw itself by one after the other.
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
pip() {
    "$folder/bin/python" -m pip install -qq --disable-pip-version-check "$@"
}
pip uv || echo "without uv, pip installs more slowly" >&2
install() { # uv takes a tenth of pip's time; where pip has settings that uv does not know (a mirror), pip does it
    "$folder/bin/uv" pip install -q --python "$folder/bin/python" "$@" || pip "$@"
}
"$folder/bin/python" - "$extra" >"$folder/requirements.txt" <<'END'
import sys, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print(*project["dependencies"], *project["optional-dependencies"][sys.argv[1]], sep="\n")
END
install --requirement "$folder/requirements.txt"
(
    flock 9 # it writes into src/
    install --no-deps --editable .
) 9<setup.py
touch "$stamp"
