"""The result of a study in the terminal: the best, how sure that is, what matters, a map, laws, warnings, next steps.

The page shares the words: settings, values of metrics, confidence, the next steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from perflaw.laws import units
from perflaw.laws.printing import learnt_text
from perflaw.report import tables
from perflaw.report.quantity import NOTHING, counted, percent, quantity
from perflaw.report.quantity import estimate as estimate_with_unit
from perflaw.report.tables import WIDTH, printable, text_table
from perflaw.types.explored import Choice, Estimate, Importance, StudyResult, VarianceShare
from perflaw.types.studies import Configuration, Knob, Study, StudyMetric, Trial, Value

_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def setting_text(knob: Knob | None, value: Value) -> str:
    """A setting with the knob's unit.

    >>> setting_text(Knob("page", "ordinal", unit="B"), 65536), setting_text(None, True), setting_text(None, 0.25)
    ('64 KiB', 'yes', '0.25')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if knob is not None and knob.unit in ("B", "bytes"):
        size, name = next(((size, name) for size, name in _BINARY if abs(value) >= size), (1, "B"))
        return f"{value / size:.4g} {name}"
    text = f"{value:,.6g}" if abs(value) < 1e6 else f"{value:.6g}".replace("e+0", "e").replace("e+", "e")
    return f"{text} {knob.unit}".strip() if knob is not None else text


def configuration_text(study: Study, configuration: Configuration) -> str:
    """``page_size = 64 KiB, threads = 3``."""
    return ", ".join(f"{name} = {text}" for name, text in setting_texts(study, configuration).items())


def setting_texts(study: Study, configuration: Configuration) -> dict[str, str]:
    """Each setting of a configuration with its knob's unit."""
    knobs = {knob.name: knob for knob in study.knobs}
    return {name: setting_text(knobs.get(name), value) for name, value in configuration.items()}


def unit_of(metric: StudyMetric) -> tuple[float, str]:
    """The unit that `quantity` rescales, and its number in one unit of the metric."""
    if metric.unit in units.TIME:
        return units.TIME[metric.unit], "ns"
    return (1.0, "bytes") if metric.unit in ("B", "bytes") else (1.0, metric.unit)


def value_text(metric: StudyMetric, value: float | None) -> str:
    """A metric's value with its unit."""
    factor, unit = unit_of(metric)
    return quantity(value * factor, unit) if value is not None else NOTHING


def estimate_text(metric: StudyMetric, estimate: Estimate) -> str:
    """``243 k rows/s (235–252)``; without an interval where the data give none.

    A number without a unit has as many digits as its interval allows.

    >>> estimate_text(StudyMetric("packed", {}), Estimate(0.17012, 0.16891, 0.17104))
    '0.170 (0.169–0.171)'
    """
    factor, unit = unit_of(metric)
    if estimate.low == estimate.high:
        return quantity(estimate.value * factor, unit)
    width = estimate.high - estimate.low
    if not unit and abs(estimate.value) < 1000 and 1e-6 < width < abs(estimate.value) / 10:
        decimals = max(0, math.ceil(-math.log10(width)))
        mean, low, high = (f"{end:.{decimals}f}" for end in (estimate.value, estimate.low, estimate.high))
        return f"{mean} ({low}–{high})"
    return estimate_with_unit(estimate.value * factor, estimate.low * factor, estimate.high * factor, unit)


def sure_text(choice: Choice) -> str:
    """The probability that no configuration is better by more than the margin."""
    if choice.probability is None:
        return "how sure that is cannot be said yet: try more configurations"
    margin = f"{choice.margin * 100:.3g} %"
    return f"{probability_text(choice.probability)} sure that no configuration is better by more than {margin}"


def probability_text(probability: float) -> str:
    """A probability in whole percent, never 0 or 100: it comes from finitely many draws."""
    return "<1 %" if probability < 0.01 else ">99 %" if probability > 0.99 else f"{probability * 100:.0f} %"


def share_text(share: VarianceShare) -> str:
    """``46 % (44–49)``."""
    low, high = (
        f"{end * 100:.0f}" if end >= 0.0095 or end == 0 else f"{end * 100:.1f}" for end in (share.low, share.high)
    )
    return f"{percent(share.share)} ({low}–{high})"


