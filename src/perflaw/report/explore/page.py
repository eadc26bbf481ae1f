"""A study's page: one self-contained HTML file without network and chart library, small enough to write after each trial.

What the page shows is the document ``perflaw.explore/1``, with the words that a person reads beside it under ``text``.
"""

from __future__ import annotations

import html

from perflaw.laws.tree import distribution_tree
from perflaw.report.documents import explore_document
from perflaw.report.explore import text as words
from perflaw.report.page.page import STUDY, as_json, asset, encodable, filled, program
from perflaw.report.quantity import NOTHING, counted
from perflaw.types.documents import Document, document
from perflaw.types.explored import StudyResult
from perflaw.types.studies import StudyMetric, Value

RELOAD_S = 3
"""Seconds after which the page of an unfinished study looks for a newer one."""
MAX_LEVELS = 24
"""Settings of a knob that a slider steps through, besides those that were tried."""
MAX_SHARES = 24
"""Shares of a metric's variance that the page holds."""
_START = 'startStudy(JSON.parse(document.getElementById("data").textContent), false);'


def render_study(result: StudyResult, seed: int = 0) -> str:
    """The page as HTML text, to be written as UTF-8; the page of an unfinished study reloads itself."""
    return filled(
        "explore.html",
        title=html.escape(encodable(f"{result.study.name} – perflaw explore")),
        css=asset("page.css") + asset("explore.css"),
        data=as_json(explore_data(result, seed)),
        js=program(["dom", "quantity", "evaluate", STUDY], _START),
    )


def explore_data(result: StudyResult, seed: int = 0) -> Document:
    """Everything that the page shows, as JSON values without NaN or infinity."""
    study, objective = result.study, result.objective
    stated = explore_document(result, seed)
    metrics = sorted(study.metrics, key=lambda metric: objective is None or metric.name != objective.name)
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
                "levels": [{"value": level, "text": words.setting_text(knob.unit, level)} for level in levels],
                "default": knob.default,
            }
        )
    pareto = [
        {
            **point,
            "text": {
                "configuration": words.configuration_text(stated, point["configuration"]),
                "metrics": words.estimate_texts(stated, point),
                "probability": words.probability_text(point["probability"]),
            },
        }
        for point in stated["pareto"]
    ]
    return {
        "title": study.name,
        "heading": words.heading(stated).partition(": ")[2],
        "seed": seed,
        "reload": RELOAD_S if result.unfinished else 0,
        "knobs": knobs,
        "metrics": [_metric(metric, result) for metric in metrics],
        "best": _choice(stated["best"], stated) if stated["best"] else None,
        "robust": _choice(stated["robust"], stated) if words.robust_differs(stated) else None,
        "warnings": stated["warnings"],
        "steps": list(words.next_steps(stated)),
        "trials": [_trial(trial, stated) for trial in stated["trials"]],
        "curves": [document(curve) for curve in result.curves],
        "surface": _surface(stated) if stated["surface"] else None,
        "pareto": pareto if len(pareto) > 1 else [],
    }


def _metric(metric: StudyMetric, result: StudyResult) -> Document:
    factor, unit = words.unit_of(metric.unit)
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
    importance = next((document(one) for one in result.importance if one.metric == metric.name), None)
    return {
        "name": metric.name,
        "goal": metric.goal,
        "unit": unit,
        "factor": factor,
        "law": law,
        "importance": {
            **importance,
            "shares": [
                {**share, "text": {"share": words.share_text(share), "knobs": words.knobs_text(share)}}
                for share in importance["shares"][:MAX_SHARES]
            ],
            "text": {
                "variance": "log-variance" if importance["logarithm"] else "variance",
                "noise": words.noise_text(importance, metric.unit),
            },
        }
        if importance
        else None,
    }


def _choice(choice: Document, stated: Document) -> Document:
    metrics = words.units_of(stated, "metrics")
    return {
        **choice,
        "text": {
            "settings": words.setting_texts(stated, choice["configuration"]),
            "expected": words.estimate_texts(stated, choice),
            "measured": {
                name: words.value_text(metrics[name], choice["measured"].get(name)) for name in choice["metrics"]
            },
            "sure": words.sure_text(choice),
        },
    }


def _trial(trial: Document, stated: Document) -> Document:
    values = trial["metrics"] if trial["valid"] else {}
    metrics = words.units_of(stated, "metrics")
    return {
        **trial,
        "metrics": values,
        "state": words.state_of(trial),
        "counts": trial["valid"] and not trial["contaminated"],
        "text": {
            "settings": words.setting_texts(stated, trial["configuration"]),
            "metrics": {name: words.value_text(unit, values.get(name)) for name, unit in metrics.items()},
            "reasons": "; ".join(filter(None, (trial["reason"], trial["stopped"], trial["contaminated"]))),
        },
    }


def _surface(stated: Document) -> Document:
    surface, knobs = stated["surface"], words.units_of(stated, "knobs")
    texts = {
        axis: [
            words.setting_text(knobs.get(surface[axis], ""), value) if surface[axis] else ""
            for value in surface[f"{axis}_values"]
        ]
        for axis in ("x", "y", "facet")
    }
    return {**surface, "text": texts}
