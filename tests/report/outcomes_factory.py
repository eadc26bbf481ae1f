"""Documents of ``perflaw check --json`` and ``perflaw diff --json`` about the factory's components."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from perflaw.report.documents import check_document, diff_document
from perflaw.types import TIME, Change, CheckVerdict, Component, DiffVerdict, Stated
from perflaw.types.documents import dumps

from .factory import HOSTILE


def _read_back(document: dict[str, Any]) -> dict[str, Any]:
    """As the page reads it: from a file."""
    read: dict[str, Any] = json.loads(dumps(document))
    return read


def checked() -> dict[str, Any]:
    """One component of each verdict, one that the page does not have, one that would like to be markup."""
    base = CheckVerdict(Component("index.build"), TIME, "", "violated", 1e-4, 1.8, 1.62, 2.1)
    verdicts = [
        replace(base, component=Component("cache.get"), verdict="holds", p=0.7, effect=1.01, effect_low=0.97, effect_high=1.06),
        replace(base, since="docs.len = 500", runs=3, runs_beyond=3, records=900),
        replace(base, component=Component("load.rows"), verdict="inconclusive", p=None, effect=None, effect_low=None,
                effect_high=None, message="too few records: 12"),
        replace(base, component=Component("sort.merge"), verdict="out of scope", effect=0.9, effect_low=0.5,
                effect_high=1.7, outside=0.4, message="items.len up to 1e6; learnt up to 10,000"),
        replace(base, component=Component("gone.function"), verdict="out of scope", effect=None, effect_low=None,
                effect_high=None, message="no such function in these runs"),
        replace(base, component=Component(HOSTILE), path=HOSTILE, message=HOSTILE, effect=40.0, effect_low=0.0,
                effect_high=1e9),
        replace(base, component=Component("cache.fetch"), path="branch.L12.taken > 0", verdict="holds", effect=1.1,
                effect_low=1.02, effect_high=1.2),
    ]  # fmt: skip
    return _read_back(check_document(verdicts, ["0010", "0011"], []))


def changed() -> dict[str, Any]:
    """The MySQL case on ``parse.tokens``: the slope grows 5.8-fold; another component became cheaper."""
    changes = (
        Change("coefficient", "text.len", "14 ns", "81 ns", 5.8, 5.5, 6.1),
        Change("feature", "k", "", "k"),
    )
    old = (Stated("", 1.0, "LogNorm(0.9 + 0.0024*text.len, 0.05)", 1000.0),)
    worse = DiffVerdict(
        Component("parse.tokens"), TIME, "", "violated", 1e-6, 5.8, 5.5, 6.1, changes, False, "", old, old
    )
    better = DiffVerdict(Component("sort.merge"), TIME, "", "holds", 0.001, 0.5, 0.45, 0.56, (), True)
    return _read_back(diff_document([worse, better]))
