"""The explorer's side of an agent: it starts one or connects to one elsewhere, asks, and never waits for ever."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from perflaw.errors import UsageError
from perflaw.types.studies import Study
from perflaw.wire.channel import Channel, Message, WireError, dismiss, spawn
from perflaw.wire.tls import connect, parse_address, read_token

_SLACK_S: Final = 30.0
"""Time beyond a verb's own limit after which an agent counts as lost."""


class InvalidTrial(Exception):
    """The trial is no data point; the text says why."""


RESUME: Final = "perflaw explore STUDY  (goes on where it stopped)"
"""What to do once the agent is lost."""


@dataclass(slots=True)
class AgentConnection:
    """A connection to an agent. WireError from any verb: the agent is lost, and the trial has to be made again."""

    channel: Channel
    """Channel to the agent."""
    process: subprocess.Popen[bytes] | None
    """Its process, where it runs on this machine."""
    has_study: bool = False
    """Whether it has received the study."""

    def ask(
        self,
        verb: str,
        document: Mapping[str, Any] | None = None,
        timeout_s: float = _SLACK_S,
        on_message: Callable[[Message], None] | None = None,
    ) -> Message:
        """Ask, and wait for the answer; ``on_message`` is given what comes before it. InvalidTrial for a negative answer."""
        self.channel.send(verb, document)
        while True:
            message = self.channel.receive(timeout_s + _SLACK_S)
            if message is None:
                why = f"not within {timeout_s + _SLACK_S:g} s; its machine is too busy, or it was stopped"
                raise WireError(f"the agent does not answer {verb!r}", why, RESUME)
            if message.kind == "yes":
                return message
            if message.kind == "no":
                raise InvalidTrial(str(message.document["reason"]))
            if message.kind == "lost":
                raise WireError("the collector of probes was lost", str(message.document["reason"]), RESUME)
            if on_message:
                on_message(message)

    def close(self) -> None:
        """Let the agent go, and wait until it has ended the target, restored it and ended itself."""
        dismiss(self.channel, "bye", self.process, _SLACK_S)

    def kill(self) -> None:
        """Kill an agent that does not answer; the next one does what it leaves undone."""
        self.channel.close()
        if self.process:
            self.process.kill()
            self.process.wait()


def local_agent() -> AgentConnection:
    """Start an agent beside this process."""
    process, channel = spawn([sys.executable, "-m", "perflaw.explore.agent.agent", "{channel}"], "agent")
    return AgentConnection(channel, process)


def agents_of(study: Study, token: Path | None, authority: Path | None) -> Callable[[], AgentConnection]:
    """Return a function that makes agents for a study's target. UsageError where a remote one lacks token or certificate."""
    where = study.target.remote
    if not where:
        return local_agent
    if token is None or authority is None:
        why = "a connection to a remote agent needs its token and its certificate"
        raise UsageError(f"target: remote: {where}", why, "perflaw explore … --token-file FILE --ca FILE.pem")
    address, secret = parse_address(where), read_token(token)
    return lambda: AgentConnection(connect(address, secret, authority), None)