def knobs_text(share: VarianceShare) -> str:
    """``page_size × cache``."""
    return " × ".join(share.knobs)


def noise_text(importance: Importance, metric: StudyMetric) -> str:
    """The difference between repeated trials; empty where no configuration was tried twice."""
    if math.isnan(importance.noise):
        return ""
    noise = percent(importance.noise) if importance.logarithm else value_text(metric, importance.noise)
    return f"noise {noise}"


def robust_differs(result: StudyResult) -> bool:
    """Whether the robust configuration is another than the best."""
    best, robust = result.best, result.robust
    return bool(best and robust and dict(robust.configuration) != dict(best.configuration))


def heading(result: StudyResult) -> str:
    """Numbers of trials and configurations, the policy, and whether the study is finished."""
    started = [trial for trial in result.trials if trial.started]
    invalid = sum(not trial.valid for trial in started)
    stopped = sum(bool(trial.stopped) for trial in started)
    parts = [f"{counted(len(started), 'trial')} of {counted(len(result.tried), 'configuration')}"]
    parts += [f"{invalid} invalid"] * bool(invalid)
    parts += [f"{stopped} ended early"] * bool(stopped)
    parts.append(f"policy {result.study.policy}")
    if result.unfinished:
        left = ""
        if "trials" in result.left:
            left = f" ({counted(round(result.left['trials']), 'trial')} left)"
        elif "minutes" in result.left:
            left = f" ({counted(round(result.left['minutes']), 'minute')} left)"
        parts.append(f"unfinished{left}")
    elif result.ended:
        parts.append(f"finished: {result.ended}")
    return f"{result.study.name}: {', '.join(parts)}"


def state_of(trial: Trial) -> str:
    """The state of a trial in a word."""
    if not trial.started:
        return "planned"
    if not trial.valid:
        return "invalid" if trial.reason else "running"
    return "ended early" if trial.stopped else "disturbed" if trial.contaminated else "done"


def next_steps(result: StudyResult, name: str = "STUDY") -> Iterator[tuple[str, str]]:
    """Commands that help most now, each with its purpose; ``name`` is the study on the command line."""
    best = result.best
    if result.unfinished:
        yield f"perflaw explore {name}", "continues the study"
        return
    if best is None:
        yield f"perflaw explore {name} --dry-run", "shows what is done to the target; no trial was valid"
        return
    if best.probability is not None and best.probability < 0.9:
        yield f"perflaw explore {name} --trials {2 * max(len(result.trials), 10)}", "to be surer of the best"
    elif best.probability is None:
        yield f"perflaw explore {name} --trials 30", "to learn how sure the best is"
    if any(one.law.verdict == "law" and one.law.features for one in result.laws):
        yield f"perflaw explore {name} -o {result.study.name}.law", "writes the laws, for perflaw check"


MAX_SHARES, MAX_FRONT, MAX_NOTICES, MAX_MAPS = 8, 8, 8, 3
"""Rows of each part."""
_BAR = 20
_SHADES = " ░▒▓█"
_MAX_LEVEL_NAME = 14


