#!/bin/sh
# Writes dist/perflaw.cdx.json, the CycloneDX list of what `pip install` of the wheel in dist/ installs (make wheels makes
# it), and prints its packages with their licences, as docs/licences.md has them.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python=$(sh scripts/python.sh 3.11)
"$python" -m venv "$folder/tools"
"$folder/tools/bin/pip" install -qq --disable-pip-version-check cyclonedx-bom
"$python" -m venv --without-pip "$folder/installed"
"$python" -m pip --python "$folder/installed/bin/python" install -qq --disable-pip-version-check dist/perflaw-*.whl
"$folder/tools/bin/cyclonedx-py" environment --pyproject pyproject.toml --output-reproducible \
    --output-file dist/perflaw.cdx.json "$folder/installed/bin/python"
"$python" - dist/perflaw.cdx.json <<'END'
import json, sys
print("| package | licence |\n|---|---|")
for part in json.load(open(sys.argv[1]))["components"]:
    names = [one.get("expression") or one["license"].get("id") or one["license"]["name"] for one in part["licenses"]]
    print(f"| {part['name']} | {', '.join(name.rpartition(':: ')[2] for name in names)} |")
END
