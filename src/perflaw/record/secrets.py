"""Secrets in command lines: what looks like one by its name, its form or its randomness is masked before it is kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import log2
from pathlib import PurePath
from typing import Final

MASK: Final = "***"
_WORDS: Final = (
    r"pass(?:word|wd|phrase|code)?|pwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential|auth|bearer|cookie"
    r"|signature"
)
_SECRET: Final = re.compile(_WORDS, re.IGNORECASE)
_OPTION: Final = re.compile(r"--?([A-Za-z][\w.-]*)(=(.*))?", re.DOTALL)
_NAMED: Final = re.compile(
    rf"""([\w.-]*(?:{_WORDS})[\w.-]*["']?)(?:(\s*=>?\s*)|(\s*:\s*))("[^"]*"|'[^']*'|(?(2)[^&\s"',;]+|[^"'\n,;&}}]+))""",
    re.IGNORECASE,
)
"""A name, ``=`` or ``:``, and a value: ``?access_token=…``, ``Authorization: Bearer …``, ``{"password": "…"}``."""
_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*://[^\s/:@]*):[^\s/@]+@", re.IGNORECASE)
_SHORT: Final = re.compile(r"-[pP]")
"""Options that are a password or a port, by the program, or a plugin."""
_FORMS: Final = re.compile(
    r"AKIA[0-9A-Z]{16}|gh[pousr]_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|sk-[\w-]{16,}|eyJ[\w-]+\.[\w-]+\.[\w-]*"
    r"|-----BEGIN[^-]*-----.*",
    re.DOTALL,
)
"""Keys whose form tells: of Amazon, GitHub, GitLab, Slack, OpenAI, web tokens and PEM."""
_WORD: Final = re.compile(r"[A-Za-z0-9+_=-]{16,}")
MIN_BITS, MIN_CHANGES = 3.0, 0.3
"""Entropy of a character, and share of places at which letters, capitals and digits change, from which a word is random."""


def masked(arguments: Sequence[str]) -> tuple[str, ...]:
    """Arguments with everything in them that looks like a secret replaced.

    >>> masked(["--password", "x", "--api-key=y", "TOKEN=z", "http://me:pw@host/?access_token=a&n=5", "--n", "5"])
    ('--password', '***', '--api-key=***', 'TOKEN=***', 'http://me:***@host/?access_token=***&n=5', '--n', '5')
    >>> masked(["-p", "hunter2", "-p", "8080", "-H", "Authorization: Basic YQ==", "--header=X-Api-Key:abc"])
    ('-p', '***', '-p', '8080', '-H', 'Authorization: ***', '--header=X-Api-Key:***')
    >>> masked(["-m", "pytest", "-p", "no:cacheprovider"])
    ('-m', 'pytest', '-p', 'no:cacheprovider')
    """
    result: list[str] = []
    names_plugins = _is_pytest(arguments)
    follows: str | None = None
    """Option whose value this argument is."""
    for argument in arguments:
        value_of, follows = follows, None
        is_plugin = names_plugins and value_of == "-p"
        if value_of is not None and not argument.startswith("-") and not is_plugin and _hides(value_of, argument):
            result.append(MASK)
            continue
        option = _OPTION.fullmatch(argument)
        if option and option[2] is None:
            follows = argument
        if option and option[2] is not None and is_secret(option[1]):
            result.append(argument[: option.start(3)] + MASK)
        else:
            result.append(without_secrets(argument))
    return tuple(result)


def _is_pytest(arguments: Sequence[str]) -> bool:
    """Whether the program is pytest, whose ``-p`` names a plugin: a database, say, may have that name too.

    >>> _is_pytest(["python3", "-m", "pytest"]), _is_pytest(["mysql", "pytest", "-p", "hunter2"])
    (True, False)
    """
    names = [PurePath(word).name for word in arguments]
    runs_script = names[1:2] == ["pytest"] and names[0].startswith("python")
    return names[:1] == ["pytest"] or runs_script or ("-m", "pytest") in pairwise(arguments)


def _hides(option: str, value: str) -> bool:
    """Whether an option's value is a secret by the option's name; a number after ``-p`` is a port."""
    if _SHORT.fullmatch(option):
        return not re.fullmatch(r"[\d.:,]+", value)
    return is_secret(option)


def is_secret(name: str) -> bool:
    """Whether an option or variable of this name looks as if it held a secret."""
    return _SECRET.search(name) is not None


def without_secrets(text: str) -> str:
    """A text with the secrets in it replaced.

    >>> without_secrets("report-2024-final_version.csv"), without_secrets("q8Zk3vP0sLx92MdTbW7y")
    ('report-2024-final_version.csv', '***')
    """
    text = _URL.sub(rf"\1:{MASK}@", text)
    text = _NAMED.sub(lambda found: f"{found[1]}{found[2] or found[3]}{MASK}", text)
    text = _FORMS.sub(MASK, text)
    return _WORD.sub(lambda found: MASK if is_random(found[0]) else found[0], text)


def is_random(word: str) -> bool:
    """Whether a word is more random than words of people are: its characters by their entropy, and how they change."""
    counts = Counter(word).values()
    entropy = -sum(count / len(word) * log2(count / len(word)) for count in counts)
    kinds = ["d" if one.isdigit() else "U" if one.isupper() else "l" for one in word if one.isalnum()]
    # A capital before a small letter begins a word, as in CamelCase.
    changes = sum(a != b and (a, b) != ("U", "l") for a, b in pairwise(kinds))
    return entropy >= MIN_BITS and "d" in kinds and changes >= MIN_CHANGES * len(word)
