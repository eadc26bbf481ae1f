"""The data of a study's page: everything it shows as JSON values, words ready, numbers for its charts and its sliders."""

from __future__ import annotations

import html
import re
from typing import Any

from perflaw.laws.printing import learnt_text
from perflaw.laws.trees import distribution_tree
from perflaw.report.explore import words
from perflaw.report.page.html import as_json, asset, program
from perflaw.types.documents import finite
from perflaw.types.explored import Choice, FrontPoint, Importance, MetricLaw, StudyResult, Surface
from perflaw.types.studies import Configuration, Knob, Study, StudyMetric, Trial, Value

Json = dict[str, Any]
RELOAD_S = 3
"""Seconds after which a page of an unfinished study looks for a newer one."""
MOST_LEVELS = 24
"""Settings of a knob that a slider steps through, beside those tried."""


def explore_data(found: StudyResult, seed: int = 0) -> Json:
    """Everything the page shows, without NaN or infinity."""
    study = found.study
    return {
        "title": study.name,
        "heading": words.heading(found).partition(": ")[2],
        "seed": seed,
        "reload": RELOAD_S if found.unfinished else 0,
        "knobs": [_knob(knob, found) for knob in study.knobs],
        "metrics": [_metric(one, found) for one in _ordered(found)],
        "best": _choice(found.best, found) if found.best else None,
        "robust": _choice(found.robust, found) if _other(found) and found.robust else None,
        "notices": [{"kind": one.kind, "words": one.words, "trials": list(one.trials)} for one in found.notices],
        "steps": list(words.next_steps(found)),
        "trials": [_trial(one, study) for one in found.trials],
        "surface": _surface(found.surface, study) if found.surface else None,
        "front": [_front(one, study) for one in found.pareto] if len(found.pareto) > 1 else [],
    }


def _ordered(found: StudyResult) -> list[StudyMetric]:
    """The objective first."""
    return sorted(found.study.metrics, key=lambda one: found.objective is None or one.name != found.objective.name)


def _other(found: StudyResult) -> bool:
    """Whether the robust configuration is another than the best."""
    return bool(found.robust and found.best and dict(found.robust.configuration) != dict(found.best.configuration))


def _knob(knob: Knob, found: StudyResult) -> Json:
    """A knob with the settings that its slider and its maps step through."""
    ordered = knob.kind in ("int", "float", "ordinal")
    levels = _levels(knob, found)
    return {
        "name": knob.name,
        "ordered": ordered,
        "categorical": knob.kind == "categorical",
        "workload": knob.workload,
        "log": knob.scale != "linear" or _spans(levels),
        "levels": [{"value": value, "text": words.setting_text(knob, value)} for value in levels],
        "default": knob.default,
    }


def _spans(levels: list[Value]) -> bool:
    numbers = [float(one) for one in levels if not isinstance(one, str)]
    return len(numbers) > 1 and min(numbers) > 0 and max(numbers) / min(numbers) > 30


def _levels(knob: Knob, found: StudyResult) -> list[Value]:
    """Listed settings; of a range its ends, what lies evenly between, and what was tried."""
    if knob.kind == "bool":
        return [False, True]
    if knob.values:
        return list(knob.values)
    low, high = knob.low or 0.0, knob.high or 0.0
    tried = {one.configuration[knob.name] for one in found.trials if knob.name in one.configuration}
    steps = [_between(knob, low, high, i / (MOST_LEVELS - 1)) for i in range(MOST_LEVELS)]
    whole: set[Value] = {round(one) for one in steps} if knob.kind == "int" else set(steps)
    some = {one for one in tried if not isinstance(one, str)} if len(tried) <= 2 * MOST_LEVELS else set()
    return sorted(whole | some, key=float)


def _between(knob: Knob, low: float, high: float, part: float) -> float:
    if knob.scale == "linear" or low <= 0:
        return low + (high - low) * part
    return float(low * (high / low) ** part)


def _metric(metric: StudyMetric, found: StudyResult) -> Json:
    factor, unit = words.unit_of(metric)
    law = next((one for one in found.laws if one.metric.name == metric.name), None)
    importance = next((one for one in found.importance if one.metric == metric.name), None)
    return {
        "name": metric.name,
        "goal": metric.goal,
        "unit": unit,
        "factor": factor,
        "law": _law(law) if law else None,
        "importance": _importance(importance, metric) if importance else None,
    }


