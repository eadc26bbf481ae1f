"""Injectors over HTTP, by commands and functions, of the kernel, of the person's own."""

import http.server
import json
import sys
import threading

import pytest

from perflaw.errors import TargetError, UsageError
from perflaw.explore import plugins
from perflaw.explore.injectors import applying, registry
from perflaw.explore.injectors.applying import apply_all, remember_all, restore_all, verify_all
from perflaw.explore.injectors.context import Context
from tests.explore.injecting import knob, tried


@pytest.fixture
def server():
    kept = {"settings": {"refresh": "1s"}}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(200 if self.path == "/settings" else 404, kept)

        def do_PUT(self):
            kept["settings"] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(200, {})

        def answer(self, status, document):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()
        thread.join(20)


def test_http(tmp_path, server):
    verify = {"http": f"GET {server}/settings", "path": "settings.refresh"}
    one = knob(
        apply={"http": f"PUT {server}/settings", "body": '{"refresh": "{}s"}'}, verify={**verify, "expr": "x"}, unit="s"
    )
    assert tried(tmp_path, one, 30)[0] == ""
    wrong = knob(verify={"http": f"GET {server}/nothing"}, apply={"http": f"PUT {server}/settings", "body": "{}"})
    assert "status 404" in tried(tmp_path, wrong, 1)[0]
    with pytest.raises(TargetError, match="could not be applied by http"):
        tried(tmp_path, knob(apply={"http": "PUT http://127.0.0.1:9/x"}), 1)
    with pytest.raises(TargetError, match="begins with http"):
        tried(tmp_path, knob(apply={"http": "PUT file:///etc/passwd"}), 1)


def test_kernel_settings_are_put_back(tmp_path):
    one = knob(kind="categorical", values=("mine", "yours"), apply={"sysctl": "/proc/self/comm"})
    context = Context(str(tmp_path))
    remembered = remember_all([one], context)
    apply_all([one], {"x": "mine"}, context)
    assert verify_all([one], {"x": "mine"}, context, "before") == ""
    assert restore_all([one], remembered, context) == []
    assert remember_all([one], context) == remembered != ["mine"]


@pytest.mark.parametrize("name", ["/etc/passwd", "../../etc/passwd", "/proc/../etc/passwd"])
def test_sysctl_writes_nowhere_else(tmp_path, name):
    with pytest.raises(TargetError, match="could not be applied"):
        tried(tmp_path, knob(apply={"sysctl": name}), 1)


def test_functions(tmp_path):
    (tmp_path / "pools.py").write_text(
        "kept = {}\ndef put(value, context): kept['x'] = value\ndef got(context): return kept['x']\n"
    )
    one = knob(apply={"python": "pools:put"}, verify={"python": "pools:got"})
    try:
        assert tried(tmp_path, one, 8)[0] == ""
        with pytest.raises(TargetError, match="no function nothing"):
            tried(tmp_path, knob(apply={"python": "pools:nothing"}), 1)
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("pools")
    (tmp_path / "bad.py").write_text("def put(value, context): raise KeyError('gone')\n")
    with pytest.raises(TargetError, match="x could not be applied by python: KeyError: 'gone'"):
        tried(tmp_path, knob(apply={"python": "bad.py:put"}), 1)


def test_commands(tmp_path):
    one = knob(apply={"command": "echo limit={} > kept"}, verify={"command": "cat kept", "regex": r"limit=(\d+)"})
    assert tried(tmp_path, one, 8)[0] == ""
    stubborn = knob(apply={"command": "true {}"}, verify={"command": "echo 3"})
    assert "8 was requested, the target has 3" in tried(tmp_path, stubborn, 8)[0]
    with pytest.raises(TargetError, match="failed with status 3: no such setting"):
        tried(tmp_path, knob(apply={"command": "echo no such setting >&2; exit 3"}), 1)
    with pytest.raises(TargetError, match="cannot be started"):
        tried(tmp_path, knob(apply={"command": "./none"}), 1)


