"""A study in words: settings, configurations, values of metrics, how sure, what to do next. Shared by terminal and page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from perflaw.report.quantity import NOTHING, percent, quantity
from perflaw.report.quantity import estimate as estimate_with
from perflaw.types.explored import Choice, Estimate, Importance, StudyResult, VarianceShare
from perflaw.types.studies import Configuration, Knob, Study, StudyMetric, Trial, Value

_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_NS = {"s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "ns": 1.0}


def setting_text(knob: Knob | None, value: Value) -> str:
    """A setting as people write it.

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
    """What a value is multiplied by to be written, and the unit that is then rescaled."""
    if metric.unit in _NS:
        return _NS[metric.unit], "ns"
    return (1.0, "bytes") if metric.unit in ("B", "bytes") else (1.0, metric.unit)


def value_text(metric: StudyMetric, value: float | None) -> str:
    """A metric's value with its unit."""
    factor, unit = unit_of(metric)
    return quantity(value * factor, unit) if value is not None else NOTHING


def estimate_text(metric: StudyMetric, estimate: Estimate) -> str:
    """``243 k rows/s (235–252)``; without an interval where the data give none.

    Of a number without a unit that is known to more than two digits, as many as the interval leaves.

    >>> estimate_text(StudyMetric("packed", {}), Estimate(0.17012, 0.16891, 0.17104))
    '0.170 (0.169–0.171)'
    """
    factor, unit = unit_of(metric)
    if estimate.low == estimate.high:
        return quantity(estimate.value * factor, unit)
    wide = estimate.high - estimate.low
    if not unit and abs(estimate.value) < 1000 and wide < abs(estimate.value) / 10 and wide > 1e-6:
        ends = (estimate.value, estimate.low, estimate.high)
        mean, low, high = (f"{end:.{max(0, math.ceil(-math.log10(wide)))}f}" for end in ends)
        return f"{mean} ({low}–{high})"
    return estimate_with(estimate.value * factor, estimate.low * factor, estimate.high * factor, unit)


def sure_text(choice: Choice) -> str:
    """How sure it is that nothing is better by more than the margin."""
    margin = f"{choice.margin * 100:.3g} %"
    if choice.probability is None:
        return "how sure that is cannot be said yet: try more configurations"
    return f"{probability_text(choice.probability)} sure that no configuration is better by more than {margin}"


def probability_text(probability: float) -> str:
    """In whole percent; never quite none, never quite all, for it comes of finitely many draws."""
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
    """How far repeated trials lie apart."""
    if importance.noise != importance.noise:  # not known: no configuration was tried twice
        return ""
    return (
        f"noise {percent(importance.noise)}"
        if importance.logarithm
        else f"noise {value_text(metric, importance.noise)}"
    )


def told_shares(importance: Importance) -> list[VarianceShare]:
    """Shares that are established."""
    return [one for one in importance.shares if one.sure]


def heading(found: StudyResult) -> str:
    """What was done: trials, configurations, how many count, why it is over."""
    begun = [one for one in found.trials if one.started]
    invalid = sum(not one.valid for one in begun)
    parts = [f"{_several(len(begun), 'trial')} of {_several(len(found.tried), 'configuration')}"]
    parts += [f"{invalid} invalid"] * bool(invalid)
    parts += [f"{sum(bool(one.stopped) for one in begun)} ended early"] * any(one.stopped for one in begun)
    parts.append(f"policy {found.study.policy}")
    if found.unfinished:
        parts.append("unfinished" + _left(found.left))
    elif found.ended:
        parts.append(f"finished: {found.ended}")
    return f"{found.study.name}: {', '.join(parts)}"


def _left(left: Mapping[str, float]) -> str:
    if "trials" in left:
        return f" ({_several(round(left['trials']), 'trial')} left)"
    return f" ({left['minutes']:.0f} minutes left)" if "minutes" in left else ""


def state_of(trial: Trial) -> str:
    """What became of a trial, in a word."""
    if not trial.started:
        return "planned"
    if not trial.valid:
        return "invalid" if trial.reason else "running"
    return "ended early" if trial.stopped else "disturbed" if trial.contaminated else "done"


def next_steps(found: StudyResult, name: str = "STUDY") -> Iterator[tuple[str, str]]:
    """Commands that help most now, and what for."""
    best = found.best
    if found.unfinished:
        yield f"perflaw explore {name}", "goes on where it was"
        return
    if best is None:
        yield f"perflaw explore {name} --dry-run", "shows what is done to the target; no trial was valid"
        return
    if best.probability is not None and best.probability < 0.9:
        yield f"perflaw explore {name} --trials {2 * max(len(found.trials), 10)}", "to be surer of the best"
    elif best.probability is None:
        yield f"perflaw explore {name} --trials 30", "to say how sure the best is"
    if any(one.law.verdict == "law" and one.law.features for one in found.laws):
        yield f"perflaw explore {name} -o {found.study.name}.law", "writes the laws, for perflaw check"


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
