"""Features' names in expressions: the annotation language reads a name with any other character in backquotes alone."""

from __future__ import annotations

import json
import re

_PLAIN = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
_TAKEN = {"true", "false", "inf", "infinity", "nan"}
"""Names that the language reads as numbers."""
_RAW = re.compile("[\x7f-\xa0\u2028\u2029\ud800-\udfff]")


def name(feature: str) -> str:
    r"""The feature's name as an expression has it.

    >>> name("docs.len"), name("argv[1]"), name("a`b")
    ('docs.len', '`argv[1]`', '`a\\`b`')
    """
    if _PLAIN.fullmatch(feature) and feature.lower() not in _TAKEN:
        return feature
    body = json.dumps(feature, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("`", "\\`")
    return "`" + _RAW.sub(lambda found: f"\\u{ord(found.group()):04x}", body) + "`"
