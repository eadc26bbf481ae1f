"""Arguments and environment, looked for in real processes: that they arrived does not prove that they took effect."""

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
    assert verify_all([one], {"x": 4}, context, "running") == ""
    assert context.unverified == {"x": 4} and not context.verified


def test_arguments_that_did_not_arrive(tmp_path, started):
    one = knob(apply={"arg": "--threads {}"})
    context = Context(str(tmp_path))
    apply_all([one], {"x": 4}, context)
    assert verify_all([one], {"x": 4}, context, "before") == ""
    started(context, "--threads", "5")
    assert verify_all([one], {"x": 4}, context, "running") == "" and not context.unverified
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
    assert verify_all([one], {"x": 7}, context, "running") == "" and context.unverified == {"x": 7}
    context.unverified.clear()
    context.launched.clear()
    context.environment["POOL"] = "size:9"
    started(context)
    assert "7 was requested, the target has 9" in verify_all([one], {"x": 7}, context, "running")


def test_a_knob_in_a_command_is_set_and_not_verified(tmp_path):
    """Commands such as ``make -j{x}`` and ``sort -S{x}M`` hold the setting within a word."""
    one = knob()
    context = Context(str(tmp_path), launched=[LaunchedProcess(2**22 + 1, ("sh", "-c", "make -j12"), {})])
    assert verify_all([one], {"x": 12}, context, "after") == ""
    assert context.unverified == {"x": 12} and not context.verified
    load = Context(str(tmp_path), trusted=frozenset({"x"}))
    assert verify_all([one], {"x": 13}, load, "after") == "" and load.verified == {"x": 13}


def test_knobs_with_the_same_template_are_looked_for_apart(tmp_path):
    knobs = [knob(name=name, apply={"arg": "{}"}) for name in ("a", "b")]
    context = Context(str(tmp_path))
    apply_all(knobs, {"a": 5, "b": 2}, context)
    assert context.arguments == ["5", "2"]
    context.launched.append(LaunchedProcess(2**22 + 1, ("p", *context.arguments), {}))
    assert verify_all(knobs, {"a": 5, "b": 2}, context, "after") == ""
    assert context.unverified == {"a": 5, "b": 2}


def test_expressions_and_maps(tmp_path):
    one = knob(apply={"arg": "-c {}", "expr": "-x//1024"})
    assert tried(tmp_path, one, 4096, launched=[LaunchedProcess(2**22 + 1, ("p", "-c", "-4"), {})])[0] == ""
    mode = knob(kind="bool", apply={"arg": "--sync={}", "map": {"true": "full", "false": "off"}})
    assert tried(tmp_path, mode, True, launched=[LaunchedProcess(2**22 + 1, ("p", "--sync=full"), {})])[0] == ""
    bad = knob(kind="categorical", values=("a", "b"), apply={"arg": "{}", "map": {"a": 1}})
    with pytest.raises(TargetError, match=r"x could not be applied by arg.*no entry for b"):
        tried(tmp_path, bad, "b")
