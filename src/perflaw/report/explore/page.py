"""A study's page: one self-contained HTML file without network and chart library, small enough to write after each trial.

What the page shows of a noun is its document, with the words that a person reads beside it under ``text``.
"""

from __future__ import annotations

import html

from perflaw.laws.tree import distribution_tree
from perflaw.report.explore import text as words
from perflaw.report.page.page import as_json, asset, encodable, filled, program
from perflaw.report.quantity import NOTHING, counted
from perflaw.types.documents import Document, document
from perflaw.types.explored import Choice, StudyResult, Surface
from perflaw.types.studies import Study, StudyMetric, Trial, Value

RELOAD_S = 3
"""Seconds after which the page of an unfinished study looks for a newer one."""
MAX_LEVELS = 24
"""Settings of a knob that a slider steps through, besides those that were tried."""
MAX_SHARES = 24
"""Shares of a metric's variance that the page holds."""
_SCRIPTS = ("dom", "quantity", "evaluate", "explore_study", "explore_result", "explore_charts", "explore")
"""Files of the page's program in the order in which they are joined."""


def render_study(result: StudyResult, seed: int = 0) -> str:
    """The page as HTML text, to be written as UTF-8; the page of an unfinished study reloads itself."""
    return filled(
        "explore.html",
        title=html.escape(encodable(f"{result.study.name} – perflaw explore")),
        css=asset("page.css") + asset("explore.css"),
        data=as_json(explore_data(result, seed)),
        js=program(_SCRIPTS),
    )


def explore_data(result: StudyResult, seed: int = 0) -> Document:
    """Everything that the page shows, as JSON values without NaN or infinity."""
    study, objective = result.study, result.objective
    metrics = sorted(study.metrics, key=lambda metric: objective is None or metric.name != objective.name)
    robust = result.robust if words.robust_differs(result) else None
    knobs = []
    for knob in study.knobs:
        # Listed settings; of a range its ends, even steps between, and the settings that were tried.
        levels: list[Value] = [False, True] if knob.kind == "bool" else list(knob.values)
        if not levels:
            low, high = knob.low or 0.0, knob.high or 0.0
            linear = knob.scale == "linear" or low <= 0
            parts = [i / (MAX_LEVELS - 1) for i in range(MAX_LEVELS)]
            steps = [low + (high - low) * part if linear else float(low * (high / low) ** part) for part in parts]
            settings: set[Value] = {round(step) for step in steps} if knob.kind == "int" else set(steps)
            tried = {trial.configuration[knob.name] for trial in result.trials if knob.name in trial.configuration}
            if len(tried) <= 2 * MAX_LEVELS:
                settings |= {setting for setting in tried if not isinstance(setting, str)}
            levels = sorted(settings, key=float)
        numbers = [float(level) for level in levels if not isinstance(level, str)]
        wide = len(numbers) > 1 and min(numbers) > 0 and max(numbers) / min(numbers) > 30
        knobs.append(
            {
                "name": knob.name,
                "ordered": knob.kind in ("int", "float", "ordinal"),
                "categorical": knob.kind == "categorical",
                "log": knob.scale != "linear" or wide,
                "levels": [{"value": level, "text": words.setting_text(knob, level)} for level in levels],
                "default": knob.default,
            }
        )
    by_name = {metric.name: metric for metric in study.metrics}
    pareto = [
        {
            **document(point),
            "text": {
                "configuration": words.configuration_text(study, point.configuration),
                "metrics": {name: words.estimate_text(by_name[name], one) for name, one in point.metrics.items()},
                "probability": words.probability_text(point.probability),
            },
        }
        for point in result.pareto
    ]
    return {
        "title": study.name,
        "heading": words.heading(result).partition(": ")[2],
        "seed": seed,
        "reload": RELOAD_S if result.unfinished else 0,
        "knobs": knobs,
        "metrics": [_metric(metric, result) for metric in metrics],
        "best": _choice(result.best, study) if result.best else None,
        "robust": _choice(robust, study) if robust else None,
        "warnings": [document(notice) for notice in result.notices],
        "steps": list(words.next_steps(result)),
        "trials": [_trial(trial, study) for trial in result.trials],
        "surface": _surface(result.surface, study) if result.surface else None,
        "pareto": pareto if len(pareto) > 1 else [],
    }


def _metric(metric: StudyMetric, result: StudyResult) -> Document:
    factor, unit = words.unit_of(metric)
    learnt = next((one.law for one in result.laws if one.metric.name == metric.name), None)
    law = None
    if learnt:
        explained = f"{max(0.0, learnt.r2) * 100:.0f} % of the variance" if learnt.r2 is not None else NOTHING
        facts = [
            ("family", learnt.family),
            ("explains", explained),
            ("learnt from", f"{counted(learnt.n, 'trial')} of {counted(learnt.runs, 'configuration')}"),
        ]
        law = {**document(learnt), "tree": distribution_tree(learnt.expression), "facts": facts}
    importance = next((one for one in result.importance if one.metric == metric.name), None)
    return {
        "name": metric.name,
        "goal": metric.goal,
        "unit": unit,
        "factor": factor,
        "law": law,
        "importance": {
            **document(importance),
            "shares": [
                {**document(share), "text": {"share": words.share_text(share), "knobs": words.knobs_text(share)}}
                for share in importance.shares[:MAX_SHARES]
            ],
            "text": {
                "variance": "log-variance" if importance.logarithm else "variance",
                "noise": words.noise_text(importance, metric),
            },
        }
        if importance
        else None,
    }


def _choice(choice: Choice, study: Study) -> Document:
    metrics = {metric.name: metric for metric in study.metrics}
    return {
        **document(choice),
        "text": {
            "settings": words.setting_texts(study, choice.configuration),
            "expected": {name: words.estimate_text(metrics[name], one) for name, one in choice.metrics.items()},
            "measured": {name: words.value_text(metrics[name], choice.measured.get(name)) for name in choice.metrics},
            "sure": words.sure_text(choice),
        },
    }


def _trial(trial: Trial, study: Study) -> Document:
    values = trial.metrics if trial.valid else {}
    return {
        **document(trial),
        "metrics": document(trial)["metrics"] if trial.valid else {},
        "state": words.state_of(trial),
        "counts": trial.valid and not trial.contaminated,
        "text": {
            "settings": words.setting_texts(study, trial.configuration),
            "metrics": {metric.name: words.value_text(metric, values.get(metric.name)) for metric in study.metrics},
            "reasons": "; ".join(filter(None, (trial.reason, trial.stopped, trial.contaminated))),
        },
    }


def _surface(surface: Surface, study: Study) -> Document:
    knobs = {knob.name: knob for knob in study.knobs}
    axes = {
        "x": (surface.x, surface.x_values),
        "y": (surface.y, surface.y_values),
        "facet": (surface.facet, surface.facet_values),
    }
    texts = {
        axis: [words.setting_text(knobs.get(name), value) if name else "" for value in values]
        for axis, (name, values) in axes.items()
    }
    return {**document(surface), "text": texts}
