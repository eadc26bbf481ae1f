"""Checks of a study as a whole: constraints that nothing satisfies, knobs that nothing applies, unknown injectors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perflaw.documents import DocumentNode
from perflaw.errors import UsageError, did_you_mean
from perflaw.explore.expressions import Expression
from perflaw.explore.injectors.context import Injector
from perflaw.explore.injectors.registry import COMMON_OPTIONS, find, name_of
from perflaw.explore.space import Space
from perflaw.explore.values import UNITS
from perflaw.types.studies import Knob, Study

HOST = ("host.mem", "host.cpus")
"""Names of the machine's values in expressions."""


def check_study(study: Study, document: DocumentNode) -> None:
    """Refuse a study that cannot be run; UsageError with the place in its document.

    The document of a study that was made in Python is an empty mapping.
    """
    constraints = document.child("constraints")
    listed = constraints.one_or_more() if constraints.value is not None else []
    for at, text in enumerate(study.constraints):
        check_expression(text, study.knobs, listed[at] if at < len(listed) else constraints)
    knobs = document.child("knobs")
    for knob in study.knobs:
        place = knobs if knobs.value is not None else DocumentNode(document.source, ("knobs",), {})
        check_injections(study, knob, place.child(knob.name))
    metrics = document.child("metrics")
    if study.objective is None:
        metrics.refuse("no metric has a goal", "goal: max (or min) at one of them")
    if {metric.name for metric in study.metrics} & {knob.name for knob in study.knobs}:
        metrics.refuse("a metric and a knob have the same name", "another name")
    # Refuse constraints that nothing satisfies, and defaults that break them.
    space = Space(study.knobs, study.constraints)
    if study.constraints and not len(space.search.pool):
        alone = [text for text in study.constraints if not len(Space(study.knobs, [text]).search.pool)]
        which = repr(alone[0]) if alone else f"all {len(study.constraints)} constraints together"
        why = f"nothing satisfies {which} {space.search.description()}"
        constraints.refuse(why, "a weaker constraint, or wider ranges")
    given = {knob.name: knob.default for knob in study.knobs if knob.default is not None}
    broken = space.broken(given) if len(given) == len(study.knobs) else ""
    if broken:
        constraints.refuse(f"the defaults are invalid: {broken}", "other defaults, or a weaker constraint")


def check_expression(text: str, knobs: tuple[Knob, ...], node: DocumentNode) -> None:
    """Refuse an expression that cannot be read, names something unknown, or mixes units."""
    try:
        expression = Expression(text)
    except UsageError as error:
        node.refuse(str(error), 'constraints: ["cache >= 2*page_size"]')
    known = [knob.name for knob in knobs]
    for name in sorted(expression.names):
        if name not in known and name not in HOST:
            node.refuse(f"{text!r} names {name}, which is no knob{did_you_mean(name, known)}")
    for knob in knobs:
        factor, base = UNITS.get(knob.unit, (1, knob.unit))
        if knob.name in expression.names and factor != 1 and base in expression.units:
            why = f"{text!r} mixes {knob.name}, which is in {knob.unit}, with a quantity, which is taken in {base}"
            node.refuse(why, f"the number in {knob.unit} without a unit")


def check_injections(study: Study, knob: Knob, node: DocumentNode) -> None:
    """Refuse a knob with an unknown injector, a knob that nothing applies, and a knob that nothing verifies."""
    injectors = []
    for how in knob.apply:
        injector = _checked_injector(study, how, node)
        if not hasattr(injector, "apply"):
            node.refuse(f"{injector.name} can only verify")
        if objection := getattr(injector, "objection", lambda how: "")(how):
            node.refuse(f"{injector.name}: {objection}", "apply: {file: app.conf, template: app.conf.in}")
        injectors.append(injector)
    if knob.verify is not None:
        _checked_injector(study, knob.verify, node)
    mentioned = any(f"{{{knob.name}}}" in text for text in _commands(study)) or knob.name in study.load.values()
    if not knob.apply and not mentioned:
        why = f"nothing applies it: it has no apply, and no command mentions {{{knob.name}}}"
        node.refuse(why, 'apply: {arg: "--x={}"}')
    alone = (
        any(getattr(injectors[0], name, False) for name in ("verifies_itself", "shows_launch")) if injectors else True
    )
    if knob.verify is None and not alone:
        why = "verify is missing: a setting that did not take effect must not become a data point"
        node.refuse(why, "verify: {path: …} for what the target prints, or {command: …}")


def _checked_injector(study: Study, how: Mapping[str, object], node: DocumentNode) -> Injector:
    """Return the injector of an injection, after refusing unknown ones and options that it does not have."""
    try:
        injector = find(how, str(Path(study.folder) / study.target.folder))
    except UsageError as error:
        node.refuse(f"{error.what}{': ' if error.why else ''}{error.why}")
    name = name_of(how)
    if "expr" in how:
        check_expression(str(how["expr"]), study.knobs, node)
    if not isinstance(how.get("map", {}), Mapping):
        node.refuse("map takes keys with values", "map: {true: on, false: off}")
    allowed = getattr(injector, "options", None)
    known = None if allowed is None else [name, *allowed, *COMMON_OPTIONS]
    for option in how:
        if known is not None and option not in known:
            node.refuse(f"{name} has no option {option!r}{did_you_mean(option, known[1:])}")
    if name in ("pragma", "sql") and not study.target.sql:
        node.refuse(f"{name} needs to know where SQL goes", "target: {sql: data.db}, or {sql: psql -At -c {}}")
    if name == "arg" and not any("{args}" in text for text in _commands(study)):
        node.refuse("its argument is not used: no command of the target contains {args}", 'run: "./prog {args}"')
    if how.get("when", "before") not in ("before", "running"):
        node.refuse(f"unknown when {how['when']!r}: before or running (the server)", "when: before")
    return injector


def _commands(study: Study) -> list[str]:
    target = study.target
    return [target.run, target.start, target.workload, target.prepare, target.stop]
