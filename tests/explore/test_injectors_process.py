"""Arguments and environment, read back from real processes."""

import os
import subprocess
import sys

import pytest

from perflaw.errors import TargetError
from perflaw.explore.injectors.applying import apply_all, verify_all
from perflaw.explore.injectors.context import Context, LaunchedProcess
from tests.explore.injecting import knob, tried


@pytest.fixture
def started(tmp_path):
    """Starts a process that sleeps, and ends it."""
    running = []

    def start(context, *words):
        environment = {**os.environ, **context.environment}
        command = [sys.executable, "-c", "import sys; sys.stdin.read()", *words]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
        running.append(process)
        context.launched.append(LaunchedProcess(process.pid, ("lost",), {}))
        return process

    yield start
    for process in running:
        process.stdin.close()
        process.wait(20)


def test_arguments_are_read_from_the_process(tmp_path, started):
    one = knob(apply={"arg": "--threads {}"})
    context = Context(str(tmp_path))
    apply_all([one], {"x": 4}, context)
    assert context.arguments == ["--threads", "4"]
    started(context, *context.arguments)
    assert verify_all([one], {"x": 4}, context, "running") == "" and context.verified == {"x": 4}


def test_arguments_that_did_not_arrive(tmp_path, started):
    one = knob(apply={"arg": "--threads {}"})
    context = Context(str(tmp_path))
    apply_all([one], {"x": 4}, context)
    assert verify_all([one], {"x": 4}, context, "before") == ""
    started(context, "--threads", "5")
    assert verify_all([one], {"x": 4}, context, "running") == "" and not context.verified
    assert "could not be verified" in verify_all([one], {"x": 4}, context, "after")


@pytest.mark.parametrize("setting", [True, False])
def test_flags(tmp_path, setting, started):
    one = knob(kind="bool", apply={"arg": "--fast"})
    context = Context(str(tmp_path))
    apply_all([one], {"x": setting}, context)
    started(context, *context.arguments)
    assert verify_all([one], {"x": setting}, context, "after") == ""
    wrong = Context(str(tmp_path))
    apply_all([one], {"x": setting}, wrong)
    started(wrong, *([] if setting else ["--fast"]))
    assert "could not be verified" in verify_all([one], {"x": setting}, wrong, "after")


def test_environment_is_read_from_the_process(tmp_path, started):
    one = knob(apply={"env": "POOL", "text": "size:{}"})
    context = Context(str(tmp_path))
    apply_all([one], {"x": 7}, context)
    assert context.environment == {"POOL": "size:7"}
    started(context)
    assert verify_all([one], {"x": 7}, context, "running") == "" and context.verified == {"x": 7}
    context.verified.clear()
    context.launched.clear()
    context.environment["POOL"] = "size:9"
    started(context)
    assert "7 was requested, the target has 9" in verify_all([one], {"x": 7}, context, "running")


def test_a_knob_in_a_command_is_read_there(tmp_path):
    one = knob()
    context = Context(str(tmp_path), launched=[LaunchedProcess(2**22 + 1, ("./load", "--seconds=12"), {})])
    assert verify_all([one], {"x": 12}, context, "after") == ""
    assert "no command contained its setting" in verify_all(
        [one], {"x": 2}, Context(str(tmp_path), launched=context.launched), "after"
    )
    assert "no command contained its setting" in verify_all(
        [one], {"x": 13}, Context(str(tmp_path), launched=context.launched), "after"
    )
    assert verify_all([one], {"x": 13}, Context(str(tmp_path), trusted=frozenset({"x"})), "after") == ""


def test_expressions_and_maps(tmp_path):
    one = knob(apply={"arg": "-c {}", "expr": "-x//1024"})
    assert tried(tmp_path, one, 4096, launched=[LaunchedProcess(2**22 + 1, ("p", "-c", "-4"), {})])[0] == ""
    mode = knob(kind="bool", apply={"arg": "--sync={}", "map": {"true": "full", "false": "off"}})
    assert tried(tmp_path, mode, True, launched=[LaunchedProcess(2**22 + 1, ("p", "--sync=full"), {})])[0] == ""
    bad = knob(kind="categorical", values=("a", "b"), apply={"arg": "{}", "map": {"a": 1}})
    with pytest.raises(TargetError, match=r"x could not be applied by arg.*no entry for b"):
        tried(tmp_path, bad, "b")