def explore_text(result: StudyResult, colour: bool = False, name: str = "STUDY") -> str:
    """The whole result in 80 columns; ``name`` is the study on the command line."""
    metrics = {metric.name: metric for metric in result.study.metrics}
    text = _paragraph(heading(result))
    if result.best:
        text += "\n" + _choice("best", result.best, result, metrics)
        if result.robust and robust_differs(result):
            text += _choice("robust", result.robust, result, metrics)
    for importance in result.importance[:2]:
        noise = noise_text(importance, metrics[importance.metric])
        notes = ["every combination was tried"] * importance.exact + [noise] * bool(noise)
        variance = "log-variance" if importance.logarithm else "variance"
        head = f"what matters for {importance.metric}: share of its {variance} over the space"
        head += f" ({', '.join(notes)})" if notes else ""
        if importance.reason:
            text += "\n" + _paragraph(f"{head}: {importance.reason}")
            continue
        shares = [share for share in importance.shares if share.sure][:MAX_SHARES]
        rows = [[share_text(share), knobs_text(share), "█" * round(share.share * _BAR)] for share in shares]
        table = text_table(["share", "knobs", ""], rows, right=(0,), colour=colour)
        text += "\n" + _paragraph(head) + "".join(f" {line}\n" for line in table.splitlines())
    maps = _maps(result) if any(one.shares for one in result.importance[:1]) else ""
    text += "\n" + maps if maps else ""
    if len(result.pareto) > 1:
        names = [name for name in result.pareto[0].metrics if metrics[name].goal]
        shown = result.pareto[:MAX_FRONT]
        rows = [
            [
                configuration_text(result.study, one.configuration),
                *(estimate_text(metrics[name], one.metrics[name]) for name in names),
                probability_text(one.probability),
            ]
            for one in shown
        ]
        table = text_table(["no other is better in every metric", *names, "sure"], rows, (), colour)
        left = len(result.pareto) - len(shown)
        text += "\n" + table + (f"  {left} more (--all lists all)\n" if left else "")
    text += "\n" * bool(result.laws)
    for one in result.laws:
        law = learnt_text(one.law.expression) if one.law.verdict == "law" else f"{one.law.verdict}: {one.law.reason}"
        text += _paragraph(f"law of {one.metric.name}: {printable(law)}")
    # Warnings, without those that stand beside the shares already.
    notices = [one for one in result.notices if one.kind not in ("null", "few")]
    listed = notices[:MAX_NOTICES]
    text += "\n" * bool(listed) + "".join(_paragraph(f"! {printable(one.words)}") for one in listed)
    left = len(notices) - len(listed)
    text += f"  {counted(left, 'more warning')} (--all lists all)\n" if left else ""
    steps = [_paragraph(f"  {command}  ({purpose})") for command, purpose in next_steps(result, name)]
    return text + ("\nnext\n" + "".join(steps) if steps else "")


def _paragraph(text: str) -> str:
    """The text in lines of 80 columns; a number and its percent sign stay on one line."""
    return tables.paragraph(text.replace(" %", "\u00a0%")).replace("\u00a0", " ")


def _choice(title: str, choice: Choice, result: StudyResult, metrics: Mapping[str, StudyMetric]) -> str:
    values = ", ".join(f"{name} {estimate_text(metrics[name], one)}" for name, one in choice.metrics.items())
    objective = result.objective
    if objective and objective.name in choice.measured:
        measured = value_text(objective, choice.measured[objective.name])
        values += f"; measured {measured} in {counted(len(choice.trials), 'trial')}"
    reason = sure_text(choice) if title == "best" else choice.why
    lines = [f"{title}: {configuration_text(result.study, choice.configuration)}", f"  {values}", f"  {reason}"]
    return "".join(map(_paragraph, lines))


def _maps(result: StudyResult) -> str:
    """Heat maps of the objective over two knobs, in percent of the best, darker is better; empty without a map."""
    surface, objective = result.surface, result.objective
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
        for facet in zip(surface.measured, surface.expected, strict=True)
    ]
    values = [value for facet in cells for row in facet for value, _ in row if value is not None]
    if len(values) < 2 or min(values) <= 0 or min(values) == max(values):
        return ""
    best = min(values) if objective.goal == "min" else max(values)
    knobs = {knob.name: knob for knob in result.study.knobs}
    text = _paragraph(
        f"{surface.metric} in % of the best: {surface.x} across, {surface.y} upwards (~ not tried, expected)"
    )
    for facet, rows in list(zip(surface.facet_values, cells, strict=True))[:MAX_MAPS]:
        if surface.facet:
            text += f" {surface.facet} = {setting_text(knobs.get(surface.facet), facet)}\n"
        # The rows from the highest level down, then the levels across.
        names = [setting_text(knobs.get(surface.y), value) for value in surface.y_values]
        heads = [setting_text(knobs.get(surface.x), value).replace(" ", "") for value in surface.x_values]
        margin = min(_MAX_LEVEL_NAME, max(map(len, names)))
        column = max(6, max(map(len, heads)) + 1)
        columns = max(1, (WIDTH - margin - 4) // column)
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
    left = len(surface.facet_values) - MAX_MAPS
    return text + (f" {left} more on the page\n" if left > 0 else "")
