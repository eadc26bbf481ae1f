"""The templates for CI: their steps are run as they stand, on a repository whose newest commit has made a function slower."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROGRAM = """import sys

tracer = sys.modules.get("_perflaw_native") or sys.modules.get("_perflaw_tracer")


def build(docs):
    tracer.advance(2_000 * docs)


def tokens(docs):
    tracer.advance(500 * docs)


for part in (4, 2, 1):
    build(int(sys.argv[1]) // part)
    tokens(int(sys.argv[1]) // part)
"""
OPTIONS = ["--clock", "fake", "--select", "app.*"]
RECORD = "--clock fake --select 'app.*' --vary n=100,200,400,800 -- app.py {n}"
STUB = '#!/bin/sh\nprintf "%s\\n" "NAME $*" >> "$TOLD"\n'


def git(folder, *words):
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *author, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(perflaw, tmp_path):
    """A checkout with committed laws, in which the newest commit makes ``build`` slower; stubs stand in for services."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "app.py").write_text(PROGRAM)
    perflaw("record", *OPTIONS, "--vary", "n=100,200,400,800", "--repeat", 2, "--", "app.py", "{n}", cwd=folder)
    perflaw("annotate", "-o", "perf.law", cwd=folder)
    (folder / ".gitignore").write_text(".perflaw\n")
    git(folder, "add", "app.py", "perf.law", "perf.law.json", ".gitignore")
    git(folder, "commit", "-qm", "base")
    (folder / "app.py").write_text(PROGRAM.replace("2_000", "5_000"))
    git(folder, "commit", "-qam", "head")
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name in ("pip", "gh", "curl"):
        (stubs / name).write_text(STUB.replace("NAME", name))
        (stubs / name).chmod(0o755)
    return folder


def run(script, folder, told, status=0, **variables):
    """Run a script as the services do; ``told`` is the file in which stubs write what they are asked."""
    path = f"{folder.parent / 'stubs'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PATH": path, "TOLD": str(told), "RUNNER_TEMP": str(folder.parent), **variables},
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def filled(text, values):
    """Replace the expressions of a workflow by their values."""
    return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: values[found[1]], text)


def tells_what_is_slower(folder, comment):
    assert "| app.build(docs) | app.py:6 | time 2.5x" in comment
    assert "New recordings held against the laws" in comment
    assert "Cost compared with before" in comment
    assert "| app.tokens" not in comment
    [result, *_] = [
        one for one in json.loads((folder / "perflaw.sarif").read_text())["runs"][0]["results"] if one["kind"] == "fail"
    ]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "app.py"


@pytest.mark.slow
def test_the_action_of_github_comments_on_what_is_slower_and_fails(repository, tmp_path):
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    values = {f"inputs.{name}": str(one.get("default", "")) for name, one in action["inputs"].items()}
    values |= {
        "inputs.record": RECORD, "inputs.base": git(repository, "rev-parse", "HEAD^"), "inputs.passes": "2",
        "inputs.token": "secret", "github.event.pull_request.number": "7", "steps.compare.outputs.status": "1",
    }  # fmt: skip
    files = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "GITHUB_OUTPUT": str(tmp_path / "output")}
    told, steps = tmp_path / "told", [one for one in action["runs"]["steps"] if "run" in one]
    printed = ""
    for step in steps:
        variables = {key: filled(value, values) for key, value in step.get("env", {}).items()}
        variables |= {**files, "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_REPOSITORY": "a/b"}
        printed += run(step["run"], repository, told, int(step["name"] == "Verdict"), **variables)
    tells_what_is_slower(repository, (repository / "perflaw.md").read_text())
    assert (tmp_path / "summary").read_text() == (repository / "perflaw.md").read_text()
    assert (tmp_path / "output").read_text() == "status=1\n"
    assert "::error file=" in printed
    assert f"pip install --quiet {ROOT}\n" in told.read_text()
    assert "gh api --silent repos/a/b/issues/7/comments -F body=@perflaw.md\n" in told.read_text()
    assert git(repository, "status", "--porcelain", "--untracked-files=no") == ""
    assert len(git(repository, "worktree", "list").splitlines()) == 1


@pytest.mark.slow
def test_the_template_of_gitlab_comments_on_what_is_slower_and_fails(repository, tmp_path):
    job = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())["perflaw"]
    variables = job["variables"] | {
        "PERFLAW_RECORD": RECORD, "PERFLAW_PASSES": "2", "PERFLAW_TOKEN": "secret", "CI_PROJECT_DIR": str(repository),
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(repository, "rev-parse", "HEAD^"), "CI_API_V4_URL": "https://lab/api/v4",
        "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "9",
    }  # fmt: skip
    run("\n".join(job["script"]), repository, tmp_path / "told", 1, **variables)
    tells_what_is_slower(repository, (repository / "perflaw.md").read_text())
    assert "https://lab/api/v4/projects/3/merge_requests/9/notes\n" in (tmp_path / "told").read_text()
    assert all((repository / one).is_file() for one in job["artifacts"]["paths"])


@pytest.mark.slow
def test_the_hook_of_pre_commit_holds_recordings_against_the_laws(repository, perflaw, tmp_path):
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    perflaw("record", "-e", "head", *OPTIONS, "--vary", "n=150,600", "--", "app.py", "{n}", cwd=repository)
    command = " ".join([hook["entry"], *hook["args"], "-e", "head"])
    assert "app.build" in run(command, repository, tmp_path / "told", 1)
