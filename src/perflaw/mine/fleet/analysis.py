"""The controller's analysis: specifications from what all stubs measured, and from them what to measure next.

All of it follows from the ledger, so a controller that was killed makes it again. Whatever reads measurements does so in a
process of its own.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from perflaw.errors import PerflawError
from perflaw.learn.paths import MiningOptions
from perflaw.learn.paths.mine import mine
from perflaw.learn.paths.selection import with_like_callers
from perflaw.mine.fleet.apart import apart, import_ahead
from perflaw.mine.fleet.database import DatabaseLost
from perflaw.mine.fleet.heap import give_back
from perflaw.mine.fleet.ledger import Function, Ledger, Service, StubState
from perflaw.mine.fleet.plan import Wanted, plan
from perflaw.mine.messages import Measurement, merge_observed
from perflaw.types import Observed, PathSpec

MOST_MEASUREMENTS: Final = 60
"""The last measurements of a function that its specification is mined from."""
MOST_SAMPLES: Final = 100
"""The last measurements of where the time goes that say which functions are hot."""
PLAN_S: Final = 20.0
"""Time between two looks at what a service's stubs should measure."""
GONE_S: Final = 120.0
"""A stub that was not heard of for this long gets nothing to measure."""
MORE: Final = 0.2
"""Growth of a function's measurements at which it is mined again: the cost of mining grows with their number alone."""
KEPT_DAYS: Final = 30.0
"""Age of measurements that are dropped, except those that a specification is mined from."""
FORGET_S: Final = 3600.0
"""Time between two looks for them."""
STALE_S: Final = 300.0
"""Time after which a specification's use of more data is found again."""


@dataclass(frozen=True, slots=True)
class _Analysed:
    """A specification, and what it was mined from."""

    spec: PathSpec
    """The specification."""
    at: float
    """When it was mined, by the monotonic clock."""
    measurements: int
    """Measurements that were used."""


def observed_of(ledger: Ledger, function: Function) -> Observed | None:
    """All that the stubs observed of a function, as far as it is used; None without anything."""
    parts = [one for one in ledger.observed(function, MOST_MEASUREMENTS) if one.observations]
    return merge_observed(parts) if parts else None


def observed_of_service(place: str, service: str) -> list[Observed]:
    """All that the stubs of a service observed, function by function."""
    ledger = Ledger(place)
    functions = dict.fromkeys((service, one.component, one.metric) for one in ledger.coverage(service))
    observed = [observed_of(ledger, function) for function in functions]
    shares = shares_of(ledger.samples(service, MOST_SAMPLES))
    ledger.close()
    options = MiningOptions()
    known = [with_like_callers(one, options) for one in observed if one is not None]
    return [replace(one, share=shares.get(one.component)) for one in known]


def shares_of(samples: Iterable[Measurement]) -> dict[str, float]:
    """Function → part of the samples that found a process in it.

    The measurements of durations do not know the parts: each of them has recorded few functions and nothing else.
    """
    leaves: Counter[str] = Counter()
    for one in samples:
        for path, count in one.stacks.items():
            leaves[path[-1]] += count
    whole = leaves.total()
    return {name: count / whole for name, count in leaves.items() if count}


def _mined(place: str, function: Function) -> tuple[PathSpec, int] | None:
    """The specification of a function, and the number of measurements that it was mined from; None without any."""
    ledger, options = Ledger(place), MiningOptions()
    parts = [one for one in ledger.observed(function, MOST_MEASUREMENTS) if one.observations]
    ledger.close()
    if not parts:
        return None
    return mine(with_like_callers(merge_observed(parts), options), options, time.time_ns()), len(parts)


def _shared_out(
    place: str, service: Service, stubs: list[StubState], specs: Mapping[str, PathSpec]
) -> tuple[dict[str, float], dict[str, list[Wanted]]]:
    """What the samples of a service say about its functions, and what each of these stubs is to measure."""
    ledger = Ledger(place)
    shares = shares_of(ledger.samples(service.name, MOST_SAMPLES))
    wanted = {}
    if stubs:
        wanted = plan(service, stubs, ledger.samples(service.name, MOST_SAMPLES), ledger.coverage(service.name), specs)
    ledger.close()
    return shares, wanted


