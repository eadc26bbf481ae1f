"""What is said of each function in an editor: its law, its cost at the chosen size, and what contradicts the law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perflaw.api.laws import LoadedLaws, load_laws
from perflaw.check.forecasts import Question, forecast
from perflaw.laws.printing import show
from perflaw.laws.tree import Clause
from perflaw.report.annotations import SMALL_SHARE
from perflaw.report.law_words import features_text
from perflaw.report.quantity import NOTHING, UNKNOWN, estimate, number, percent, quantity
from perflaw.types import Component

if TYPE_CHECKING:
    from perflaw.check.claims import Claim
    from perflaw.types import Forecast
    from perflaw.types.documents import Document

Point = Mapping[str, float]
"""Feature → value."""
REACH = 10
"""Without a chosen size, costs are those at so many times the largest recorded one."""
_CURVE = 24
"""Points of a curve."""


@dataclass(frozen=True, slots=True)
class FunctionLaw:
    """The law of a function with what new recordings say of it."""

    claim: Claim
    """The law."""
    component: Component
    """The function, with file and line where it was recorded."""
    source: str
    """Law file or experiment that has the law."""
    verdict: Document | None = None
    """What new recordings say, as ``check --json`` has it; None without new recordings."""

    @property
    def violated(self) -> bool:
        """Whether new recordings contradict it."""
        return self.verdict is not None and self.verdict["verdict"] == "violated"

    @property
    def shown(self) -> Document:
        """The law in words where it was learnt; for text alone, the text."""
        document = self.claim.document
        if document:
            return dict(document["shown"])
        clauses = [(show(one.condition) if one.condition is not None else "", _text(one)) for one in self.claim.clauses]
        laws = [{"condition": condition, "law": text} for condition, text in clauses]
        return {"per": "call", "laws": laws, "growth": "", "interval": "", "reason": ""}

    def law(self) -> str:
        """The law with its scopes on one line."""
        return "; ".join(
            f"[{one['condition']}] {one['law']}" if one["condition"] else one["law"] for one in self.shown["laws"]
        )

    def cost(self, at: Point) -> Forecast | None:
        """Its cost at a point, of a run where the law is one of runs; None where the law says nothing there."""
        answers = [one for one in forecast([self.claim], [Question(at)]) if one.mean is not None]
        per = self.shown["per"]
        return next((one for one in answers if one.of == per), None) or next(iter(answers), None)

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of each feature that the law which is shown was learnt from."""
        run_law = (self.claim.document or {}).get("run_law")
        found = run_law["range"] if run_law and self.shown["per"] == "run" else self.claim.ranges
        return {name: (low, high) for name, (low, high) in found.items() if low is not None and high is not None}


def _text(clause: Clause) -> str:
    parts = [
        f"{{{percent(one.probability)}}} " * (one.probability < 1) + show(one.distribution) for one in clause.parts
    ]
    return " · ".join(parts)


@dataclass(frozen=True, slots=True)
class Remarks:
    """Everything that an editor shows of a project's laws."""

    laws: tuple[FunctionLaw, ...] = ()
    """Functions with a law."""
    missing: tuple[tuple[Component, float], ...] = ()
    """Functions of the newest run without a committed law, with their share of its time."""
    largest: Point = field(default_factory=dict)
    """Largest recorded value of each feature of the runs."""


def read_laws(sources: Sequence[str], metric: str = "time") -> Remarks:
    """The laws of law files or experiments, without verdicts; PerflawError where one cannot be read."""
    laws: list[FunctionLaw] = []
    largest: dict[str, float] = {}
    for source in sources:
        loaded: LoadedLaws = load_laws(source, metric)
        for claim in loaded.claims:
            document = claim.document or {}
            component = Component(claim.component, document.get("file", ""), document.get("line", 0))
            laws.append(FunctionLaw(claim, component, source))
            run_law = document.get("run_law") or {"range": {}}
            for name, (_, high) in run_law["range"].items():
                if high is not None:
                    largest[name] = max(high, largest.get(name, high))
    return Remarks(tuple(laws), (), largest)


def judge(remarks: Remarks, experiment: str, metric: str = "time") -> Remarks:
    """The same with verdicts of the experiment's recordings, and with functions that have no committed law.

    PerflawError where the experiment has no recordings, or only those that the laws were learnt from.
    """
    from perflaw.api.checks import check_recordings
    from perflaw.check.judge import CheckOptions
    from perflaw.report.documents import check_document

    verdicts: dict[tuple[str, str, str], Document] = {}
    for source in dict.fromkeys(one.source for one in remarks.laws):
        found = check_recordings(source, experiment, (), metric, CheckOptions())[0]
        for one in check_document(found, [], [])["verdicts"]:
            key = (source, one["component"], one["metric"])
            if key not in verdicts or one["verdict"] == "violated":
                verdicts[key] = one
    laws = tuple(
        FunctionLaw(
            one.claim, one.component, one.source, verdicts.get((one.source, one.claim.component, one.claim.metric.name))
        )
        for one in remarks.laws
    )
    return Remarks(laws, remarks.missing, remarks.largest)


