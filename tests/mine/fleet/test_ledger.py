"""The ledger, in SQLite and in PostgreSQL: measurements count once, and everything is there after it was opened again."""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import replace

import pytest

from perflaw.errors import UsageError
from perflaw.mine.fleet.analysis import Analyst, observed_of_service
from perflaw.mine.fleet.ledger import Delivery, Ledger, Service, StubState
from perflaw.mine.fleet.plan import plan
from perflaw.mine.fleet.spool import Spool, content, content_id
from perflaw.mine.messages import Measurement, Request
from tests.mine.fleet.postgres import PostgresServer
from tests.mine.fleet.simulated import Simulated

KINDS = ("samples", "paths")
SHOP = Service("shop", ("shop.*",), 0.02)
STUB = StubState("0123456789", "shop", "here", "build", "shop.py", 7)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    if request.param == "sqlite":
        yield str(tmp_path / "fleet.db")
        return
    server = PostgresServer()
    yield server.url
    server.close()


def delivery(host="here", number=1, functions=("shop.load",), kind="paths"):
    measurement = Simulated(host).measure(Request(number, kind, functions))
    return Delivery(content_id(content(measurement)), measurement, content(measurement))


def kept(kind):
    """Number of objects of a kind that are in memory and can hold others."""
    gc.collect()
    return sum(isinstance(one, kind) for one in gc.get_objects())


def test_a_ledger_keeps_everything_and_counts_once(place):
    ledger = Ledger(place)
    ledger.enrol(SHOP, "first")
    ledger.enrol(replace(SHOP, budget=0.05), "second")
    assert ledger.services() == {"second": replace(SHOP, budget=0.05)}
    ledger.register(STUB)
    ledger.register(replace(STUB, service="other", host="stolen"))  # a stub of another service stays there
    one, other = delivery(), delivery("there", kind="samples")
    assert ledger.add("shop", STUB.id, [one, other, one]) == 2
    again = replace(one.measurement, request=99)
    assert ledger.add("shop", "elsewhere", [Delivery(content_id(content(again)), again, content(again))]) == 0
    ledger.instruct(STUB.id, [Request(1, "samples")], ["because"], [0.5])
    ledger.heard([(STUB.id, 10**18, 3, ["os.read"])])
    ledger.spend("shop", STUB.id, [(5, 0.01, 0.1), (6, 0.02, 0.2)])
    ledger.spend("shop", STUB.id, [(6, 0.02, 0.2)])
    ledger.close()
    ledger = Ledger(place)
    stub = ledger.stub(STUB.id)
    assert stub == replace(
        STUB, seen_ns=10**18, spooled=3, refused=("os.read",), version=1, requests=(Request(1, "samples"),),
        reasons=("because",),
    )  # fmt: skip
    assert ledger.versions() == {STUB.id: 1}
    assert [(one.host, one.calls) for one in ledger.coverage("shop")] == [("here", 3000)]
    assert [one.to_json() for one in ledger.samples("shop", 5)] == [other.text]
    assert len(list(ledger.observed(("shop", "shop.load", "time"), 5))) == 1
    assert [one[1:] for one in ledger.decisions("shop", 5)] == [(STUB.id, 1, "samples", "because", 0.5)]
    assert ledger.spent("shop", 0) == [(STUB.id, 5, 0.01, 0.1), (STUB.id, 6, 0.02, 0.2)]
    both = [Request(200, "samples"), Request(201, "paths", ("shop.load",))]
    ledger.instruct(STUB.id, both, ["because", "it is hot"], [0.5, 1.0])
    # What is measured as before is no decision.
    assert [one[2:4] for one in ledger.decisions("shop", 5)] == [(2, "paths shop.load"), (1, "samples")]
    ledger.close()


def test_old_measurements_are_dropped_but_the_last_ones_of_a_function_and_never_count_again(place):
    ledger = Ledger(place)
    several = [delivery(number=number) for number in range(4)]
    samples = delivery(kind="samples")
    assert ledger.add("shop", STUB.id, [*several, samples]) == 5
    ledger.spend("shop", STUB.id, [(5, 0.01, 0.1)])
    end_ns = max(one.measurement.end_ns for one in [*several, samples])
    ledger.forget(end_ns + 1, 2)
    assert len(list(ledger.observed(("shop", "shop.load", "time"), 60))) == 2
    assert not list(ledger.samples("shop", 5))
    assert not ledger.spent("shop", 0)
    assert ledger.add("shop", STUB.id, several) == 0
    assert [one.measurements for one in ledger.coverage("shop")] == [4]
    ledger.forget(0, 0)
    assert len(list(ledger.observed(("shop", "shop.load", "time"), 60))) == 2
    ledger.close()