class Analyst:
    """A thread that decides what is mined and planned, in processes that use at most half of one CPU."""

    def __init__(
        self, place: str, say: Callable[[str], None], plan_s: float = PLAN_S, keep_days: float = KEPT_DAYS
    ) -> None:
        """``place`` is the ledger's, which the thread opens itself: it never waits for the controller, nor the other way."""
        self._place, self._say, self._plan_s, self._keep_ns = place, say, plan_s, int(keep_days * 86_400e9)
        self._forgot = -FORGET_S
        self._changed, self._waiting = threading.Lock(), threading.Event()
        self._new: dict[Function, int] = {}
        self._specs: dict[Function, _Analysed] = {}
        self._shares: dict[str, dict[str, float]] = {}
        """Service → what its samples say, as of the latest plan."""
        self._stopped = False
        self._planned: dict[str, float] = {}
        self._sampled: set[str] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin; what was measured before is analysed first."""
        import_ahead([__name__])
        self._thread.start()

    def stop(self) -> None:
        """End after the present function."""
        self._stopped = True
        self._waiting.set()
        self._thread.join(5.0)

    def arrived(self, service: str, measurements: Iterable[Measurement]) -> None:
        """Note which functions there is more of."""
        with self._changed:
            for one in measurements:
                if one.kind == "samples" and service not in self._sampled:
                    self._sampled.add(service)
                    self._planned.pop(service, None)
                for each in one.observed:
                    function = (service, each.component, each.metric)
                    self._new[function] = self._new.get(function, 0) + 1
        self._waiting.set()

    def joined(self, service: str) -> None:
        """Note that a stub has nothing to measure yet, or nothing but samples."""
        self._planned.pop(service, None)
        self._waiting.set()

    def shares(self, service: str) -> dict[str, float]:
        """Function → part of the service's samples that found a process in it, when it was planned last."""
        with self._changed:
            return self._shares.get(service, {})

    def specs(self, service: str) -> list[PathSpec]:
        """The present specifications of a service, those of most calls first."""
        shares = self.shares(service)
        with self._changed:
            known = [one.spec for (name, *_), one in self._specs.items() if name == service]
        specs = [replace(spec, share=shares.get(spec.component)) for spec in known]
        return sorted(specs, key=lambda spec: (-spec.points, spec.component))

    def _run(self) -> None:
        ledger = None
        while not self._stopped:
            began, analysed = time.monotonic(), False
            try:
                if ledger is None:
                    ledger = Ledger(self._place)
                    for name in ledger.services().values():
                        self._mark((name.name, one.component, one.metric) for one in ledger.coverage(name.name))
                if began - self._forgot >= FORGET_S:
                    self._forgot = began
                    ledger.forget(time.time_ns() - self._keep_ns, MOST_MEASUREMENTS)
                analysed = self._analyse_next(ledger)
                due = [
                    service
                    for service in ledger.services().values()
                    if began - self._planned.get(service.name, -self._plan_s) >= self._plan_s
                ]
                for service in due:
                    self._planned[service.name] = began
                    self._plan(ledger, service)
                if due:
                    give_back()  # what messages took that came meanwhile
            except PerflawError as error:
                self._say(f"analysis: {error}")
                self._waiting.wait(2.0)
            if analysed:
                time.sleep(min(time.monotonic() - began, 1.0))
            else:
                self._waiting.wait(1.0)
                self._waiting.clear()
        if ledger:
            ledger.close()

    def _mark(self, functions: Iterable[Function]) -> None:
        with self._changed:
            self._new.update(dict.fromkeys(functions, 1))

    def _analyse_next(self, ledger: Ledger) -> bool:
        """Mine a function of which enough is new; returns whether there was one."""
        now = time.monotonic()
        with self._changed:
            function = next((one for one in self._new if self._is_due(one, now)), None)
            function = function or next((one for one, known in self._specs.items() if now - known.at > STALE_S), None)
            if function is None:
                return False
            self._new.pop(function, None)  # before the ledger is read: what arrives from now on counts as new again
        try:
            mined = apart(_mined, self._place, function)
        except DatabaseLost:
            self._mark([function])
            raise
        if mined:
            with self._changed:
                self._specs[function] = _Analysed(mined[0], now, mined[1])
        return True

    def _is_due(self, function: Function, now: float) -> bool:
        """Whether a function was not mined yet, or has that much more measurements, or new ones wait for long."""
        known = self._specs.get(function)
        return known is None or self._new[function] >= MORE * known.measurements or now - known.at > STALE_S

    def _plan(self, ledger: Ledger, service: Service) -> None:
        since = time.time_ns() - int(GONE_S * 1e9)
        stubs = [one for one in ledger.stubs(service.name) if one.seen_ns >= since]
        if not stubs and service.name in self._shares:
            return
        specs = {spec.component: spec for spec in self.specs(service.name)}
        shares, wanted = apart(_shared_out, self._place, service, stubs, specs)
        with self._changed:
            self._shares[service.name] = shares
        for stub in stubs:
            if not same(stub, wanted[stub.id]):
                ones = wanted[stub.id]
                ledger.instruct(
                    stub.id, [one.request for one in ones], [one.why for one in ones], [one.utility for one in ones]
                )


def same(stub: StubState, wanted: list[Wanted]) -> bool:
    """Whether the stub measures that already, whatever the numbers of the requests."""
    return {replace(one, number=0) for one in stub.requests} == {replace(one.request, number=0) for one in wanted}
