"""Debian's Firefox, driven by its own protocol, Marionette: Playwright asks it for commands that the ESR does not have.

A message is ``LENGTH:JSON``; a command ``[0, id, name, parameters]`` is answered by ``[1, id, error, result]``.
https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html
"""

from __future__ import annotations

import itertools
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SCHEMES = ("dark", "light")
"""Colour schemes by the number that Firefox's preference has for them."""
PREFERENCES = {
    "marionette.port": 0,  # any; it is written to MarionetteActivePort in the profile
    "app.update.disabledForTesting": True,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.server": "",
}
START_S = 180.0
"""Time in which Firefox must have started."""
ANSWER_S = 240.0
"""Time in which Firefox must have loaded a page, or run a script."""
SAID = """
    const { classes, interfaces } = Components;
    const storage = classes["@mozilla.org/consoleAPI-storage;1"].getService(interfaces.nsIConsoleAPIStorage);
    const ours = storage.getEvents().filter((one) => one.level === "error" && !/^(resource|chrome):/.test(one.filename));
    return ours.map((one) => String(one.arguments[0]));
"""
"""What pages said by ``console.error``, without what Firefox says itself; their process keeps it."""
THROWN = """
    const errors = Services.console.getMessageArray().filter((one) => one instanceof Ci.nsIScriptError);
    const ours = errors.filter((one) => one.sourceName.startsWith("file:") && !(one.flags & Ci.nsIScriptError.warningFlag));
    return ours.map((one) => one.errorMessage);
"""
"""What pages threw; warnings are left out."""


class Firefox:
    """A running Firefox with one tab."""

    def __init__(self, connection: socket.socket) -> None:
        self.stream, self.numbers = connection.makefile("rwb"), itertools.count(1)
        self._receive()  # its greeting
        self.send("WebDriver:NewSession")
        self.send("WebDriver:SetTimeouts", script=int(ANSWER_S * 1000), pageLoad=int(ANSWER_S * 1000))

    def send(self, command: str, **parameters: Any) -> Any:
        """The result of a command; AssertionError with Firefox's own words where it failed."""
        number = next(self.numbers)
        text = json.dumps([0, number, command, parameters]).encode()
        self.stream.write(b"%d:%s" % (len(text), text))
        self.stream.flush()
        _, answered, error, result = self._receive()
        assert answered == number
        assert error is None, (command, error["error"], error["message"])
        return result["value"] if isinstance(result, dict) and "value" in result else result

    def _receive(self) -> Any:
        digits = b"".join(iter(lambda: self.stream.read(1), b":"))
        return json.loads(self.stream.read(int(digits)))

    def run(self, script: str, *arguments: object) -> Any:
        """What a function's body returns in the page."""
        return self.send("WebDriver:ExecuteScript", script=script, args=arguments, sandbox=None)

    def wait_for(self, script: str, *arguments: object, seconds: float = ANSWER_S) -> None:
        """Wait until the body of a function returns what is true."""
        until = time.monotonic() + seconds
        while not self.run(script, *arguments):
            assert time.monotonic() < until, (script, arguments)
            time.sleep(0.05)

    def wait_for_promise(self, script: str) -> Any:
        """The value of a promise that an expression of the page makes."""
        script = f"const done = arguments[arguments.length - 1]; ({script}).then(done, (error) => done(String(error)));"
        return self.send("WebDriver:ExecuteAsyncScript", script=script, args=[], sandbox=None)

    def privileged(self, script: str, *arguments: object) -> Any:
        """What a function's body returns in Firefox itself."""
        self.send("Marionette:SetContext", value="chrome")
        try:
            return self.send("WebDriver:ExecuteScript", script=script, args=arguments)
        finally:
            self.send("Marionette:SetContext", value="content")

    def open_narrow(self, page: Path, width: int, scheme: str) -> None:
        """Show a page in a frame of this width, for Firefox's own window has a least one; commands go to the frame."""
        script = 'Services.prefs.setIntPref("layout.css.prefers-color-scheme.content-override", arguments[0]);'
        self.privileged(script, SCHEMES.index(scheme))
        around = page.with_name("frame.html")
        frame = f'<iframe title="page" width="{width}" height="800" style="border: 0" src="{page.name}"></iframe>'
        around.write_text(f"<!doctype html><html lang=en><title>frame</title><body>{frame}</body></html>")
        self.send("WebDriver:Navigate", url=around.as_uri())
        self.send("WebDriver:SwitchToFrame", id=0)

    def complaints(self) -> list[str]:
        """Errors in the console since Firefox started."""
        said = self.send("WebDriver:ExecuteScript", script=SAID, args=[], sandbox="system")
        return [*said, *self.privileged(THROWN)]


@contextmanager
def firefox(folder: Path) -> Iterator[Firefox]:
    """Debian's Firefox with a profile of its own in a folder; the test fails where it is not installed."""
    path = shutil.which("firefox-esr") or shutil.which("firefox")
    if path is None:
        pytest.fail("no Firefox for the page's tests: apt-get install -y firefox-esr", pytrace=False)
    profile = folder / "profile"
    profile.mkdir()
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items())
    (profile / "user.js").write_text("\n".join(lines) + "\n")
    words = [
        path,
        "--headless",
        "--no-remote",
        "--marionette",
        "--remote-allow-system-access",
        "--profile",
        str(profile),
    ]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port, until = profile / "MarionetteActivePort", time.monotonic() + START_S
        while not (port.exists() and port.read_text().strip()):
            assert process.poll() is None
            assert time.monotonic() < until, "Firefox does not start"
            time.sleep(0.1)
        with socket.create_connection(("127.0.0.1", int(port.read_text())), timeout=ANSWER_S + 60) as connection:
            yield Firefox(connection)
    finally:
        process.terminate()
        process.wait(60)
