"""The target of a study file."""

from __future__ import annotations

import re
import signal
from typing import Any

from perflaw.explore.parts import Part, did_you_mean
from perflaw.types.studies import Target

KEYS = (
    "run", "start", "workload", "ready", "stop", "result", "prepare", "folder", "environment", "timeout", "ready_timeout",
    "disk", "remote", "sql",
)  # fmt: skip
READY = ("tcp", "http", "file", "output")
RESULTS = ("json", "lines")


def read_target(part: Part) -> Target:
    """A target from its keys; a text alone is a one-shot command."""
    if not isinstance(part.value, dict):
        return Target(run=_command(part))
    keys = part.keys((*KEYS, "timeout_s", "ready_s", "disk_bytes"))
    if ("run" in keys) == ("start" in keys):
        part.wrong("it needs either run (a command that ends by itself) or start (a server)", 'run: "./prog {args}"')
    if "workload" in keys and "start" not in keys:
        keys["workload"].wrong("only a server (start) has a workload beside it", "start: …")
    texts = {
        name: _command(keys[name]) for name in ("run", "start", "workload", "prepare", "folder", "sql") if name in keys
    }
    return Target(
        **texts,
        ready=_ready(keys["ready"]) if "ready" in keys else {},
        stop=_stop(keys["stop"]) if "stop" in keys else "SIGTERM",
        result=_result(keys["result"]) if "result" in keys else {},
        environment={name: one.word() for name, one in keys["environment"].keys().items()}
        if "environment" in keys
        else {},
        timeout_s=_seconds(keys, ("timeout", "timeout_s"), 60.0),
        ready_s=_seconds(keys, ("ready_timeout", "ready_s"), 20.0),
        disk_bytes=_bytes(keys),
        remote=_remote(keys["remote"]) if "remote" in keys else "",
    )


def _command(part: Part) -> str:
    text = part.word()
    if not text.strip():
        part.wrong("it is empty")
    if "\0" in text:
        part.wrong("it holds a NUL character")
    return text


def _ready(part: Part) -> dict[str, Any]:
    keys = part.keys(READY)
    if len(keys) != 1:
        part.wrong(f"one of {', '.join(READY)} was expected", "ready: {tcp: 7000}")
    (name, value), *_ = keys.items()
    if name == "tcp":
        _address(value, value.word())
    if name == "output":
        check_regex(value)
    return {name: value.value if name == "tcp" else value.word()}


def _address(part: Part, text: str) -> None:
    port = text.rpartition(":")[2]
    if not port.isdecimal() or not 0 < int(port[:6]) < 65536:
        part.wrong(f"{text!r} is no port (7000) or host:port")


def _remote(part: Part) -> str:
    text = part.word()
    if ":" not in text:
        part.wrong(f"{text!r} is no host:port", "remote: db1.example.org:7700")
    _address(part, text)
    return text


def _stop(part: Part) -> str:
    text = _command(part)
    if re.fullmatch(r"SIG[A-Z0-9]+", text) and text not in signal.Signals.__members__:
        part.wrong(f"unknown signal {text}{did_you_mean(text, list(signal.Signals.__members__))}")
    return text


def _result(part: Part) -> dict[str, Any]:
    if not isinstance(part.value, dict):
        part = Part({part.word(): Part("stdout", part.where, part.what, "stdout")}, part.where, part.what)
    keys = part.keys(RESULTS)
    if len(keys) != 1:
        part.wrong(f"one of {', '.join(RESULTS)} was expected", "result: {json: stdout}")
    return {name: value.word() for name, value in keys.items()}


def _seconds(keys: dict[str, Part], names: tuple[str, ...], default: float) -> float:
    found = next((keys[name] for name in names if name in keys), None)
    return default if found is None else found.number(0.001, 30 * 86400, "s")


def _bytes(keys: dict[str, Part]) -> int:
    found = keys.get("disk", keys.get("disk_bytes"))
    return 0 if found is None else int(found.number(0, 2**60, "B"))


def check_regex(part: Part) -> str:
    """A regular expression that compiles."""
    text = part.word()
    try:
        re.compile(text)
    except re.error as error:
        part.wrong(f"{text!r} is no regular expression: {error}")
    return text
