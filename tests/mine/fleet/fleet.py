"""A controller and stubs as processes of their own, for tests: started, killed, started again; and a wire to cut."""

from __future__ import annotations

import json
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from perflaw.mine.fleet.enrolment import ControllerFolder, digest
from perflaw.mine.fleet.ledger import Ledger, Service

ROOT = Path(__file__).parents[3]
SPOOL_BYTES = 400_000
"""What a simulated stub may keep."""
PATIENCE_S = 120.0
"""How long a test waits for what has to happen; it is never waited for in full where all is well."""


def wait_for(what, seconds=PATIENCE_S):
    """The first true value of ``what``, which is asked again and again."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := what():
            return value
        time.sleep(0.05)
    raise AssertionError(f"in vain: {what}")


class Fleet:
    """One controller, any number of stubs; everything ends with ``close``."""

    def __init__(self, folder: Path, database: str = "", budget: float = 0.5) -> None:
        self.path = folder
        self.folder = ControllerFolder.make(folder / "controller", "127.0.0.1:0", (), database)
        self.ledger = Ledger(self.folder.database)
        self.enrolment = self.enrol("shop", ("shop.*",), budget)
        self.processes: list[subprocess.Popen[str]] = []

    def enrol(self, service, allow, budget=0.5):
        """The file of a service's enrolment."""
        enrolment = self.folder.enrol(service, allow)
        self.ledger.enrol(Service(service, tuple(allow), budget), digest(enrolment.token))
        path = self.path / f"{service}.enrolment"
        path.touch(0o600)
        path.write_text(enrolment.text())
        return path

    def serve(self, first=""):
        """Start the controller, which looks often for what to measure; it runs the code ``first`` before."""
        code = (
            f"{first}\n"
            "import sys; from pathlib import Path; from perflaw.mine.fleet.enrolment import ControllerFolder;"
            "from perflaw.mine.fleet.service import serve; from perflaw.cli.controller import views_at;"
            "say = lambda text: print(text, flush=True);"
            "serve(ControllerFolder.open(Path(sys.argv[1])), say, 0.5, views_at('127.0.0.1:0'))"
        )
        process = self._start(["-c", code, str(self.folder.path)], "controller")
        wait_for(lambda: self.reachable() or process.poll() is not None)
        return process

    def page(self, path, host=None):
        """What the controller's page answers to a browser."""
        address = re.search(r"http://(\S+)/", self.log("controller"))[1]
        request = urllib.request.Request(f"http://{address}{path}", headers={"Host": host} if host else {})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    def reachable(self):
        address = self.folder.address
        with suppress(OSError), socket.create_connection((address.host, address.port), 1.0):
            return True
        return False

    def stub(self, host, speed=1.0, enrolment=None, first=""):
        """Start a stub beside a simulated process; it runs the code ``first`` before."""
        code = f"{first}\nfrom tests.mine.fleet.simulated import main; main()"
        words = ["-c", code, str(enrolment or self.enrolment)]
        return self._start([*words, str(self.spool(host)), host, str(speed)], host)

    def spool(self, host):
        return self.path / f"{host}.spool"

    def pending(self, host):
        """Ids of the measurements that the stub of a host has not delivered."""
        folder = self.spool(host) / "pending"
        names = [path.name for path in folder.iterdir()] if folder.exists() else []
        return {name.rpartition("-")[2] for name in names if not name.endswith(".part")}

    def made(self, host):
        """Ids of all measurements that stubs of a host have made."""
        path = self.spool(host) / "made"
        return set(path.read_text().split()) if path.exists() else set()

    def stored(self):
        """Ids of the measurements that the controller has, one for each row."""
        with self.ledger._database.transaction() as execute:
            return [name for (name,) in execute("SELECT id FROM measurements").fetchall()]

    def wait_unchanged(self, what, seconds=2.0):
        """Return when a value has not changed for that long."""
        last, since = what(), time.monotonic()
        deadline = since + PATIENCE_S
        while time.monotonic() - since < seconds:
            assert time.monotonic() < deadline, what
            time.sleep(0.1)
            if (now := what()) != last:
                last, since = now, time.monotonic()

    def _start(self, words, name):
        log = (self.path / f"{name}.log").open("a")
        with log:
            process = subprocess.Popen(
                [sys.executable, *words], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )
        self.processes.append(process)
        return process

    def log(self, name):
        return (self.path / f"{name}.log").read_text()

    def close(self):
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait()
        self.ledger.close()


def redirected(enrolment: Path, port: int, new: Path) -> Path:
    """An enrolment whose controller is at another port."""
    document = json.loads(enrolment.read_text())
    new.touch(0o600)
    new.write_text(json.dumps({**document, "address": f"127.0.0.1:{port}"}))
    return new


class Wire:
    """A relay between a stub and the controller. While it is cut, connections hang: nothing passes and nothing ends them."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target, self.cut = target, False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open = True
        threading.Thread(target=self._run, daemon=True).start()

    def close(self):
        self._open = False
        self._listener.close()

    def _run(self):
        pairs: dict[socket.socket, socket.socket] = {}
        while self._open:
            if self.cut:
                time.sleep(0.02)
                continue
            with suppress(OSError, ValueError):
                ready, _, _ = select.select([self._listener, *pairs], [], [], 0.05)
                for one in ready:
                    if one is self._listener:
                        ours, theirs = self._listener.accept()[0], socket.create_connection(self._target, 5.0)
                        pairs[ours], pairs[theirs] = theirs, ours
                        continue
                    other = pairs.get(one)
                    if other is None:
                        continue
                    data = b""
                    with suppress(OSError):
                        data = one.recv(1 << 16)
                    if data:
                        other.sendall(data)
                        continue
                    for end in (one, other):
                        pairs.pop(end, None)
                        end.close()
