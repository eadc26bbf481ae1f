"""Commands of a target as they are started: with the trial's arguments, environment and mark, in the target's folder."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Final

from perflaw.explore.agent.parts import Job
from perflaw.explore.agent.settings import Settings
from perflaw.explore.injectors.context import Launched
from perflaw.explore.target.commands import command_of
from perflaw.explore.target.process import MARK, Started

PROBES: Final = ("PERFLAW_PROBES", "PERFLAW_PROBES_ENABLE")
"""Variables that say where probes write, and which are enabled from the start."""


class Refused(Exception):  # noqa: N818 (an answer)
    """The trial is no data point; the text says why."""


def begin(job: Job, settings: Settings, template: str, probes: Sequence[str] = ()) -> Started:
    """Start a command; Refused where it is none or cannot be started."""
    context = settings.context
    try:
        command = command_of(template, context.arguments, settings.values)
        environment = {**os.environ, **job.target.environment, **context.environment, MARK: job.mark}
        environment |= dict(zip(PROBES, probes, strict=False))
        started = Started(command, job.folder, environment)
    except ValueError as error:
        raise Refused(f"{template!r} is no command: {error}") from error
    except OSError as error:
        raise Refused(f"{shlex.split(template)[0]} cannot be started: {error.strerror}") from error
    context.launched.append(Launched(started.pid, tuple(command), environment))
    return started
