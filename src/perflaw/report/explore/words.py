"""A study in words that the terminal and the page share: settings, values of metrics, confidence, the next steps."""

from __future__ import annotations

import math
from collections.abc import Iterator

from perflaw.report.quantity import NOTHING, counted, percent, quantity
from perflaw.report.quantity import estimate as estimate_with_unit
from perflaw.types.explored import Choice, Estimate, Importance, StudyResult, VarianceShare
from perflaw.types.studies import Configuration, Knob, Study, StudyMetric, Trial, Value

_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_NS = {"s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "ns": 1.0}


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
    knobs = {knob.name: knob for knob in study.knobs}
    return ", ".join(f"{name} = {setting_text(knobs.get(name), value)}" for name, value in configuration.items())


def unit_of(metric: StudyMetric) -> tuple[float, str]:
    """The unit that `quantity` rescales, and its number in one unit of the metric."""
    if metric.unit in _NS:
        return _NS[metric.unit], "ns"
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
