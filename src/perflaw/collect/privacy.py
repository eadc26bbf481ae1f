"""What of a person's machine goes into a recording: arguments without their secrets, and a few variables by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

MASK = "***"
_SECRET = re.compile(r"pass(word|wd|phrase)?|secret|token|api[-_]?key|credential|auth", re.IGNORECASE)
_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)(=(.*))?", re.DOTALL)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.+)", re.DOTALL)
_URL = re.compile(r"([a-z][a-z0-9+.-]*://[^\s/:@]*):[^\s/@]+@", re.IGNORECASE)
_ALLOWED = (
    "LANG", "LC_ALL", "TZ", "PYTHONHASHSEED", "PYTHONOPTIMIZE", "PYTHONUNBUFFERED", "PYTHONDEVMODE", "PYTHONMALLOC",
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX", "CI",
)  # fmt: skip


def masked(arguments: Sequence[str]) -> tuple[str, ...]:
    """Arguments with the values of secret-looking options and the passwords of URLs replaced.

    >>> masked(["--password", "x", "--api-key=y", "TOKEN=z", "http://me:pw@host/", "--n", "5"])
    ('--password', '***', '--api-key=***', 'TOKEN=***', 'http://me:***@host/', '--n', '5')
    """
    result: list[str] = []
    follows = False
    for argument in arguments:
        if follows and not argument.startswith("-"):
            result.append(MASK)
            follows = False
            continue
        text, follows = _mask_one(argument)
        result.append(text)
    return tuple(result)


def _mask_one(argument: str) -> tuple[str, bool]:
    """The argument masked, and whether the next one is its secret."""
    option = _OPTION.fullmatch(argument)
    if option and _SECRET.search(option[1]):
        return (argument, True) if option[2] is None else (argument[: option.start(3)] + MASK, False)
    assignment = _ASSIGNMENT.fullmatch(argument)
    if assignment and _SECRET.search(assignment[1]):
        return f"{assignment[1]}={MASK}", False
    return _URL.sub(rf"\1:{MASK}@", argument), False


def is_secret(name: str) -> bool:
    """Whether an option of this name looks like one that carries a secret."""
    return _SECRET.search(name) is not None


def allowed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that bear on performance and carry no secrets."""
    return {name: environment[name] for name in _ALLOWED if name in environment}
