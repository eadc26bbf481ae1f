"""Every verb's ``--help`` has examples, and each of them runs as it stands there, in a folder like a person's project.

Only what names other machines is replaced: addresses, process ids and the port. What goes on until Ctrl-C is sent one.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perflaw.cli.main import VERBS, cli
from tests.conftest import run_perflaw
from tests.record.wire.conftest import TOKEN, make_certificate

PATH = f"{Path(sys.executable).parent}:/usr/bin:/bin"
IN_PROCESSES = ("record", "attach", "mine", "agent", "check", "controller", "stub", "collector", "probes", "show",
                "serve")  # fmt: skip
"""Verbs whose examples start or watch programs, or join several commands; they take seconds."""
DEAR = ("diff", "explore", "import", "pull", "push", "report", "variance")
"""Verbs whose examples take two to ten seconds; pages of the documentation run them, too."""
SERVES = re.compile(r"agent --listen|collector --listen|controller serve|perflaw serve")
ENDLESS = re.compile(r"--watch|probes watch|--attach|perflaw attach")
NEED_A_PROCESS = ("attach", "mine", "check", "controller", "stub", "probes", "collector")
"""Verbs whose examples name a running process."""
NEEDS = {"stub": ("controller", 3), "probes": ("collector", 1)}
"""Verb → the verb that serves it, and how many of its examples start the service."""
JUDGES = ("check", "diff", "laws")
"""Verbs with examples that end with 1 where a law is violated; all others end with 0."""
NOTHING_YET = ("nothing was learnt", "nothing was measured")
"""What commands answer that were interrupted after seconds; docs/mining.md and docs/fleet.md wait for answers."""

APP = """
import sys
import perflaw

@perflaw.law("Norm(1e8 + 1000*n, 1e7)")
def handle(n):
    return sorted(str(i) for i in range(n))

def main(n):
    for _ in range(30):
        handle(n)
        handle(2 * n)

if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
    print("compares:", 17)
"""
SPIN = """
import time

def handle(n):
    return sum(range(n))

while True:
    handle(1000)
    handle(9000)
    time.sleep(0.002)
"""
TIMED = """
import json, sys
print(json.dumps({"seconds": 0.001 * int(sys.argv[1])}))
"""
LOAD = """#!/usr/bin/env python
import sys
from perflaw.probes import LAT_PROBE_BEGIN, LAT_PROBE_END, PERFLAW_PROBE
import time
PERFLAW_PROBE(1, "db.query")
for _ in range(10**6 if "forever" in sys.argv else 400):
    LAT_PROBE_BEGIN(1)
    LAT_PROBE_END(1)
    time.sleep(0.002)
"""
STUDY = """
name: study
target:
  run: python timed.py {args}
  result: {lines: stdout}
knobs:
  n: {type: int, range: [10, 20], default: 10, apply: {arg: "{}"}}
metrics:
  time: {path: seconds, unit: s, goal: min}
policy: random
trials: 2
"""


def examples(verb):
    """The command lines in a verb's help, without the words beside them."""
    text = cli.get_command(cli.make_context("perflaw", [], resilient_parsing=True), verb).help or ""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if re.match(r'(\(umask 077; )?perflaw [a-z-]|eval "\$\(perflaw', line)]
    return [re.sub(r"\s{2,}[\w(].*| {5,}.*", "", line) for line in lines]


