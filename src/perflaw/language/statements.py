"""What the grammar cannot say of statements and blocks: probabilities, mixtures, units, the order of things."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perflaw.language import ast
from perflaw.language.errors import refused, suggestion
from perflaw.language.remarks import Read, Remarks
from perflaw.language.rules import Measured, split
from perflaw.language.units import SIZE, TIME, dimension, size_of

if TYPE_CHECKING:
    from lark import Token

UNITS = {**dict.fromkeys(("time", "cpu", "gc", "lock_wait"), TIME), "allocated_bytes": SIZE}
"""Metrics whose units are known, and these."""
OFF = 1e-3
"""How far the probabilities of a mixture may sum to anything but 1: people round."""
_BINDING = re.compile(r"(.*?)([^\W\d]\w*)\s*=\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Weighted:
    """A part of a mixture and where it stands."""

    token: Token
    """Its probability as it is written."""
    probability: float
    """The same as a number."""
    distribution: ast.Distribution
    """Its law."""


def probability(token: Token) -> float:
    """Above 0 and at most 1, without a unit."""
    digits, unit = split(token)
    value = float(digits)
    if unit or not 0 < value <= 1:
        raise refused(token, f"a probability above 0 and at most 1 is expected, found {token[:40]}")
    return value


def mixture(parts: Sequence[Weighted]) -> tuple[ast.Part, ...]:
    """The parts, whose probabilities must sum to 1."""
    total = math.fsum(one.probability for one in parts)
    if abs(total - 1) > OFF:
        raise refused(parts[0].token, f"the probabilities of a mixture must sum to 1, these sum to {total:.6g}")
    return tuple(ast.Part(one.probability, one.distribution) for one in parts)


def binding(text: str) -> ast.Binding:
    """``uint s = *(this->size)`` in its three parts."""
    found = _BINDING.fullmatch(text)
    assert found  # the grammar's terminal is narrower
    return ast.Binding(found[1].strip(), found[2], found[3])


def arrange(
    statements: Sequence[ast.Binding | ast.Clause | Weighted | Read], unit: Token | None, metric: Token
) -> tuple[tuple[ast.Binding, ...], tuple[ast.Clause, ...], tuple[ast.Remark, ...]]:
    """Bindings, clauses and comments; weighted laws one after another are one mixture."""
    bindings, clauses, remarks = list[ast.Binding](), list[ast.Clause](), Remarks()
    run: list[Weighted] = []
    for statement in (*statements, None):
        if isinstance(statement, Read):
            remarks.read(statement)
            continue
        if isinstance(statement, Weighted):
            remarks.law(len(clauses), len(run))
            run.append(statement)
            continue
        if run:
            clauses.append(ast.Clause(None, mixture(run)))
            run = []
        if isinstance(statement, ast.Binding):
            remarks.binding(len(bindings))
            bindings.append(statement)
        elif statement is not None:
            remarks.law(len(clauses), 0)
            clauses.append(statement)
    if not clauses:
        raise refused(metric, "the block has no law; a distribution such as Norm(mean, deviation) is expected in it")
    _check_numbers(clauses, unit)
    return tuple(bindings), tuple(clauses), remarks.placed(len(bindings), clauses)


def _check_numbers(clauses: Sequence[ast.Clause], unit: Token | None) -> None:
    """Refuse ``[ms] { Norm(50us, …) }``: which of the two units is meant cannot be told."""
    if unit is None or size_of(unit) == 1:
        return
    for clause in clauses:
        for part in clause.parts:
            for argument in part.distribution.arguments:
                for node in argument.walk():
                    value = node.value if isinstance(node, ast.Number) else None
                    if isinstance(value, Measured) and dimension(split(value.token)[1]) == dimension(unit):
                        raise refused(value.token, f"a number with a unit in a block in [{unit}]; write one of the two")


def check_unit(metric: Token, unit: Token | None) -> None:
    """Refuse units of size for times; what a plug-in's metric is measured in is known to the recordings."""
    units = UNITS.get(metric)
    if unit is not None and units and unit not in units:
        raise refused(unit, f"{metric} cannot be in {unit[:40]}{suggestion(unit, units)}")


def with_comments(items: Sequence[str | ast.Block]) -> Iterator[ast.Block]:
    """The blocks, each with the comments before it."""
    comments: list[str] = []
    for item in items:
        if isinstance(item, str):
            comments.append(item)
        else:
            yield replace(item, comments=tuple(comments))
            comments = []
