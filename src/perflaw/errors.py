"""The failures a person can meet. Every one says what, why, and the next command to type."""

from collections.abc import Collection
from difflib import get_close_matches


class PerflawError(Exception):
    """Wrong use or unreadable input; the command line prints it as one line and exits with 2.

    ``what`` names the thing and where it is, ``why`` the likely cause, ``next_command`` what to type now.
    """

    def __init__(self, what: str, why: str = "", next_command: str = "") -> None:
        self.what, self.why, self.next_command = what, why, next_command
        super().__init__(str(self))

    @property
    def reason(self) -> str:
        """What and why, without the next command: for a message that gives its own."""
        return f"{self.what}: {self.why}" if self.why else self.what

    def __str__(self) -> str:
        text = self.reason
        if self.next_command:
            text += f" · try: {self.next_command}"
        return text


class UsageError(PerflawError):
    """The command line asks for something that cannot be done."""


class TargetError(PerflawError):
    """The program to record cannot be found, read or recorded; ``status`` is its own exit status where it ran."""

    def __init__(self, what: str, why: str = "", next_command: str = "", status: int = 0) -> None:
        super().__init__(what, why, next_command)
        self.status = status


class StoreError(PerflawError):
    """An experiment or recording is missing, damaged, unwritable or of an unknown version."""


class DataError(PerflawError):
    """Numbers that a learner cannot use."""


def did_you_mean(word: str, known: Collection[str], cutoff: float = 0.6, otherwise: str = "known:") -> str:
    """``; did you mean `trials`?`` for a word close to a known one, otherwise all known words.

    >>> did_you_mean("trails", ["trials", "name"]), did_you_mean("x", ["trials", "name"])
    ('; did you mean `trials`?', '; known: trials, name')
    """
    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(word[:40].lower(), by_lower, n=1, cutoff=cutoff)
    return f"; did you mean `{by_lower[close[0]]}`?" if close else f"; {otherwise} {', '.join(known)}"
