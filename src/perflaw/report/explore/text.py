"""The result of a study in the terminal: the best, how sure that is, what matters, a map, laws, warnings, next steps.

It renders the document ``perflaw.explore/1``. The page shares the words: settings, values of metrics, confidence, the
next steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

from perflaw.laws import units
from perflaw.report import tables
from perflaw.report.quantity import NOTHING, UNKNOWN, counted, estimate, percent, quantity
from perflaw.report.tables import printable, text_table, width
from perflaw.types.documents import Document
from perflaw.types.studies import Configuration, Value

_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def setting_text(unit: str, value: Value) -> str:
    """A setting with its knob's unit.

    >>> setting_text("B", 65536), setting_text("", True), setting_text("", 0.25)
    ('64 KiB', 'yes', '0.25')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if unit in ("B", "bytes"):
        size, name = next(((size, name) for size, name in _BINARY if abs(value) >= size), (1, "B"))
        return f"{value / size:.4g} {name}"
    text = f"{value:,.6g}" if abs(value) < 1e6 else f"{value:.6g}".replace("e+0", "e").replace("e+", "e")
    return f"{text} {unit}".strip()


def units_of(document: Document, nouns: Literal["knobs", "metrics"]) -> dict[str, str]:
    """The unit of each knob or metric of a study, by name."""
    name = "name" if nouns == "knobs" else "metric"
    return {one[name]: one["unit"] for one in document[nouns]}


def configuration_text(document: Document, configuration: Configuration) -> str:
    """``page_size = 64 KiB, threads = 3``."""
    return ", ".join(f"{name} = {text}" for name, text in setting_texts(document, configuration).items())


def setting_texts(document: Document, configuration: Configuration) -> dict[str, str]:
    """Each setting of a configuration with its knob's unit."""
    knobs = units_of(document, "knobs")
    return {name: setting_text(knobs.get(name, ""), value) for name, value in configuration.items()}


def unit_of(unit: str) -> tuple[float, str]:
    """The unit that `quantity` rescales, and its number in one of a metric's unit."""
    if unit in units.TIME:
        return units.TIME[unit], "ns"
    return (1.0, "bytes") if unit in ("B", "bytes") else (1.0, unit)


def value_text(unit: str, value: float | None) -> str:
    """A metric's value with its unit."""
    factor, unit = unit_of(unit)
    return quantity(value * factor, unit) if value is not None else NOTHING


def estimate_text(unit: str, value: float | None, interval: Sequence[float | None]) -> str:
    """``243 k rows/s (235–252)``; without an interval where the data give none.

    A number without a unit has as many digits as its interval allows.

    >>> estimate_text("", 0.17012, (0.16891, 0.17104))
    '0.170 (0.169–0.171)'
    """
    low, high = interval
    if value is None or low is None or high is None:
        return UNKNOWN
    factor, unit = unit_of(unit)
    if low == high:
        return quantity(value * factor, unit)
    width = high - low
    if not unit and abs(value) < 1000 and 1e-6 < width < abs(value) / 10:
        decimals = max(0, math.ceil(-math.log10(width)))
        return f"{value:.{decimals}f} ({low:.{decimals}f}–{high:.{decimals}f})"
    return estimate(value * factor, low * factor, high * factor, unit)


def estimate_texts(document: Document, choice: Document) -> dict[str, str]:
    """The expected value of each metric of a choice, or of a point of the front, with its interval."""
    metrics, intervals = units_of(document, "metrics"), choice["intervals"]
    return {name: estimate_text(metrics[name], one, intervals[name]) for name, one in choice["metrics"].items()}


def sure_text(choice: Document) -> str:
    """The probability that no configuration is better by more than the margin."""
    margin, probability = choice["within_margin"]["margin"], choice["within_margin"]["probability"]
    if probability is None:
        return "how sure that is cannot be said yet: try more configurations"
    return f"{probability_text(probability)} sure that no configuration is better by more than {margin * 100:.3g} %"


def probability_text(probability: float) -> str:
    """A probability in whole percent, never 0 or 100: it comes from finitely many draws."""
    return "<1 %" if probability < 0.01 else ">99 %" if probability > 0.99 else f"{probability * 100:.0f} %"


def share_text(share: Document) -> str:
    """``46 % (44–49)``."""
    low, high = (
        f"{end * 100:.0f}" if end >= 0.0095 or end == 0 else f"{end * 100:.1f}" for end in (share["low"], share["high"])
    )
    return f"{percent(share['share'])} ({low}–{high})"


def knobs_text(share: Document) -> str:
    """``page_size × cache``."""
    return " × ".join(share["knobs"])


