"""Every command and every file in README and docs is run as written, and prints what stands there; the references match."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from perflaw.record.cache import cache_folder
from tests.pages import Commands, difference, pieces, read_page, vocabulary

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
BY_CI = {"make demo", "make test"}
"""Commands that ``.ci/run`` itself runs."""
SAMPLES_OF = (3, 11)
"""The Python whose output the pages show; others call some code objects otherwise."""
DEMO = ROOT / ".venv" / "bin"
"""Where ``make demo`` leaves the programs that the README uses."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands(page, tmp_path):
    programs = DEMO if page == README else Path(sys.executable).parent
    assert (programs / "perflaw").exists(), "run: make environment"
    env = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "PERFLAW_CACHE": str(cache_folder()),
    }
    known = ""
    for step in read_page(page.read_text()):
        if not isinstance(step, Commands):
            (tmp_path / step.name).write_text(step.text)
            known += f"{step.name}\n{step.text}"
            continue
        printed = ""
        for command in step.commands:
            if command in BY_CI:
                continue
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
            )  # fmt: skip
            assert done.returncode == 0, f"{command}\n{done.stdout}"
            printed += done.stdout
            known += f"{command}\n"
        if step.sample and sys.version_info[:2] == SAMPLES_OF:
            wrong = difference(step.sample, printed, known)
            assert not wrong, f"{page.name}: {step.commands[-1]}: {wrong}\n{printed}"


def test_the_demo_runs_what_the_readme_shows_of_it():
    """The demo's laws are this machine's, but its commands and what is said beside the table are the same everywhere."""
    script = (ROOT / "examples" / "summary" / "demo.sh").read_text()
    session = README.read_text().split("```text\n")[1].split("```")[0].splitlines()
    commands = [line[2:] for line in session if line.startswith("$ ")]
    assert commands
    assert set(commands) <= set(re.findall(r'^show "(.*)"$', script, re.MULTILINE))
    beside = [line for line in session if re.match(r"[A-Za-z?]", line)]
    assert beside
    assert pieces("\n".join(beside)) <= vocabulary() | pieces("\n".join(commands))


def test_the_cli_reference_is_up_to_date():
    script = ROOT / "scripts" / "cli_reference.py"
    done = subprocess.run([sys.executable, script, "--check"])
    assert done.returncode == 0, "run: python scripts/cli_reference.py"


@pytest.fixture(scope="module")
def reference():
    """The script that makes the reference of messages."""
    spec = importlib.util.spec_from_file_location("messages_reference", ROOT / "scripts" / "messages_reference.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_reference_of_messages_has_every_message(reference):
    page = (ROOT / "docs" / "messages.md").read_text()
    assert page == reference.page(), "run: python scripts/messages_reference.py"


def test_every_message_has_a_cause_and_a_cure(reference):
    sites = reference.all_sites()
    assert len(sites) > 400
    lacking = [
        f"{path}:{line}: {kind}{parts}"
        for path, line, kind, parts in sites
        if len(parts) != 3 or not all(part.strip(" |") for part in parts)
    ]
    assert lacking == []


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
    free=(
        "features",
        "slope",
        "slope_low",
        "slope_high",
        "range",
        "environment",
        "configuration",
        "damaged",
        "at",
        "sources",
    ),
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
