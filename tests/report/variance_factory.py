"""Variance for the tests of reports: a server made up call by call, many patterns, hostile names."""

from __future__ import annotations

import math
from dataclasses import replace

from perflaw.learn.variance.analyse import compare, survey
from perflaw.report.variance.page import Since, VarianceView
from perflaw.types import CPU, EVENTS, TIME, Component
from perflaw.types.variance import Contribution, Pattern, PatternNode, Variance
from tests.learn.variance_data import Call, Recorder

from . import factory


def _request(number: int, most: int = 60) -> Call:
    """Every fiftieth has many tokens; every twentieth waits off the CPU in look_up."""
    tokens = most if number % 50 == 0 else 3
    parse = Call("app.parse", 300, [(12, Call("app.token", 900 + number % 7)) for _ in range(tokens)])
    wait = 40_000 if number % 20 == 7 else 0
    return Call("app.handle", 500, [(20, parse), (21, Call("app.look_up", 2000 + number % 11 + wait, off=wait))])


def server() -> tuple[VarianceView, ...]:
    """Wall time, CPU time and events of a thousand requests."""
    recorder = Recorder()
    for number in range(1000):
        recorder.add(_request(number))
    surveys = [survey(recorder.tree(metric)) for metric in (TIME, CPU, EVENTS)]
    components = [Component(name) for name in ("app.handle", "app.parse", "app.look_up", "app.token")]
    views = []
    for one in surveys:
        explanations = dict(zip(components, one.explain_with_curves(components), strict=True))
        views.append(VarianceView(one.variance, {c: found for c, found in explanations.items() if found}))
    return tuple(views)


def since() -> tuple[VarianceView, ...]:
    """The server compared with one in which no request had many tokens; its handle called something that is gone."""
    recorder = Recorder()
    for number in range(1000):
        request = _request(number, most=3)
        request.calls.append((30, Call("app.gone", 100 + 90_000 * (number % 40 == 0))))
        recorder.add(request)
    views = []
    for one in server():
        before = survey(recorder.tree(one.variance.metric)).variance
        views.append(replace(one, since=Since("last week", compare(before, one.variance))))
    return tuple(views)


def _node(number: int, parent: int | None, name: str, kind: str = "Task", vim: float = 1e6) -> PatternNode:
    contexts = ((),)
    return PatternNode(number, parent, Component(name, "/src/app.py", 3), kind, 5000, 2e4, 0.9, 1e8, vim, contexts)


def many(patterns: int = 333, nodes: int = 9) -> tuple[VarianceView, ...]:
    """As many patterns as the paper's largest programs have, the first of them with hundreds of nodes; no screens."""
    made, number = [], 0
    for place in range(patterns):
        own, count = [], nodes * 30 if place == 0 else nodes
        for i in range(count):
            parent = None if i == 0 else number + (i - 1) // 3
            own.append(
                _node(
                    number + i,
                    parent,
                    f"lib.part{place}.f{i}",
                    "Task" if i < 3 else "Contrast",
                    1e9 / (place + 1) / (i + 1),
                )
            )
        edges = tuple(Contribution(number, number + i, (number, number + i), None, 0.3) for i in (1, 2))
        made.append(Pattern(tuple(own), edges))
        number += count
    found = Variance(TIME, tuple(made), (9000, 900), (4000, 400), 20_000, 12)
    return (VarianceView(found),)


def alone() -> tuple[VarianceView, ...]:
    """One pattern of one node, of which samples say nothing."""
    (first, *_) = server()
    node = replace(first.variance.patterns[0].nodes[0], off_cpu=None, cause="unknown")
    explanation = replace(
        first.explanations[node.component],
        budget=None,
        exemplars=(),
        deadlines=(),
        bounds=(),
        blocks=(),
        cause="unknown",
        off_cpu=None,
    )
    found = replace(first.variance, patterns=(Pattern((node,), ()),))
    return (VarianceView(found, {node.component: explanation}),)


def nothing() -> tuple[VarianceView, ...]:
    """Nothing varies."""
    return tuple(VarianceView(replace(one.variance, patterns=())) for one in server())


def hostile() -> tuple[VarianceView, ...]:
    """Every name would like to be markup, or is 300 characters long; numbers are not."""
    bad, (first, *_) = factory.HOSTILE, server()
    names = {"app.handle": bad, "app.parse": "x" * 300}
    parts = {
        name: Component(names.get(name, f"{bad}.{name}"), bad, 1)
        for name in ("app.handle", "app.parse", "app.look_up", "app.token")
    }
    pattern = first.variance.patterns[0]
    nodes = tuple(
        replace(one, component=parts[one.component.name], mean=math.nan, off_cpu=math.inf) for one in pattern.nodes
    )
    found = replace(first.variance, patterns=(replace(pattern, nodes=nodes),), notes=(bad,))
    screens = {parts[key.name]: replace(one, component=parts[key.name]) for key, one in first.explanations.items()}
    handle = screens[parts["app.handle"]]
    told = tuple(replace(one, features={bad: math.inf}, cpu=math.nan) for one in handle.exemplars)
    screens[parts["app.handle"]] = replace(handle, exemplars=told, cov=math.nan, covs={bad: math.inf})
    return (VarianceView(found, screens),)
