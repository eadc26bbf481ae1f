"""What came of probes put beside what came of calls: each process of a recording with its probes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from perflaw.collect.core_tables import CoreTree, Export
from perflaw.collect.probes.alone import nothing_recorded
from perflaw.collect.probes.session import ProbeSession
from perflaw.collect.recorded import Probed, Recorded
from perflaw.collect.tabulate import tabulate
from perflaw.store.columns import Tables
from perflaw.store.merge import merge
from perflaw.store.probe_tables import PROBE_TABLES
from perflaw.store.rows import table_of


def with_probes(recorded: Iterator[Recorded], session: ProbeSession, program_pid: int) -> Iterator[Recorded]:
    """The processes of a recording with their probes, then those that only probes tell of.

    ``program_pid``: of the program itself, whose tracer may not say it. A process without a recorded call gets the call
    tree of its probes; others have both.
    """
    program = next(recorded)
    whole = session.finish()
    program.definitions.words.update({"probes": "; ".join(whole.warnings)} if whole.warnings else {})
    if whole.notes:
        program.definitions.words["probes of other hosts"] = "; ".join(whole.notes)
    left = session.probed()
    places: dict[int, int] = {}
    for place, one in enumerate(_chain(program, recorded)):
        pid = one.definitions.process.pid if one.definitions.process else program_pid
        places.setdefault(pid, place)
        yield _joined(one, left.pop(("", pid), []))
    for host, pid in sorted(left, key=lambda key: key[0] != ""):
        probed = left[host, pid]
        account = probed[0].account
        parent = 0 if host else places.get(account.parent, 0)
        if not host:
            places[pid] = place = place + 1
        yield _joined(nothing_recorded(pid, account.parent, account.command, parent), probed)


def _chain(first: Recorded, rest: Iterator[Recorded]) -> Iterator[Recorded]:
    yield first
    yield from rest


def _joined(one: Recorded, probed: list[Probed]) -> Recorded:
    grown = [each for each in probed if each.tree is not None]
    if grown and len(one.tree.nodes) < 2:
        known, first = one.definitions, grown[0]
        known.components.update(first.definitions.components)
        known.features.update(first.definitions.features)
        assert first.tree is not None
        moved = [replace(each, tree=None) if each is first else each for each in probed]
        return replace(one, tree=first.tree, probed=tuple(moved))
    return replace(one, probed=tuple(probed))


def add_calls_of_probes(run: str, tables: Tables, recorded: Recorded) -> Tables:
    """The tables of a run with the call trees of probes that stand beside that of its calls."""
    found, calls = [tables], recorded.tree.calls
    for probed in recorded.probed:
        if probed.tree is not None:
            found.append(tabulate(run, _numbered_after(calls, probed.tree), probed.definitions))
            calls += probed.tree.calls
    return merge(found) if len(found) > 1 else tables


def _numbered_after(calls: int, tree: CoreTree) -> CoreTree:
    """The same tree, its invocations numbered behind so many others of the run."""
    changed = dict(tree.tables)
    for table in (Export.SAMPLES, Export.WORST):
        changed[table] = tree.tables[table].copy()
        changed[table]["sequence"] += calls
    return replace(tree, tables=changed)


def probe_tables(recorded: Recorded) -> Tables | None:
    """Tables of the probes themselves; None where the process has none."""
    if not recorded.probed:
        return None
    probes, processes = [], []
    for probed in recorded.probed:
        account = probed.account
        for one in probed.counts:
            whole = (one.received, one.received, 0) if not account.lost else (None, one.received, None)
            probes.append(
                (account.process, one.id, one.name, one.type, one.unit, ",".join(one.fields), one.subsample, *whole)
            )
        row = (account.process, account.host, account.language, account.produced, account.received, account.lost)
        processes.append((*row, probed.kept, account.ns_per_tick))
    rows = {"probes": probes, "probe_processes": processes}
    return {name: table_of(name, some, PROBE_TABLES) for name, some in rows.items()}
