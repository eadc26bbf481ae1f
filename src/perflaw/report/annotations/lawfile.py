"""Annotations in the annotation language, as a ``.law`` file (Freud §2.2, Figure 2): nouns to nouns, then printed."""

from __future__ import annotations

from collections.abc import Sequence

from perflaw.laws.printing import learnt_text, show, writable_unit
from perflaw.laws.tree import Block, LawFile
from perflaw.report.quantity import number, percent
from perflaw.types import Annotation


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
    runs = max(scope.law.runs for scope in one.scopes)
    unit = "" if writable_unit(one.metric.unit) else f"; unit {one.metric.unit}"
    comments = [f"{one.calls:,} calls, {runs} runs, {percent(one.share)} of the cost{unit}", *one.marks]
    for border in one.breakpoints:
        ends = f"{number(border.low)}–{number(border.high)}"
        comments.append(f"regimes part at {border.feature} = {number(border.value)} ({ends})")
    for scope in one.scopes:
        place = f"[{show(scope.condition)}] " if len(one.scopes) > 1 and scope.condition else ""
        doubts = [scope.law.reason] if scope.law.reason else []
        doubts += [f"fits equally well: {learnt_text(law.expression)}" for law in scope.law.alternatives]
        doubts += [f"{name} varies together with {', '.join(same)}" for name, same in scope.law.collinear.items()]
        comments += [f"{place}{line}" for line in doubts]
    if others:
        places = ", ".join(f"{other.component.file}:{other.component.line}" for other in others)
        comments.append(f"{len(others)} more component{'s' * (len(others) > 1)} of this name left out: {places}")
    return Block(
        one.component.name,
        one.metric.name,
        one.component.parameters,
        (),
        one.clauses,
        one.metric.unit if writable_unit(one.metric.unit) else "",
        tuple(" ".join(line.split()) for line in comments),
    )
