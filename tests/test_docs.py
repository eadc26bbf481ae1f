"""Every command and every file in README and docs is run as written; the references match the program."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from perflaw.record.build import cache_folder

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BY_CI = {"make demo", "make test"}
"""Commands that ``.ci/run`` itself runs."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_page(page, folder):
    for language, text in BLOCK.findall(page.read_text()):
        title = re.match(r"# file: (\S+)\n", text)
        if title:
            (folder / title[1]).write_text(text.removeprefix(title[0]))
        elif language == "console":
            yield from re.findall(r"^\$ (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands(page, tmp_path):
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    for command in run_page(page, tmp_path):
        if command in BY_CI:
            continue
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={"PATH": path, "HOME": str(tmp_path), "LANG": "C.UTF-8", "PERFLAW_CACHE": str(cache_folder())},
            capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_cli_reference_is_up_to_date():
    script = ROOT / "scripts" / "cli_reference.py"
    done = subprocess.run([sys.executable, script, "--check"])
    assert done.returncode == 0, "run: python scripts/cli_reference.py"


def test_no_placeholder_is_left():
    for page in PAGES:
        assert not re.search(r"@[A-Z]+@|TODO", page.read_text()), page.name


def test_relative_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_json_field_is_described(perflaw, tmp_path):
    described = (ROOT / "docs" / "json.md").read_text()
    (tmp_path / "app.py").write_text("import sys\ndef f(n): return sum(range(n))\nf(int(sys.argv[1]))\n")
    perflaw("record", "--vary", "n=10,100", "--", "app.py", "{n}")
    (tmp_path / "data.csv").write_text("x,y\n1,2\n2,4\n3,6\n4,8\n5,10.1\n")
    import json

    for verb in (["annotate", "--at", "n=5"], ["runs"], ["doctor"], ["fit", "data.csv", "--response", "y"]):
        document = json.loads(perflaw(*verb, "--json").stdout)
        assert f"`{document['schema']}`" in described
        for name in _names(document):
            assert f"`{name}`" in described, f"{verb[0]}: {name}"


def _names(
    value,
    free=("features", "slope", "slope_low", "slope_high", "range", "environment", "configuration", "damaged", "at"),
):
    """Names of all fields; mappings by feature or variable have names of the person's own."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name not in free:
                yield from _names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)
