"""What a fleet loses when parts of it are killed: fleet_kills.py [ROUNDS] [CUT_SECONDS].

A controller over PostgreSQL and two simulated stubs, one of them behind a wire. In each round kill -9 ends a stub, the
controller, the database with all its processes, and the two ends of a delivery between what one has written and what the other
one knows: the controller after it has stored and before it acknowledges, a stub after it was acknowledged and before it
forgets. Then the wire is cut for a minute. Every measurement that a stub has ever made has to be stored at the end, once.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from pathlib import Path

from shared import ROOT, Bars

sys.path.insert(0, str(ROOT))
from tests.mine.fleet.fleet import Fleet, Wire, redirected, wait_for
from tests.mine.fleet.postgres import PostgresServer
from tests.mine.fleet.test_kills import DIES_BEFORE_ACKNOWLEDGING, DIES_BEFORE_FORGETTING

LIVES_S, ENDS_S = 3.0, 120.0


def killed(folder: Path, server: PostgresServer, rounds: int, cut_s: float) -> tuple[int, int, int, int]:
    """Measurements made, acknowledged ones that were lost, others that were lost, and those counted twice."""
    fleet = Fleet(folder, server.url)
    controller = fleet.serve()
    wire = Wire((fleet.folder.address.host, fleet.folder.address.port))
    wired = redirected(fleet.enrolment, wire.port, folder / "wired")
    stub, other = fleet.stub("one"), fleet.stub("two", enrolment=wired)
    acknowledged: set[str] = set()

    def goes_on(what: str) -> None:
        """Both stubs deliver again; what they have delivered is remembered."""
        gone = [fleet.made(host) - fleet.pending(host) for host in ("one", "two")]
        acknowledged.update(*gone)
        fleet.ledger.close()  # its connection may be one of a server that was killed
        count = len(fleet.stored())
        wait_for(lambda: len(fleet.stored()) > count, ENDS_S)
        print(f"{what}: {len(fleet.made('one') | fleet.made('two'))} made, {count} stored", flush=True)

    goes_on("at first")
    for number in range(1, rounds + 1):
        for name in ("stub", "controller", "database", "stub before it forgets", "controller before it acknowledges"):
            time.sleep(LIVES_S)
            if name.startswith("stub"):
                stub.kill()
                stub.wait()
                if name != "stub":
                    assert fleet.stub("one", first=DIES_BEFORE_FORGETTING).wait(ENDS_S) == -signal.SIGKILL
                stub = fleet.stub("one")
            elif name.startswith("controller"):
                controller.kill()
                controller.wait()
                if name != "controller":
                    assert fleet.serve(DIES_BEFORE_ACKNOWLEDGING).wait(ENDS_S) == -signal.SIGKILL
                controller = fleet.serve()
            else:
                server.kill()
                time.sleep(LIVES_S)
                server.start()
            goes_on(f"round {number}, kill -9 of the {name}")
    wire.cut = True
    time.sleep(cut_s)
    kept = len(fleet.pending("two"))
    wire.cut = False
    goes_on(f"network cut for {cut_s:g} s, {kept} measurements kept meanwhile")
    for one in (stub, other):
        one.send_signal(signal.SIGTERM)
        assert one.wait(ENDS_S) == 0
    made, stored = fleet.made("one") | fleet.made("two"), fleet.stored()
    with fleet.ledger._database.transaction() as execute:
        rows = execute("SELECT COUNT(*), COUNT(DISTINCT measurement || component) FROM observed").fetchone()
    left = fleet.pending("one") | fleet.pending("two")
    fleet.close()
    wire.close()
    twice = len(stored) - len(set(stored)) + rows[0] - rows[1]
    return len(made), len(acknowledged - set(stored)), len(made - set(stored) - left), twice


def main(rounds: str = "3", cut_s: str = "60") -> None:
    bars, server = Bars(), PostgresServer()
    try:
        with tempfile.TemporaryDirectory() as folder:
            made, lost, missing, twice = killed(Path(folder), server, int(rounds), float(cut_s))
    finally:
        server.close()
    print(f"{made} measurements; acknowledged and lost: {lost}", bars.check("acknowledged and lost", lost, 0))
    print(f"never acknowledged and lost: {missing}", bars.check("lost", missing, 0))
    print(f"counted twice: {twice}", bars.check("counted twice", twice, 0))
    bars.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
