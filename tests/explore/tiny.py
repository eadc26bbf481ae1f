"""Studies of tiny real programs, explored within the test's process; agents and targets are processes as always."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from perflaw.explore.agent.agent import serve
from perflaw.explore.agent.client import AgentConnection, local_agent
from perflaw.explore.explorer import Explorer
from perflaw.explore.study_file import read_study
from perflaw.explore.studying import Wish, opened, wished
from perflaw.store.experiment import Experiment, open_experiment
from perflaw.types.studies import Trial
from perflaw.wire.channel import pair


class Forked:
    """A child of the test's process, as ``subprocess`` has them."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def wait(self, timeout: float = 0) -> None:
        os.waitpid(self.pid, 0)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def forked_agent() -> AgentConnection:
    """An agent that needs no interpreter started: a quarter of a second less."""
    ours, theirs = pair("agent")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DuckDB has threads; the child never asks it anything
        pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            ours.close()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            serve(theirs)
        finally:
            os._exit(0)
    theirs.close()
    return AgentConnection(ours, Forked(pid))


PYTHON = f"{sys.executable} -I -S"
PROGRAM = """
import json, sys
size = int(next(word for word in sys.argv if word.startswith("--size=")).split("=")[1])
print(json.dumps({"rate": 100 - abs(size - 5), "size": size}))
"""
KNOB = """
knobs:
  size: {type: int, range: [1, 9], apply: {arg: "--size={}"}}
"""
RATE = "metrics: {rate: {path: rate, goal: max}}\n"
ONE_SHOT = f'target: {{run: "{PYTHON} prog.py {{args}}", result: {{json: stdout}}}}\n' + KNOB + RATE


__all__ = ["ONE_SHOT", "Path", "Wish", "explore", "local_agent"]


def write(folder: Path, text: str, **files: str) -> Path:
    """A study file and programs beside it."""
    for name, content in {"prog.py": PROGRAM, **{f"{name}.py": one for name, one in files.items()}}.items():
        (folder / name).write_text(content)
    (folder / "study.yaml").write_text(text)
    return folder / "study.yaml"


def experiment_of(folder: Path) -> Experiment:
    """The experiment of a study in a folder."""
    return open_experiment("study", folder)


def steps(path: Path, wish: Wish | None = None, agent: Callable = forked_agent) -> Iterator[tuple[Explorer, Trial]]:
    """Each trial as it is made, with the explorer."""
    wish = wish or Wish()
    study, target = wished(read_study(path), wish), experiment_of(path.parent)
    with opened(target, study, wish) as (journal, seed):
        explorer = Explorer(study, seed, target, journal, agent)
        for trial in explorer.run():
            yield explorer, trial


def explore(path: Path, wish: Wish | None = None, agent: Callable = forked_agent, name: str = "study") -> list[Trial]:
    """All trials of a study, made now or before."""
    wish = wish or Wish()
    study, target = wished(read_study(path), wish), open_experiment(name, path.parent)
    with opened(target, study, wish) as (journal, seed):
        explorer = Explorer(study, seed, target, journal, agent)
        for _ in explorer.run():
            pass
        return explorer.trials()


def left_in(folder: Path) -> list[str]:
    """Command lines of processes that work in a folder."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdigit() and (path / "cwd").readlink() == folder:
                found.append((path / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found
