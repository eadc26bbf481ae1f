r"""Names in backquotes and texts in quotes: JSON's escapes, so that any text can stand there.

>>> quote('calls.app.<lambda>', "`"), unquote('`a\\`b`')
('`calls.app.<lambda>`', 'a`b')
"""

from __future__ import annotations

import json
import re

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {'"': '"', "'": "'", "`": "`", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_RAW = re.compile("[\x7f-\xa0\u2028\u2029\ud800-\udfff]")


def quote(text: str, mark: str) -> str:
    """The text between two marks; what is invisible or no character is escaped."""
    body = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace(mark, "\\" + mark)
    return mark + _RAW.sub(lambda found: f"\\u{ord(found.group()):04x}", body) + mark


def unquote(token: str) -> str:
    """The text between the marks, escapes undone; an unknown escape stands for its character."""
    return _ESCAPE.sub(_character, token[1:-1])


def _character(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _PLAIN.get(code, code)
