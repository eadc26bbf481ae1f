"""Whatever is killed or cut: nothing that was acknowledged is lost, and nothing is counted twice."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest

from tests.mine.fleet.fleet import PATIENCE_S, SPOOL_BYTES, Fleet, Wire, redirected, wait_for
from tests.mine.fleet.postgres import PostgresServer


@pytest.fixture
def fleet(tmp_path):
    made = Fleet(tmp_path)
    yield made
    made.close()


def more_than(fleet, count):
    """Wait until more measurements are stored; returns them."""
    return wait_for(lambda: len(stored := fleet.stored()) > count and stored)


def finish(fleet, stub, host="one"):
    """Let a stub measure no more and deliver the rest; all that it ever made is there, and nothing is stored twice."""
    stub.send_signal(signal.SIGTERM)
    assert stub.wait(PATIENCE_S) == 0
    stored = fleet.stored()
    assert len(stored) == len(set(stored))
    assert fleet.made(host) == set(stored) | fleet.pending(host)
    indexed = sum(one.measurements for one in fleet.ledger.coverage("shop"))
    with fleet.ledger._database.transaction() as execute:
        names = execute("SELECT COUNT(*), COUNT(DISTINCT measurement || component) FROM observed").fetchone()
    assert indexed == names[0] == names[1]
    return set(stored)


def acknowledged_and_not(fleet, host):
    """Measurements that the stub has delivered are no longer in its spool; all that it made are here or there."""
    return set(fleet.stored()) | fleet.pending(host)


@pytest.mark.slow
def test_kill_9_of_stub_and_controller(fleet):
    controller, stub = fleet.serve(), fleet.stub("one")
    for killed in ("stub", "controller", "stub", "controller"):
        before = set(more_than(fleet, len(fleet.stored())))
        if killed == "stub":
            stub.kill()
            stub.wait()
            known = acknowledged_and_not(fleet, "one")
            stub = fleet.stub("one")
        else:
            controller.kill()
            controller.wait()
            known = acknowledged_and_not(fleet, "one")
            made = len(fleet.pending("one"))
            wait_for(lambda made=made: len(fleet.pending("one")) > made)  # it goes on within its last instructions
            controller = fleet.serve()
        assert before <= known
        wait_for(lambda known=known: known <= set(fleet.stored()))  # what it kept is delivered
    known = acknowledged_and_not(fleet, "one")
    assert known <= finish(fleet, stub) | fleet.pending("one")
    assert len({stub.id for stub in fleet.ledger.stubs("shop")}) == 1  # it kept its id


DIES_BEFORE_FORGETTING = """
import os
from perflaw.mine.fleet.spool import Spool
Spool.remove = lambda self, ids: os.kill(os.getpid(), 9)
"""
DIES_BEFORE_ACKNOWLEDGING = """
import os
from perflaw.mine.fleet.ledger import Ledger
add = Ledger.add
Ledger.add = lambda self, *delivered: add(self, *delivered) and os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["stub", "controller"])
def test_kill_9_when_the_controller_has_stored_and_the_stub_does_not_know_yet(fleet, killed):
    controller = fleet.serve(DIES_BEFORE_ACKNOWLEDGING if killed == "controller" else "")
    stub = fleet.stub("one", first=DIES_BEFORE_FORGETTING if killed == "stub" else "")
    dying = controller if killed == "controller" else stub
    assert dying.wait(PATIENCE_S) == -signal.SIGKILL
    on_both = set(fleet.stored()) & fleet.pending("one")
    assert on_both
    if killed == "controller":
        fleet.serve()
    else:
        stub = fleet.stub("one")
    wait_for(lambda: not on_both & fleet.pending("one"))  # delivered again, and stored once
    assert on_both < finish(fleet, stub)


@pytest.mark.slow
def test_a_network_that_is_cut(fleet, tmp_path):
    fleet.serve()
    wire = Wire((fleet.folder.address.host, fleet.folder.address.port))
    stub = fleet.stub("one", enrolment=redirected(fleet.enrolment, wire.port, tmp_path / "wired"))
    more_than(fleet, 2)
    wire.cut = True
    made = len(fleet.pending("one"))
    wait_for(lambda: len(fleet.pending("one")) > made + 5)
    known = acknowledged_and_not(fleet, "one")
    wire.cut = False
    wait_for(lambda: known <= set(fleet.stored()))
    finish(fleet, stub)
    wire.close()


@pytest.mark.slow
def test_a_stub_whose_spool_is_full_stops_measuring_and_catches_up(fleet):
    controller, stub = fleet.serve(), fleet.stub("one")
    wait_for(lambda: fleet.ledger.coverage("shop"))  # it measures more than samples
    controller.kill()
    folder = fleet.spool("one") / "pending"

    def size():
        total = 0
        for path in folder.iterdir():
            with suppress(FileNotFoundError):  # it got its name meanwhile
                total += path.stat().st_size
        return total

    wait_for(lambda: size() >= SPOOL_BYTES)
    fleet.wait_unchanged(lambda: len(fleet.pending("one")))
    known = fleet.pending("one")
    assert size() < 2 * SPOOL_BYTES
    fleet.serve()
    wait_for(lambda: known <= set(fleet.stored()))
    finish(fleet, stub)


def test_a_wrong_token_and_a_certificate_of_another_authority_are_refused(fleet, tmp_path):
    other = Fleet(tmp_path / "other")
    fleet.serve()
    stranger = fleet.stub(
        "stranger", enrolment=redirected(other.enrolment, fleet.folder.address.port, tmp_path / "wrong")
    )
    again = fleet.stub("again", enrolment=fleet.enrolment)
    wait_for(lambda: "registered" in fleet.log("again"))
    wait_for(lambda: "certificate" in fleet.log("stranger").lower())
    fleet.enrol("shop", ("shop.*",))  # the running stub's token is refused from now on
    wait_for(lambda: "the token is not known" in fleet.log("again"))
    assert {one.host for one in fleet.ledger.stubs("shop")} == {"again"}
    for process in (stranger, again):
        process.kill()
    other.close()


@pytest.mark.slow
def test_kill_9_of_the_database(tmp_path):
    server = PostgresServer()
    try:
        fleet = Fleet(tmp_path, server.url)
        try:
            controller, stub = fleet.serve(), fleet.stub("one")
            before = set(more_than(fleet, 2))
            server.kill()
            made = len(fleet.pending("one"))
            wait_for(lambda: len(fleet.pending("one")) > made + 2)
            pending = fleet.pending("one")
            server.start()
            fleet.ledger.close()  # its connection was one of the old server's
            wait_for(lambda: before | pending <= set(fleet.stored()))
            controller.kill()  # and what the controller knows is in the database
            fleet.serve()
            more_than(fleet, len(fleet.stored()))
            assert before | pending <= finish(fleet, stub) | fleet.pending("one")
            assert [one.host for one in fleet.ledger.stubs("shop")] == ["one"]
        finally:
            fleet.close()
    finally:
        server.close()