def without_law(remarks: Remarks, experiment: str) -> Remarks:
    """The same with the functions of the newest run that no law speaks of; PerflawError where there is no run."""
    from perflaw.api.profiles import profile_document

    known = {one.claim.component for one in remarks.laws}
    document = profile_document(experiment, (), None)
    missing = [
        (Component(one["component"], one["file"], one["line"]), one["share"])
        for one in document["functions"]
        if one["component"] not in known and one["share"] >= SMALL_SHARE and one["file"]
    ]
    return Remarks(remarks.laws, tuple(missing), remarks.largest)


def lens(one: FunctionLaw, at: Point) -> str:
    """The line above a function."""
    from perflaw.report.verdicts import ratio_text

    shown, cost = one.shown, one.cost(at)
    parts = []
    if one.violated and one.verdict and one.verdict["effect"] is not None:
        parts.append(f"violated: {ratio_text(one.verdict['effect'], None, None)} the law")
    elif one.violated:
        parts.append("violated")
    parts.append(f"{one.claim.metric.name} per {shown['per']}: {one.law()}")
    if shown["growth"] not in ("", "constant"):
        parts.append(f"grows as {shown['growth']} {shown['interval']}".rstrip())
    if cost and cost.features:
        parts.append(f"{_cost(cost)} at {features_text(cost.features)}")
    return " · ".join(filter(None, parts))


def hover(one: FunctionLaw, at: Point) -> str:
    """What is told of a function on demand, as Markdown."""
    from perflaw.report.verdicts import describe

    shown, document = one.shown, one.claim.document or {}
    parameters = f"({', '.join(document['parameters'])})" if document.get("parameters") else ""
    lines = [f"**{_plain(one.claim.component + parameters)}** · {one.claim.metric.name} per {shown['per']}", ""]
    lines += [f"`{one.law()}`" + (f" · grows as {_plain(shown['growth'])} {shown['interval']}" * bool(shown["growth"]))]
    if one.verdict:
        lines += ["", f"**{one.verdict['verdict']}**: {_plain(describe(one.verdict))}"]
    if costs := _costs(one, at):
        lines += ["", "| at | cost |", "|---|---|", *costs]
    facts = [f"{percent(document['share'])} of the cost"] if "share" in document else []
    facts += [f"learnt for {name} = {number(low)}–{number(high)}" for name, (low, high) in one.ranges().items()]
    lines += ["", " · ".join([*facts, f"from {_plain(one.source)}"])]
    if shown["reason"]:
        lines += ["", _plain(shown["reason"])]
    return "\n".join(lines)


def _costs(one: FunctionLaw, at: Point) -> list[str]:
    """Rows of the costs at the largest recorded sizes, and at those that were chosen."""
    recorded = {name: high for name, (_, high) in one.ranges().items()}
    rows = {}
    for point in (recorded, at):
        cost = one.cost(point) if point else None
        if cost and cost.features:
            rows[features_text(cost.features)] = _cost(cost)
    return [f"| {_plain(where)} | {cost} |" for where, cost in rows.items()]


def _cost(cost: Forecast) -> str:
    told = estimate(cost.mean, cost.mean_low, cost.mean_high, cost.metric.unit)
    return quantity(cost.mean, cost.metric.unit) if told in (UNKNOWN, NOTHING) else told


def _plain(text: str) -> str:
    """Text that means in Markdown what it says."""
    return "".join(f"\\{letter}" if letter in "\\`*_<>[]|#" else letter for letter in text)


def plot(one: FunctionLaw, at: Point) -> str:
    """The law over its first feature, as SVG; empty where it depends on none."""
    from perflaw.report.drawing import Series, line_plot

    cost = one.cost(at)
    ranges = one.ranges()
    if cost is None or not (names := [name for name in cost.features if name in ranges]):
        return ""
    low, high = ranges[names[0]]
    high = max(REACH * high, at.get(names[0], high))
    if not 0 < low < high:
        return ""
    xs = [low * (high / low) ** (step / (_CURVE - 1)) for step in range(_CURVE)]
    known = [(x, found) for x in xs if (found := one.cost({**at, names[0]: x})) is not None and found.of == cost.of]
    points = [(x, found.mean, found.mean_low, found.mean_high) for x, found in known]
    curve = [(x, mean, low, high) for x, mean, low, high in points if mean is not None]
    if len(curve) < 2:
        return ""
    bounded = all(low is not None and high is not None for _, _, low, high in curve)
    law = Series(
        "law", [x for x, *_ in curve], [mean for _, mean, *_ in curve], line=True,
        low=[low or 0.0 for _, _, low, _ in curve] if bounded else (),
        high=[high or 0.0 for *_, high in curve] if bounded else (),
    )  # fmt: skip
    series = [law]
    if cost.mean is not None:
        series.append(Series(features_text(cost.features), [cost.features[names[0]]], [cost.mean]))
    title = f"{one.claim.component}: {one.claim.metric.name} per {cost.of}"
    return line_plot(title, names[0], one.claim.metric.unit, series).svg
