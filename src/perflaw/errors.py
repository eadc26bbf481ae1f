"""The failures a person can meet. Every one says what, why, and the next command to type."""


class PerflawError(Exception):
    """Wrong use or unreadable input; the command line prints it as one line and exits with 2.

    ``what`` names the thing and where it is, ``why`` the likely cause, ``next_command`` what to type now.
    """

    def __init__(self, what: str, why: str = "", next_command: str = "") -> None:
        self.what, self.why, self.next_command = what, why, next_command
        super().__init__(str(self))

    def __str__(self) -> str:
        text = self.what
        if self.why:
            text += f": {self.why}"
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
