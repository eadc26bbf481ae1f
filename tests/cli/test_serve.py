"""`perflaw serve` over HTTP: what is recorded meanwhile appears, who may read, what is damaged, how it ends."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from starlette.applications import Starlette

from perflaw.live.making import NICENESS, ReportMaker
from perflaw.store.checks import keep_check
from perflaw.wire.web import web_settings
from tests.conftest import PROGRAMS, run_perflaw, started_perflaw

T = TypeVar("T")
PATIENCE_S = 60.0
RECORD = ["record", "--clock", "fake", "--select", "shifting.*", "--vary", "n=200,400,800"]
COMMAND = ["--", PROGRAMS / "shifting.py", "{n}", 1, "a"]


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows none."""

    def redirect_request(self, *_: Any) -> None:
        return None


OPENER = urllib.request.build_opener(Redirects)


class Server:
    """A running ``perflaw serve``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr
        self.said = process.stderr.readline()
        found = re.search(r"(https?://\S+?/)(\?token=\S+)?\s", self.said)
        assert found, self.said + process.stderr.read()
        self.token = (found[2] or "").removeprefix("?token=")
        self.address = f"http://127.0.0.1:{found[1].rpartition(':')[2].rstrip('/')}"

    def get(self, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        """Status, text and headers of an answer."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            answer = OPENER.open(urllib.request.Request(self.address + path, headers=named), timeout=30)
        except urllib.error.HTTPError as error:
            answer = error  # type: ignore[assignment]  # it is an answer too
        with answer:
            return answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.headers.items()}

    def state(self, path: str = "/experiments/default") -> dict[str, Any]:
        return json.loads(self.get(f"{path}/state")[1])  # type: ignore[no-any-return]

    def row(self, name: str) -> dict[str, Any]:
        return next(one for one in self.state("")["experiments"] if one["name"] == name)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def serving(folder: Path, *options: object) -> Iterator[Server]:
    with started_perflaw(folder, "serve", "--port", 0, *options) as process:
        server = Server(process)
        try:
            yield server
        finally:
            process.kill()


