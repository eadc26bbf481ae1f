"""What a study would do, in words: ``perflaw explore --dry-run``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perflaw.cli.progress import words

if TYPE_CHECKING:
    from perflaw.explore.plan import Plan
    from perflaw.explore.studying import Wish
    from perflaw.store.experiment import Experiment
    from perflaw.types.studies import Configuration, Study


def tell_plan(target: Experiment, study: Study, wish: Wish, as_json: bool) -> int:
    """Print the plan; nothing is written and nothing run."""
    from perflaw.explore.plan import plan_of
    from perflaw.explore.studying import looked_at

    trials, seed = looked_at(target, study, wish)
    plan = plan_of(study, seed, trials)
    if as_json:
        from perflaw.report.encode import dumps

        click.echo(dumps(_document(plan, seed)))
        return 0
    for line in _lines(plan):
        click.echo(line)
    return 0


def _document(plan: Plan, seed: int) -> dict[str, object]:
    return {
        "schema": "perflaw.explore-plan/1",
        "study": plan.study.name,
        "policy": plan.study.policy,
        "seed": seed,
        "size": plan.size,
        "made": plan.made,
        "left": plan.trials,
        "first": [{"configuration": dict(configuration), "why": why} for configuration, why in plan.first],
        "seconds": plan.seconds,
        "most_s": plan.most_s,
    }


def _lines(plan: Plan) -> list[str]:
    study, size = plan.study, "endless" if plan.size is None else f"{plan.size:,}"
    lines = [f"study {study.name}: {len(study.knobs)} knobs, {size} configurations, policy {study.policy}"]
    lines += [f"  {knob.name}: {_settings(knob.values, knob.low, knob.high, knob.unit)}" for knob in study.knobs]
    lines.append(f"runs      {study.target.run or study.target.start}")
    if study.target.workload:
        lines.append(f"workload  {study.target.workload}")
    if study.restore.get("snapshot"):
        lines.append(f"restores  {', '.join(study.restore['snapshot'])}")
    lines += ["first, as far as nothing is learnt meanwhile:"] if plan.first else []
    lines += [f"  {settings(configuration)}{f'  ({why})' if why else ''}" for configuration, why in plan.first]
    lines += [f"note: {plan.warning}"] if plan.warning else []
    return [*lines, _cost(plan)]


def _cost(plan: Plan) -> str:
    left = "trials until time or margin end it" if plan.trials is None else f"{plan.trials} trials"
    done = f", {plan.made} are made" if plan.made else ""
    takes = f", about {words(plan.seconds)} as earlier ones took" if plan.seconds is not None else ""
    most = f", {words(plan.most_s)} at most by the timeouts" if plan.most_s is not None else ""
    return f"to be made: {left}{done}{takes}{most}. Nothing was touched."


def _settings(values: object, low: float | None, high: float | None, unit: str) -> str:
    if low is not None and high is not None:
        return f"{low:g} to {high:g} {unit}".rstrip()
    return ", ".join(map(str, values)) if isinstance(values, tuple) else ""


def settings(configuration: Configuration) -> str:
    """A configuration in a line."""
    return ", ".join(f"{name} = {value}" for name, value in configuration.items())