@pytest.mark.slow
def test_measurements_are_read_one_at_a_time(tmp_path):
    ledger = Ledger(str(tmp_path / "fleet.db"))
    ledger.add("shop", STUB.id, [delivery(number=number, kind=kind) for number in range(5) for kind in KINDS])

    def most_at_once(read, *arguments):
        before = kept(Measurement)
        return max(kept(Measurement) for _ in read(*arguments)) - before

    assert most_at_once(ledger.samples, "shop", 9) <= 2
    assert most_at_once(ledger.observed, ("shop", "shop.load", "time"), 9) <= 2
    # What is dropped while it is read is left out.
    reading = ledger.samples("shop", 9)
    next(reading)
    ledger.forget(2 * 10**18, 0)
    assert not list(reading)
    ledger.close()


@pytest.mark.slow
def test_a_controller_keeps_no_more_objects_however_much_is_measured(tmp_path):
    """Memory of a controller is that of what it knows of functions, and not of what was measured of them."""
    ledger = Ledger(str(tmp_path / "fleet.db"))
    ledger.enrol(SHOP, "token")
    ledger.register(STUB)
    analyst, counts = Analyst(str(tmp_path / "fleet.db"), print), []
    for _ in range(3):
        for number in range(5):
            deliveries = [delivery(number=number, kind=kind) for kind in KINDS]
            ledger.add("shop", STUB.id, deliveries)
            analyst.arrived("shop", [one.measurement for one in deliveries])
            del deliveries
        ledger.heard([(STUB.id, time.time_ns(), 0, [])])
        while analyst._analyse_next(ledger):
            pass
        analyst._plan(ledger, SHOP)
        counts.append(kept(object))
    assert analyst.specs("shop")[0].observations > 30
    assert counts[-1] <= counts[0] + 100  # of some ten thousand
    ledger.close()


def test_the_share_of_a_function_is_that_of_samples_and_not_of_recordings_of_it_alone(tmp_path):
    place = str(tmp_path / "fleet.db")
    ledger, analyst = Ledger(place), Analyst(place, print)
    ledger.enrol(SHOP, "token")
    ledger.register(STUB)
    samples = Measurement(1, "samples", 1, 2, stacks={("shop.main", "shop.load"): 30, ("shop.main",): 90})
    deliveries = [delivery(), Delivery(content_id(content(samples)), samples, content(samples))]
    ledger.add("shop", STUB.id, deliveries)
    analyst.arrived("shop", [one.measurement for one in deliveries])
    assert analyst._analyse_next(ledger)
    analyst._plan(ledger, SHOP)
    assert [one.share for one in analyst.specs("shop")] == [0.25]
    assert [one.share for one in observed_of_service(place, "shop")] == [0.25]
    ledger.close()


def test_several_threads_that_deliver_the_same_count_once(place):
    deliveries = [delivery(number=number) for number in range(5)]
    added = []

    def deliver():
        ledger = Ledger(place)
        added.extend(ledger.add("shop", STUB.id, [one]) for one in deliveries)
        ledger.close()

    threads = [threading.Thread(target=deliver) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(added) == [0] * 15 + [1] * 5


def test_functions_are_shared_out_over_hosts(tmp_path):
    ledger = Ledger(str(tmp_path / "fleet.db"))
    stubs = [replace(STUB, id=f"{host:010}", host=f"host{host}") for host in range(4)]
    ledger.add("shop", STUB.id, [delivery("host0"), delivery("host0", kind="samples")])
    samples = ledger.samples("shop", 10)
    service = replace(SHOP, allow=("shop.*", "other.named"))
    wanted = plan(service, stubs, samples, ledger.coverage("shop"), {})
    hosts = [stub for stub, ones in wanted.items() for one in ones if one.request.functions == ("shop.load",)]
    assert len(hosts) == 2
    assert stubs[0].id not in hosts  # it has measured the function already
    names = {
        name for ones in wanted.values() for one in ones for name in (*one.request.functions, *one.request.callers)
    }
    assert names <= {"shop.load", "shop.serve", "shop.item", "shop.overview", "shop.search", "other.named"}
    assert "other.named" in names  # it needs no samples
    assert all(ones[0].request.kind == "samples" for ones in wanted.values())
    ledger.close()


def test_a_spool_keeps_what_was_not_acknowledged(tmp_path):
    spool = Spool(tmp_path, 1 << 20)
    measurements = [Simulated("here").measure(Request(number, "paths", ("shop.load",))) for number in range(3)]
    for one in measurements:
        spool.add(one)
    name = spool.id
    with pytest.raises(UsageError, match="another stub uses it"):
        Spool(tmp_path, 1 << 20)
    spool.remove([content_id(content(measurements[0]))])
    spool.close()
    (tmp_path / "pending" / "half.part").write_text("{")
    spool = Spool(tmp_path, 1)
    assert (spool.id, len(spool), spool.full) == (name, 2, True)
    assert {key for key, _ in spool.oldest(1 << 20)} == {content_id(content(one)) for one in measurements[1:]}
    assert len(spool.oldest(1)) == 1
    spool.close()