def wait_for(what: Callable[[], T]) -> T:
    """The first true value of ``what``."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := what()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.1)
    return value


@pytest.fixture
def folder(made_once: Any, tmp_path: Path) -> Path:
    made = made_once("served", lambda folder: run_perflaw(folder, *RECORD, *COMMAND))
    (tmp_path / ".perflaw").symlink_to(made / ".perflaw")  # it is only read
    return tmp_path


def damage(folder: Path) -> None:
    """Experiments with a manifest that was cut, and with a study whose journal is none."""
    for name in ("cut", "study"):
        (folder / ".perflaw" / name / "runs" / "0001").mkdir(parents=True)
    (folder / ".perflaw" / "cut" / "runs" / "0001" / "run.json").write_text('{"schema": "perflaw.run/2"')
    (folder / ".perflaw" / "study" / "study.db").write_bytes(b"no database")


def test_what_is_recorded_and_checked_meanwhile_appears_beside_what_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def f(n): return n\nf(1)\n")  # its page takes as little time as any
    with serving(tmp_path) as server:
        assert server.state("") == {"folder": str(tmp_path), "experiments": [], "checks": []}
        run_perflaw(tmp_path, "record", "--clock", "fake", "--", "app.py")
        wait_for(lambda: server.state("")["experiments"] and server.row("default")["holds"] == "1 run")
        assert "as soon as it is made" in server.get("/experiments/default")[1]
        first = wait_for(lambda: server.state()["version"])
        status, page, headers = server.get("/experiments/default")
        assert (status, f'data-version="{first}"' in page, "app.f" in page) == (200, True, True)
        # What has not changed is not sent again.
        assert server.get("/experiments/default", If_None_Match=headers["etag"])[:2] == (304, "")
        unchanged = server.get("/state")[2]["etag"]
        assert server.get("/state", If_None_Match=unchanged)[0] == 304
        damage(tmp_path)
        run_perflaw(tmp_path, "record", "--clock", "fake", "--", "app.py")
        keep_check(tmp_path / ".perflaw" / "default", "perf.law", {"verdicts": [], "runs": []})
        wait_for(lambda: server.row("default")["holds"] == "2 runs" and server.state("")["checks"])
        assert [(one["experiment"], one["laws"]) for one in server.state("")["checks"]] == [("default", "perf.law")]
        assert server.get("/state", If_None_Match=unchanged)[0] == 200
        # A damaged experiment is an error of its own.
        assert server.row("default")["error"] == ""
        assert "cannot be read: truncated or damaged" in server.row("cut")["error"]
        assert "file is not a database" in server.row("study")["error"]
        for name in ("cut", "study"):
            assert server.get(f"/experiments/{name}")[0] == 200
            assert server.state(f"/experiments/{name}")["error"] == server.row(name)["error"]
        assert server.end(signal.SIGTERM) == 0


@pytest.mark.slow
def test_a_page_is_made_anew_with_what_is_recorded_meanwhile(tmp_path: Path) -> None:
    run_perflaw(tmp_path, *RECORD, *COMMAND)
    with serving(tmp_path) as server:
        first = wait_for(lambda: server.state()["version"])
        run_perflaw(tmp_path, *RECORD, *COMMAND)
        wait_for(lambda: server.state()["version"] != first and server.row("default")["report"] == "up to date")
        assert server.row("default")["holds"] == "6 runs"
        shown = server.get("/experiments/default")[1].split('id="data">')[1].split("</script>")[0]
        assert len(json.loads(shown)["header"]["runs"]) == 6


def test_other_machines_show_the_token_and_foreign_names_are_refused(folder: Path) -> None:
    with serving(folder, "--host", "0.0.0.0", "--name", "build.example") as server:
        assert len(server.token) >= 32
        assert server.get("/")[0] == 401
        assert server.get("/?token=wrong")[0] == 401
        assert server.get("/state", Authorization="Bearer wrong")[0] == 401
        assert server.get("/state", Authorization=f"Bearer {server.token}")[0] == 200
        status, _, headers = server.get(f"/experiments/default?token={server.token}")
        assert (status, headers["location"]) == (303, "/experiments/default")
        assert {"HttpOnly", "SameSite=lax"} <= set(headers["set-cookie"].split("; "))
        cookie = headers["set-cookie"].partition(";")[0]
        assert server.get("/", Cookie=cookie)[0] == 200
        assert server.get(f"//evil.example?token={server.token}")[2]["location"] == "/evil.example"
        for host, status in (("evil.example", 400), ("build.example:80", 200), ("[::1]:80", 200), ("", 400)):
            assert server.get("/", Cookie=cookie, Host=host)[0] == status, host
        server.process.send_signal(signal.SIGINT)  # pressed twice, as people do
        assert server.end(signal.SIGINT) == 0
        assert server.process.stderr is not None
        assert "Traceback" not in server.process.stderr.read()


def test_open_questions_that_end_with_a_server_are_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    """Stubs and pages wait for news, and ask again."""
    web_settings(Starlette())
    log = logging.getLogger("uvicorn.error")
    log.error("Cancel %s running task(s), timeout graceful shutdown exceeded", 3)
    log.error("Exception in ASGI application")
    said = capfd.readouterr().err
    assert "Exception in ASGI application" in said and "Cancel" not in said


def test_this_machine_needs_no_token_but_its_names(folder: Path) -> None:
    with serving(folder) as server:
        status, page, headers = server.get("/")
        assert (status, server.token) == (200, "")
        assert "connect-src 'self'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert server.get("/", Host="evil.example")[0] == 400
        assert server.get("/experiments/..%2f..%2fetc")[0] in (303, 404)
        assert server.get("/experiments/nothing/state")[0] == 404
        assert "script" in page


def test_wrong_options_are_told(folder: Path) -> None:
    assert "no experiment gone" in run_perflaw(folder, "serve", "gone", status=2).stderr
    assert "without the other" in run_perflaw(folder, "serve", "--cert", "a.pem", status=2).stderr
    assert (
        "a.pem with b.pem: no certificate"
        in run_perflaw(folder, "serve", "--cert", "a.pem", "--key", "b.pem", status=2).stderr
    )
    (folder / "token").write_text("secret")
    assert "chmod 600" in run_perflaw(folder, "serve", "--token-file", "token", status=2).stderr


def test_a_report_that_fails_or_hangs_is_an_error_of_its_experiment(folder: Path, tmp_path: Path) -> None:
    """The process that makes a report has a low priority and ends with the server."""
    code = "import os, sys, time; print('perflaw: it failed', file=sys.stderr); sys.exit(3)"
    hanging = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()}'); time.sleep(60)"

    async def follow(program: str, until: Callable[[ReportMaker], bool]) -> ReportMaker:
        maker = ReportMaker(lambda name, path: [sys.executable, "-c", program, str(path)], tmp_path, ["default"])
        following = asyncio.create_task(maker.run())
        maker.look("default")
        deadline = time.monotonic() + PATIENCE_S
        while not until(maker):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)
        if path.exists():
            priorities.append(Path(f"/proc/{path.read_text()}/stat").read_text().split()[18])
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following
        return maker

    path, priorities = tmp_path / "default.html", []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made = asyncio.run(follow(code, lambda maker: "default" in maker.reports)).reports["default"]
        assert (made.error, made.text) == ("it failed", "")
        asyncio.run(follow(hanging, lambda maker: path.exists() and path.read_text() != ""))
    assert priorities == [str(NICENESS)]
    assert not Path(f"/proc/{path.read_text()}").exists()
