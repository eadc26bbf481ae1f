"""Annotations in the annotation language, as a ``.law`` file (Freud §2.2, Figure 2): nouns to nouns, then printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflaw.laws.printing import learnt_text, show, writable_unit
from perflaw.laws.tree import Block, LawFile
from perflaw.report.quantity import number, percent
from perflaw.types import Annotation, Breakpoint, Law


def law_file(annotations: Sequence[Annotation]) -> str:
    """All annotations, one block a component and metric; comments tell the evidence.

    Of several components of one name the dearest, which stands first, is written: a file says a thing once.
    """
    named: dict[tuple[str, str], list[Annotation]] = {}
    for one in annotations:
        named.setdefault((one.component.name, one.metric.name), []).append(one)
    return show(LawFile(tuple(block(first, others) for first, *others in named.values())))


def block(one: Annotation, others: Sequence[Annotation] = ()) -> Block:
    """One annotation as the language has it: scopes of one condition are the parts of a mixture.

    ``others`` are components of the same name, which a comment says are left out.
    """
    return Block(
        one.component.name,
        one.metric.name,
        one.component.parameters,
        (),
        one.clauses,
        one.metric.unit if writable_unit(one.metric.unit) else "",
        tuple(" ".join(line.split()) for line in (*_comments(one), *_left_out(others))),
    )


def _comments(one: Annotation) -> Iterator[str]:
    """Where the laws come from and how sure they are."""
    runs = max(scope.law.runs for scope in one.scopes)
    unit = "" if writable_unit(one.metric.unit) else f"; unit {one.metric.unit}"
    yield f"{one.calls:,} calls, {runs} runs, {percent(one.share)} of the cost{unit}"
    yield from one.marks
    yield from map(_breakpoint, one.breakpoints)
    for scope in one.scopes:
        place = f"[{show(scope.condition)}] " if len(one.scopes) > 1 and scope.condition else ""
        yield from (f"{place}{line}" for line in _doubts(scope.law))


def _left_out(others: Sequence[Annotation]) -> Iterator[str]:
    if others:
        places = ", ".join(f"{one.component.file}:{one.component.line}" for one in others)
        yield f"{len(others)} more component{'s' * (len(others) > 1)} of this name left out: {places}"


def _breakpoint(one: Breakpoint) -> str:
    return f"regimes part at {one.feature} = {number(one.value)} ({number(one.low)}–{number(one.high)})"


def _doubts(law: Law) -> Iterator[str]:
    if law.reason:
        yield law.reason
    for other in law.alternatives:
        yield f"fits equally well: {learnt_text(other.expression)}"
    for feature, others in law.collinear.items():
        yield f"{feature} varies together with {', '.join(others)}"