def test_what_the_target_tells(tmp_path):
    one = knob(verify={"path": "settings.0.cache"})
    assert tried(tmp_path, one, 5, document={"settings": [{"cache": 5}]})[0] == ""
    assert "the target has 6" in tried(tmp_path, one, 5, document={"settings": [{"cache": 6}]})[0]
    assert "could not be verified: path does not report it" in tried(tmp_path, one, 5, document={})[0]
    assert verify_all([one], {"x": 5}, Context(str(tmp_path)), "running") == ""
    assert tried(tmp_path, knob(verify={"regex": r"cache: (\w+)"}), 4096, output="cache: 1\ncache: 4KiB\n")[0] == ""


def test_a_target_that_rounds(tmp_path):
    """memcached has factors of two decimals, a page cache whole pages: what is read back is the setting."""
    factor = knob(kind="float", verify={"regex": "growth (.*)"})
    why, context = tried(tmp_path, factor, 1.8870417244, output="growth 1.89")
    assert why == "" and context.verified == {"x": 1.89}
    assert "the target has 1.25" in tried(tmp_path, factor, 1.8870417244, output="growth 1.25")[0]
    assert "the target has 2" in tried(tmp_path, factor, 1.8870417244, output="growth 2")[0]
    pages = knob(verify={"path": "cache"}, unit="KiB")
    assert "the target has 1024KiB" in tried(tmp_path, pages, 1000, document={"cache": "1024KiB"})[0]
    why, context = tried(
        tmp_path, knob(verify=pages.verify, unit="KiB", tolerance=0.05), 1000, document={"cache": "1MiB"}
    )
    assert why == "" and context.verified == {"x": 1024}


OWN = """
class Knobs:
    name = "knobs"
    kept = {}

    def apply(self, how, value, context):
        self.kept[how["own.py:Knobs"]] = value

    def verify(self, how, context):
        return self.kept.get(how["own.py:Knobs"])
"""


def test_an_injector_of_one_s_own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    how = {"own.py:Knobs": "speed"}
    assert tried(tmp_path, knob(apply=how, verify=how), 5)[0] == ""
    for name, told in [("own.py:None", "no class 'None'"), ("none.py:X", "there is no file")]:
        with pytest.raises(UsageError, match=told):
            registry.find({name: 1}, str(tmp_path))
    (tmp_path / "broken.py").write_text("1/0")
    with pytest.raises(UsageError, match="ZeroDivisionError"):
        registry.find({"broken.py:X": 1}, str(tmp_path))
    (tmp_path / "empty.py").write_text("class X: pass")
    with pytest.raises(UsageError, match="no method verify"):
        registry.find({"empty.py:X": 1}, str(tmp_path))


def test_injectors_of_packages(monkeypatch):
    from importlib.metadata import EntryPoint

    points = [
        EntryPoint("echoed", "perflaw.explore.injectors.calls:Command", registry.GROUP),
        EntryPoint("lost", "no_such:X", registry.GROUP),
    ]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points if group == registry.GROUP else [])
    assert registry.find({"echoed": "x"}, ".").name == "command"
    with pytest.raises(UsageError, match="injector 'lost' cannot be loaded"):
        registry.find({"lost": "x"}, ".")
    with pytest.raises(UsageError, match=r"unknown injector 'ehoed': did you mean `echoed`"):
        registry.find({"ehoed": "x"}, ".")


def test_a_verify_that_raises_is_a_reason(tmp_path):
    (tmp_path / "raising.py").write_text(
        "class X:\n def apply(self, *a): pass\n def verify(self, *a): raise RuntimeError('lost')\n"
    )
    how = {"raising.py:X": 1}
    assert "x could not be verified: RuntimeError: lost" in tried(tmp_path, knob(apply=how, verify=how), 5)[0]


def test_the_first_key_names_the_injector():
    assert registry.name_of({"expr": "x", "file": "a", "path": "b"}) == "file"
    assert (
        applying.expected(knob(apply={"arg": "{}", "expr": "x*2"}), {"path": "a"}, 3, Context(".", variables={"x": 3}))
        == 3
    )
