"""The result of a study in the terminal: best, how sure, what matters, a map, laws, warnings, what to do next."""

from __future__ import annotations

from perflaw.report import explore_words as words
from perflaw.report import prose
from perflaw.report.explore_map import map_text
from perflaw.report.table import printable, text_table
from perflaw.types.explored import Choice, Explored, Importance
from perflaw.types.studies import StudyMetric

MOST_SHARES, MOST_FRONT, MOST_NOTICES = 8, 8, 8
"""Rows of each part where not all are asked for."""
BAR = 20


def explore_text(found: Explored, colour: bool = False, every: bool = False, name: str = "STUDY") -> str:
    """Return the whole result in 80 columns; ``name`` is the study as it was named on the command line."""
    metrics = {one.name: one for one in found.study.metrics}
    text = paragraph(words.heading(found))
    if found.best:
        text += "\n" + _choice("best", found.best, found, metrics)
        if found.robust and dict(found.robust.configuration) != dict(found.best.configuration):
            text += _choice("robust", found.robust, found, metrics)
    for one in found.importance if every else found.importance[:2]:
        text += _importance(one, metrics[one.metric], colour, every)
    maps = map_text(found) if any(one.shares for one in found.importance[:1]) else ""
    text += "\n" + maps if maps else ""
    text += _front(found, metrics, colour, every) + _laws(found)
    all_notices = [one for one in found.notices if one.kind not in ("null", "few")]  # told above, beside the shares
    notices = all_notices if every else all_notices[:MOST_NOTICES]
    text += "\n" * bool(notices) + "".join(paragraph(f"! {printable(one.words)}") for one in notices)
    left = len(all_notices) - len(notices)
    text += f"  {left} more warnings (--all tells all)\n" if left else ""
    steps = list(words.next_steps(found, name))
    return text + ("\nnext\n" + "".join(paragraph(f"  {command}  ({why})") for command, why in steps) if steps else "")


def paragraph(text: str) -> str:
    """The text in lines of 80 columns, percentages whole."""
    return prose.paragraph(text.replace(" %", "\u00a0%")).replace("\u00a0", " ")


def _choice(title: str, choice: Choice, found: Explored, metrics: dict[str, StudyMetric]) -> str:
    lines = [f"{title}: {words.configuration_text(found.study, choice.configuration)}"]
    expected = [f"{name} {words.estimate_text(metrics[name], one)}" for name, one in choice.metrics.items()]
    seen = choice.measured.get(found.objective.name) if found.objective else None
    told = ", ".join(expected)
    if seen is not None and found.objective:
        count = len(choice.trials)
        told += f"; measured {words.value_text(found.objective, seen)} in {count} trial{'s' * (count != 1)}"
    lines += ["  " + told, "  " + (words.sure_text(choice) if title == "best" else choice.why)]
    return "".join(map(paragraph, lines))


def _importance(one: Importance, metric: StudyMetric, colour: bool, every: bool) -> str:
    noise = words.noise_text(one, metric)
    kind = "log-variance" if one.logarithm else "variance"
    how = ["every combination was tried"] * one.exact + [noise] * bool(noise)
    head = f"\nwhat matters for {one.metric}: share of its {kind} over the space" + (
        f" ({', '.join(how)})" if how else ""
    )
    if one.reason:
        return "\n" + paragraph(f"{head.strip()}: {one.reason}")
    shares = [*one.shares] if every else words.told_shares(one)[:MOST_SHARES]
    rows = [[words.share_text(share), words.knobs_text(share), "█" * round(share.share * BAR)] for share in shares]
    table = text_table(["share", "knobs", ""], rows, right=(0,), colour=colour)
    return "\n" + paragraph(head.strip()) + "".join(f" {line}\n" for line in table.splitlines())


def _front(found: Explored, metrics: dict[str, StudyMetric], colour: bool, every: bool) -> str:
    """The front, where metrics disagree."""
    if len(found.pareto) < 2:
        return ""
    names = [name for name in found.pareto[0].metrics if metrics[name].goal]
    shown = [*found.pareto] if every else [*found.pareto][:MOST_FRONT]
    rows = [
        [
            words.configuration_text(found.study, one.configuration),
            *(words.estimate_text(metrics[name], one.metrics[name]) for name in names),
            words.probability_text(one.probability),
        ]
        for one in shown
    ]
    table = text_table(["no other is better in every metric", *names, "sure"], rows, (), colour)
    left = len(found.pareto) - len(shown)
    return "\n" + table + (f"  {left} more (--all tells all)\n" if left else "")


def _laws(found: Explored) -> str:
    """Laws, or why there is none."""
    text = ""
    for one in found.laws:
        law = one.law
        told = law.expression if law.verdict == "law" else f"{law.verdict}: {law.reason}"
        text += paragraph(f"law of {one.metric.name}: {printable(told)}")
    return "\n" + text if text else ""