def _law(one: MetricLaw) -> Json:
    law = one.law
    return {
        "expression": learnt_text(law.expression),
        "tree": distribution_tree(law.expression),
        "verdict": law.verdict,
        "reason": law.reason,
        "features": list(law.features),
        "range": {name: [finite(low), finite(high)] for name, (low, high) in law.range.items()},
        "facts": [
            ("family", law.family),
            ("explains", f"{max(0.0, law.r2) * 100:.0f} % of the variance" if law.r2 is not None else "—"),
            ("learnt from", f"{law.n} trials of {law.runs} configurations"),
        ],
        "alternatives": [learnt_text(other.expression) for other in law.alternatives],
    }


def _importance(one: Importance, metric: StudyMetric) -> Json:
    return {
        "reason": one.reason,
        "kind": "log-variance" if one.logarithm else "variance",
        "noise": words.noise_text(one, metric),
        "exact": one.exact,
        "rest": one.rest,
        "shares": [
            {
                "knobs": words.knobs_text(share),
                "share": share.share,
                "low": share.low,
                "high": share.high,
                "sure": share.sure,
                "text": words.share_text(share),
            }
            for share in one.shares[:24]
        ],
    }


def _choice(one: Choice, found: StudyResult) -> Json:
    metrics = {metric.name: metric for metric in found.study.metrics}
    return {
        "settings": _settings(one.configuration, found.study),
        "values": dict(one.configuration),
        "metrics": [
            {
                "name": name,
                "expected": words.estimate_text(metrics[name], estimate),
                "measured": words.value_text(metrics[name], one.measured.get(name)),
            }
            for name, estimate in one.metrics.items()
        ],
        "trials": list(one.trials),
        "sure": words.sure_text(one),
        "why": one.why,
    }


def _settings(configuration: Configuration, study: Study) -> list[tuple[str, str]]:
    knobs = {knob.name: knob for knob in study.knobs}
    return [(name, words.setting_text(knobs.get(name), value)) for name, value in configuration.items()]


def _trial(one: Trial, study: Study) -> Json:
    return {
        "number": one.number,
        "state": words.state_of(one),
        "values": dict(one.configuration),
        "settings": dict(_settings(one.configuration, study)),
        "metrics": {name: finite(value) for name, value in one.metrics.items()} if one.valid else {},
        "texts": {
            metric.name: words.value_text(metric, one.metrics.get(metric.name)) if one.valid else "—"
            for metric in study.metrics
        },
        "counts": bool(one.valid and not one.contaminated),
        "said": "; ".join(filter(None, (one.reason, one.stopped, one.contaminated))),
        "why": one.why,
        "seconds": finite(one.seconds),
        "switches": finite(one.conditions.voluntary),
        "run": one.run,
    }


def _front(one: FrontPoint, study: Study) -> Json:
    metrics = {metric.name: metric for metric in study.metrics}
    return {
        "settings": words.configuration_text(study, one.configuration),
        "metrics": {name: [estimate.value, estimate.low, estimate.high] for name, estimate in one.metrics.items()},
        "texts": {name: words.estimate_text(metrics[name], estimate) for name, estimate in one.metrics.items()},
        "probability": words.probability_text(one.probability),
        "trials": list(one.trials),
    }


def _surface(one: Surface, study: Study) -> Json:
    knobs = {knob.name: knob for knob in study.knobs}

    def axis(name: str, values: tuple[Value, ...]) -> Json:
        return {"name": name, "texts": [words.setting_text(knobs.get(name), value) if name else "" for value in values]}

    return {
        "metric": one.metric,
        "x": axis(one.x, one.x_values),
        "y": axis(one.y, one.y_values),
        "facet": axis(one.facet, one.facet_values),
        "measured": one.measured,
        "expected": one.expected,
        "numbers": one.numbers,
    }


# ---- A study's page as one self-contained HTML file: no network, no chart library, small enough to be written after
# each trial.

_SCRIPTS = (
    "dom",
    "evaluate",
    "quantity",
    "explore_basics",
    "explore_result",
    "explore_bars",
    "explore_maps",
    "explore_law",
    "explore_progress",
    "explore_front",
    "explore_trials",
    "explore",
)
"""Files of the page's program, each using only those before it when it loads."""


def render_study(found: StudyResult, seed: int = 0) -> str:
    """The page as HTML text, to be written as UTF-8; of an unfinished study it reloads itself."""
    parts = {
        "title": html.escape(f"{found.study.name} – perflaw explore"),
        "css": asset("page.css") + asset("explore.css"),
        "data": as_json(explore_data(found, seed)),
        "js": program(_SCRIPTS),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match.group(1)], asset("explore.html"))