def noise_text(importance: Document, unit: str) -> str:
    """The difference between repeated trials; empty where no configuration was tried twice."""
    noise = importance["noise"]
    if noise is None:
        return ""
    return f"noise {percent(noise) if importance['logarithm'] else value_text(unit, noise)}"


def robust_differs(document: Document) -> bool:
    """Whether the robust configuration is another than the best."""
    best, robust = document["best"], document["robust"]
    return bool(best and robust and robust["configuration"] != best["configuration"])


def heading(document: Document) -> str:
    """Numbers of trials and configurations, the policy, and whether the study is finished."""
    started = [trial for trial in document["trials"] if trial["started"]]
    invalid = sum(not trial["valid"] for trial in started)
    stopped = sum(bool(trial["stopped"]) for trial in started)
    parts = [f"{counted(len(started), 'trial')} of {counted(document['tried'], 'configuration')}"]
    parts += [f"{invalid} invalid"] * bool(invalid)
    parts += [f"{stopped} ended early"] * bool(stopped)
    parts.append(f"policy {document['policy']}")
    if document["unfinished"]:
        nouns = {"trials": "trial", "minutes": "minute"}
        left = [
            counted(round(document["left"][name]), noun) for name, noun in nouns.items() if name in document["left"]
        ]
        parts.append("unfinished" + (f" ({left[0]} left)" if left else ""))
    elif document["ended"]:
        parts.append(f"finished: {document['ended']}")
    return f"{document['study']}: {', '.join(parts)}"


def state_of(trial: Document) -> str:
    """The state of a trial in a word."""
    if not trial["started"]:
        return "planned"
    if not trial["valid"]:
        return "invalid" if trial["reason"] else "running"
    return "ended early" if trial["stopped"] else "disturbed" if trial["contaminated"] else "done"


def next_steps(document: Document, name: str = "STUDY") -> Iterator[tuple[str, str]]:
    """Commands that help most now, each with its purpose; ``name`` is the study on the command line."""
    best = document["best"]
    if document["unfinished"]:
        yield f"perflaw explore {name}", "continues the study"
        return
    if best is None:
        yield f"perflaw explore {name} --dry-run", "shows what is done to the target; no trial was valid"
        return
    probability = best["within_margin"]["probability"]
    if probability is not None and probability < 0.9:
        yield f"perflaw explore {name} --trials {2 * max(len(document['trials']), 10)}", "to be surer of the best"
    elif probability is None:
        yield f"perflaw explore {name} --trials 30", "to learn how sure the best is"
    if any(law["verdict"] == "law" and law["features"] for law in document["laws"].values()):
        yield f"perflaw explore {name} -o {document['study']}.law", "writes the laws, for perflaw check"


MAX_SHARES, MAX_FRONT, MAX_NOTICES, MAX_MAPS = 8, 8, 8, 3
"""Rows of each part."""
_BAR = 20
_SHADES = " ░▒▓█"
_MAX_LEVEL_NAME = 14


def explore_text(document: Document, colour: bool = False, name: str = "STUDY") -> str:
    """The whole result in 80 columns; ``name`` is the study on the command line."""
    text = _paragraph(heading(document))
    if document["best"]:
        text += "\n" + _choice("best", document)
        if robust_differs(document):
            text += _choice("robust", document)
    for importance in document["importance"][:2]:
        noise = noise_text(importance, units_of(document, "metrics")[importance["metric"]])
        notes = ["every combination was tried"] * importance["exact"] + [noise] * bool(noise)
        variance = "log-variance" if importance["logarithm"] else "variance"
        head = f"what matters for {importance['metric']}: share of its {variance} over the space"
        head += f" ({', '.join(notes)})" if notes else ""
        if importance["reason"]:
            text += "\n" + _paragraph(f"{head}: {importance['reason']}")
            continue
        shares = [share for share in importance["shares"] if share["sure"]][:MAX_SHARES]
        rows = [[share_text(share), knobs_text(share), "█" * round(share["share"] * _BAR)] for share in shares]
        table = text_table(["share", "knobs", ""], rows, right=(0,), colour=colour)
        text += "\n" + _paragraph(head) + "".join(f" {line}\n" for line in table.splitlines())
    maps = _maps(document) if any(one["shares"] for one in document["importance"][:1]) else ""
    text += "\n" + maps if maps else ""
    front = document["pareto"]
    if len(front) > 1:
        goals = {metric["metric"]: metric["goal"] for metric in document["metrics"]}
        names = [name for name in front[0]["metrics"] if goals[name]]
        shown = front[:MAX_FRONT]
        rows = [
            [
                configuration_text(document, one["configuration"]),
                *(estimate_texts(document, one)[name] for name in names),
                probability_text(one["probability"]),
            ]
            for one in shown
        ]
        table = text_table(["no other is better in every metric", *names, "sure"], rows, (), colour)
        left = len(front) - len(shown)
        text += "\n" + table + (f"  {left} more (--all lists all)\n" if left else "")
    text += "\n" * bool(document["laws"])
    for name_of_metric, law in document["laws"].items():
        stated = law["expression"] if law["verdict"] == "law" else f"{law['verdict']}: {law['reason']}"
        text += _paragraph(f"law of {name_of_metric}: {printable(stated)}")
    # Warnings, without those that stand beside the shares already.
    notices = [one for one in document["warnings"] if one["kind"] not in ("null", "few")]
    listed = notices[:MAX_NOTICES]
    text += "\n" * bool(listed) + "".join(_paragraph(f"! {printable(one['words'])}") for one in listed)
    left = len(notices) - len(listed)
    text += f"  {counted(left, 'more warning')} (--all lists all)\n" if left else ""
    steps = [_paragraph(f"  {command}  ({purpose})") for command, purpose in next_steps(document, name)]
    return text + ("\nnext\n" + "".join(steps) if steps else "")


