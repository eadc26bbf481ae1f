"""Commands that the terminal and the page tell a person to type next."""

from __future__ import annotations

import shlex


def command(verb: str, experiment: str, rest: str = "") -> str:
    """A command of perflaw's; the experiment is named unless the verb reads it without a name.

    >>> command("annotate", "nightly", "--at n=80")
    'perflaw annotate -e nightly --at n=80'
    >>> command("annotate", "default", "--at n=80")
    'perflaw annotate --at n=80'
    """
    named = "" if experiment == "default" else f"-e {shlex.quote(experiment)}"
    return " ".join(filter(None, ("perflaw", verb, named, rest)))
