"""What only the whole of a study tells: constraints that nobody can satisfy, knobs that nothing applies, unknown injectors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from perflaw.documents import DocumentNode
from perflaw.errors import UsageError, did_you_mean
from perflaw.explore.expressions import Expression
from perflaw.explore.injectors.context import Injector
from perflaw.explore.injectors.registry import COMMON_OPTIONS, find, name_of
from perflaw.explore.space import Space
from perflaw.explore.values import UNITS
from perflaw.types.studies import Knob, Study

HOST = ("host.mem", "host.cpus")


def check_study(study: Study, document: DocumentNode) -> None:
    """Refuse a study that cannot be run as it stands; UsageError with the place in its document.

    The document of a study that Python code made of nouns is an empty mapping.
    """
    constraints = document.child("constraints")
    listed = constraints.one_or_more() if constraints.value is not None else []
    for at, text in enumerate(study.constraints):
        check_expression(text, study.knobs, listed[at] if at < len(listed) else constraints)
    knobs = document.child("knobs")
    for knob in study.knobs:
        place = knobs if knobs.value is not None else DocumentNode(document.source, ("knobs",), {})
        check_injections(study, knob, place.child(knob.name))
    _check_metrics(study, document.child("metrics"))
    _check_space(study, constraints)


def check_expression(text: str, knobs: tuple[Knob, ...], node: DocumentNode) -> Expression:
    """An expression over knobs and ``host.…``, in units that fit."""
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
            node.refuse(
                f"{text!r} mixes {knob.name}, which is in {knob.unit}, with a quantity, which is taken in {base}",
                f"the number in {knob.unit} without a unit",
            )
    return expression


def check_injections(study: Study, knob: Knob, node: DocumentNode) -> None:
    """Every injection has a known injector, and every knob is applied by something and verified by something."""
    for how in knob.apply:
        injector = _injector(study, how, node)
        if not hasattr(injector, "apply"):
            node.refuse(f"{injector.name} can only verify")
        if objection := getattr(injector, "objection", lambda how: "")(how):
            node.refuse(f"{injector.name}: {objection}", "apply: {file: app.conf, template: app.conf.in}")
        _check_options(study, how, node)
    if knob.verify is not None:
        _injector(study, knob.verify, node)
        _check_options(study, knob.verify, node)
    if not knob.apply and not _mentioned(study, knob):
        node.refuse(
            f"nothing applies it: it has no apply, and no command mentions {{{knob.name}}}", 'apply: {arg: "--x={}"}'
        )
    if knob.verify is None and not all(_verifies(study, how, node) for how in knob.apply[:1]):
        node.refuse(
            "verify is missing: a setting that did not take effect must not become a data point",
            "verify: {path: …} for what the target prints, or {command: …}",
        )


def _check_options(study: Study, how: Mapping[str, object], node: DocumentNode) -> None:
    """What every injection may have beside its injector's own keys."""
    if "expr" in how:
        check_expression(str(how["expr"]), study.knobs, node)
    if not isinstance(how.get("map", {}), Mapping):
        node.refuse("map takes keys with values", "map: {true: on, false: off}")
    allowed = getattr(_injector(study, how, node), "options", None)
    known = None if allowed is None else [name_of(how), *allowed, *COMMON_OPTIONS]
    for name in how:
        if known is not None and name not in known:
            node.refuse(f"{name_of(how)} has no option {name!r}{did_you_mean(name, known[1:])}")
    if name_of(how) in ("pragma", "sql") and not study.target.sql:
        node.refuse(f"{name_of(how)} needs to know where SQL goes", "target: {sql: data.db}, or {sql: psql -At -c {}}")
    if name_of(how) == "arg" and not any("{args}" in text for text in _commands(study)):
        node.refuse("its argument arrives nowhere: no command of the target holds {args}", 'run: "./prog {args}"')
    if how.get("when", "before") not in ("before", "running"):
        node.refuse(f"unknown when {how['when']!r}: before or running (the server)", "when: before")


def _verifies(study: Study, how: Mapping[str, object], node: DocumentNode) -> bool:
    return bool(getattr(_injector(study, how, node), "verifies_itself", False))


def _injector(study: Study, how: Mapping[str, object], node: DocumentNode) -> Injector:
    try:
        return find(how, str(Path(study.folder) / study.target.folder))
    except UsageError as error:
        node.refuse(f"{error.what}{': ' if error.why else ''}{error.why}")


def _mentioned(study: Study, knob: Knob) -> bool:
    return any(f"{{{knob.name}}}" in text for text in _commands(study)) or knob.name in study.load.values()


def _commands(study: Study) -> list[str]:
    target = study.target
    return [target.run, target.start, target.workload, target.prepare, target.stop]


def _check_metrics(study: Study, node: DocumentNode) -> None:
    if not any(metric.goal for metric in study.metrics):
        node.refuse("no metric has a goal", "goal: max (or min) at one of them")
    if {metric.name for metric in study.metrics} & {knob.name for knob in study.knobs}:
        node.refuse("a metric and a knob have the same name", "another name")


def _check_space(study: Study, constraints: DocumentNode) -> None:
    space = Space(study.knobs, study.constraints)
    if study.constraints and not len(space.search.pool):
        _refuse_constraints(study, space, constraints)
    defaults = {knob.name: knob.default for knob in study.knobs}
    given = {name: value for name, value in defaults.items() if value is not None}
    broken = space.broken(given) if len(given) == len(defaults) else ""
    if broken:
        why = f"the defaults are no configuration: {broken}"
        constraints.refuse(why, "other defaults, or a weaker constraint")


def _refuse_constraints(study: Study, space: Space, where: DocumentNode) -> NoReturn:
    alone = [text for text in study.constraints if not len(Space(study.knobs, [text]).search.pool)]
    which = f"nothing satisfies {alone[0]!r}" if alone else f"nothing satisfies all {len(study.constraints)} together"
    where.refuse(f"{which} {space.search.description()}", "a weaker constraint, or wider ranges")