def _paragraph(text: str) -> str:
    """The text in lines that the terminal holds; a number and its percent sign stay on one line."""
    return tables.paragraph(text.replace(" %", "\u00a0%")).replace("\u00a0", " ")


def _choice(title: Literal["best", "robust"], document: Document) -> str:
    choice, objective = document[title], document["objective"]
    values = ", ".join(f"{name} {text}" for name, text in estimate_texts(document, choice).items())
    if objective and objective["metric"] in choice["measured"]:
        name = objective["metric"]
        measured = value_text(units_of(document, "metrics")[name], choice["measured"][name])
        values += f"; measured {measured} in {counted(len(choice['trials']), 'trial')}"
    reason = sure_text(choice) if title == "best" else choice["why"]
    lines = [f"{title}: {configuration_text(document, choice['configuration'])}", f"  {values}", f"  {reason}"]
    return "".join(map(_paragraph, lines))


def _maps(document: Document) -> str:
    """Heat maps of the objective over two knobs, in percent of the best, darker is better; empty without a map."""
    surface, objective = document["surface"], document["objective"]
    if surface is None or objective is None:
        return ""
    # Value of each cell, by facet and row, and whether it was measured.
    cells = [
        [
            [
                (expected if measured is None else measured, measured is not None)
                for measured, expected in zip(*row, strict=True)
            ]
            for row in zip(*facet, strict=True)
        ]
        for facet in zip(surface["measured"], surface["expected"], strict=True)
    ]
    values = [value for facet in cells for row in facet for value, _ in row if value is not None]
    if len(values) < 2 or min(values) <= 0 or min(values) == max(values):
        return ""
    best = min(values) if objective["goal"] == "min" else max(values)
    knobs = units_of(document, "knobs")
    x, y, facet_knob = surface["x"], surface["y"], surface["facet"]
    text = _paragraph(f"{surface['metric']} in % of the best: {x} across, {y} upwards (~ not tried, expected)")
    for facet, rows in list(zip(surface["facet_values"], cells, strict=True))[:MAX_MAPS]:
        if facet_knob:
            text += f" {facet_knob} = {setting_text(knobs.get(facet_knob, ''), facet)}\n"
        # The rows from the highest level down, then the levels across.
        names = [setting_text(knobs.get(y, ""), value) for value in surface["y_values"]]
        heads = [setting_text(knobs.get(x, ""), value).replace(" ", "") for value in surface["x_values"]]
        margin = min(_MAX_LEVEL_NAME, max(map(len, names)))
        column = max(6, max(map(len, heads)) + 1)
        columns = max(1, (width() - margin - 4) // column)
        for name, row in reversed(list(zip(names, rows, strict=True))):
            # How good a value is beside the best, in percent, with a shade; ~ marks values that are expected.
            shown = ""
            for value, measured in row[:columns]:
                cell = "·"
                if value is not None and value > 0:
                    share = min(value / best, best / value)
                    shade = _SHADES[min(len(_SHADES) - 1, int(share * len(_SHADES)))] if measured else "~"
                    cell = f"{shade}{share * 100:.0f}"
                shown += cell.rjust(column)
            text += f"  {name[:margin].rjust(margin)}{shown}".rstrip() + "\n"
        text += f"  {'':{margin}}{''.join(head[: column - 1].rjust(column) for head in heads[:columns])}\n"
    left = len(surface["facet_values"]) - MAX_MAPS
    return text + (f" {left} more on the page\n" if left > 0 else "")