def make_project(folder):
    """A project with recordings, laws and files of every kind that the examples name."""
    files = {"app.py": APP, "spin.py": SPIN, "timed.py": TIMED, "load": LOAD, "input.txt": "30", "study.yaml": STUDY}
    for name, text in files.items():
        (folder / name).write_text(text.lstrip())
    (folder / "load").chmod(0o755)
    (folder / "mypackage").mkdir()
    (folder / "mypackage" / "__main__.py").write_text("import app, sys\napp.main(int(open(sys.argv[1]).read()))\n")
    (folder / "workloads.toml").write_text('command = "app.py {n}"\n[vary]\nn = [10, 20]\n[[workload]]\nname = "a"\n')
    (folder / "counted.c").write_text(
        "#include <stdlib.h>\n"
        "int main(int c, char **v) { int s = 0; for (int i = 0; i < atoi(v[1]); i++) s += i; return s < 0; }\n"
    )
    build = ["gcc", "--coverage", "-O0", "counted.c", "-o", "compiled_with_coverage"]
    subprocess.run(build, cwd=folder, check=True)
    spans = [
        {"name": name, "ph": ph, "ts": ts, "pid": 1, "tid": 1}
        for call in range(20)
        for name, ph, ts in (("handle", "B", 100 * call), ("handle", "E", 100 * call + call))
    ]
    import gzip

    (folder / "trace.json.gz").write_bytes(gzip.compress(json.dumps(spans).encode()))
    rows = [(n, 3 * n + n % 7, host) for n in (10, 20, 40, 80, 160, 320) for host in (1, 2)]
    table = "".join(f"{n},{seconds},{host}\n" for n, seconds, host in rows)
    (folder / "times.csv").write_text("n,seconds,host\n" + table)
    (folder / "sizes.csv").write_text("n,rows\n20,5\n60,6\n180,7\n540,9\n")
    (folder / "counts.csv").write_text("feature:n,a:1,b:2\n" + "".join(f"{n},{n},{n * n}\n" for n in range(10, 90, 10)))
    benchmark = {"machine_info": {}, "commit_info": {}, "version": "4.0.0", "datetime": "2026-01-01T00:00:00"}
    one = [{"name": f"b[{n}]", "fullname": f"t.py::b[{n}]", "group": None, "param": str(n), "params": {"n": n},
            "extra_info": {}, "options": {},
            "stats": {"min": n, "max": n, "mean": n, "stddev": 0, "rounds": 1, "median": n, "data": [n * 1e-6]}}
           for n in (10, 20, 40, 80, 160)]  # fmt: skip
    (folder / "benchmark.json").write_text(json.dumps(benchmark | {"benchmarks": one}))
    sizes = "n=20,60,180,540"
    record = ("record", "--metric", "cpu,memory", "--collect", "paths", "--keep-output", "--vary", sizes)
    run_perflaw(folder, *record, "--repeat", 4, "--", "app.py", "{n}")
    for name in ("nightly", "new", "before", "after"):
        shutil.copytree(folder / ".perflaw" / "default", folder / ".perflaw" / name)
    run_perflaw(folder, "record", "-e", "new", "--vary", sizes, "--", "app.py", "{n}")
    for name in ("perf.law", "base.law", "head.law"):
        run_perflaw(folder, "annotate", "-o", name)
    (folder / "spec.yaml").write_text(run_perflaw(folder, "mine", "--export", "yaml").stdout)
    (folder / "token").touch(0o600)
    (folder / "token").write_text(TOKEN)
    for name in ("db1", "agent"):
        make_certificate(folder, name)


@pytest.fixture
def project(made_once, tmp_path):
    return shutil.copytree(made_once("help_project", make_project), tmp_path / "project", symlinks=True)


def test_every_verb_has_an_example():
    assert [verb for verb in VERBS if not examples(verb)] == []


@contextlib.contextmanager
def running(folder, line):
    """A command in a session of its own, which Ctrl-C ends."""
    with (folder / "said").open("a") as said:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {line}"], cwd=folder, env=os.environ | {"PATH": PATH, "PYTHONPATH": str(folder)},
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            try:
                process.wait(40)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=[pytest.mark.slow] * (verb in (*IN_PROCESSES, *DEAR))) for verb in VERBS]
)
def test_the_examples_run(verb, project):
    lines = examples(verb)
    if verb in NEEDS:
        lines = examples(NEEDS[verb][0])[: NEEDS[verb][1]] + lines
    (project / ".config" / "fish" / "completions").mkdir(parents=True)
    env = os.environ | {"PATH": PATH, "PYTHONPATH": str(project), "HOME": str(project)}
    port, said = free_port(), project / "said"
    with contextlib.ExitStack() as stack:
        pid = 0
        if verb in NEED_A_PROCESS:
            program = "load forever" if verb in ("probes", "collector") else "spin.py"
            pid = stack.enter_context(running(project, f"python {project}/{program}")).pid
            time.sleep(0.3)
        for line in lines:
            here = re.sub(r"(0\.0\.0\.0|db1|host):\d+", f"127.0.0.1:{port}", line)
            if verb == "serve":
                port = free_port()
                here = here.replace("perflaw serve", f"perflaw serve --port {port}")
            here = here.replace(" --name fleet.example", "")
            here = re.sub(r"\b(1234|4711|PID)\b", str(pid), here)
            here = re.sub(r'eval "\$\((.* zsh)\)"', r"\1", here)  # this shell is bash
            here = here.replace(" && go tool pprof -top profile.pb.gz", "")  # a tool of Go's reads the file
            if SERVES.search(here):
                server = stack.enter_context(running(project, here))
                wait_for(lambda server=server, port=port: server.poll() is not None or connects(port))
                assert server.poll() is None, said.read_text()
            elif ENDLESS.search(here):
                with running(project, here) as process, contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(4)
                nothing_yet = any(words in said.read_text() for words in NOTHING_YET)
                assert process.returncode in {0, 130} or nothing_yet, said.read_text()
            elif verb in (*IN_PROCESSES, *JUDGES) or re.search(r"[&|>;$]|perflaw (explore|laws)", here):
                done = subprocess.run(
                    ["bash", "-c", here], cwd=project, env=env,
                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                )  # fmt: skip
                nothing_yet = any(words in done.stderr for words in NOTHING_YET)
                assert done.returncode <= (verb in JUDGES) or nothing_yet, f"{here}\n{done.stdout}\n{done.stderr}"
            else:
                words = shlex.split(here)[1:]
                run_perflaw(project, *words)


def wait_for(what, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def connects(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False
