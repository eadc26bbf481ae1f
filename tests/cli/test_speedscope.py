"""The application speedscope itself, from npm, opens what perflaw writes in three formats and shows the same times."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from perflaw.report.quantity import quantity
from perflaw.store.experiment import open_experiment
from perflaw.store.profiles import read_profile
from tests.cli.test_export import PROGRAM
from tests.report.conftest import browser  # noqa: F401 (a fixture)


@pytest.fixture(scope="module")
def application(tmp_path_factory) -> Path:
    """Its page."""
    folder = tmp_path_factory.mktemp("npm")
    command = [
        "npm",
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--prefix",
        str(folder),
        "speedscope@1.25.0",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "node_modules" / "speedscope" / "dist" / "release" / "index.html"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["speedscope", "pprof", "collapsed"])
def test_speedscope_shows_the_times_of_an_export(perflaw, application, browser, tmp_path, form):  # noqa: F811
    (tmp_path / "app.py").write_text(PROGRAM)
    perflaw("record", "--", "app.py")
    name = {"pprof": "p.pb.gz"}.get(form, "p.txt")
    perflaw("export", "--to", form, "-o", name)
    content = base64.b64encode((tmp_path / name).read_bytes()).decode()
    (tmp_path / "load.js").write_text(f'speedscope.loadFileFromBase64("{name}", "{content}")')
    tab = browser.new_page(viewport={"width": 1200, "height": 700})
    tab.goto(f"{application.as_uri()}#localProfilePath={tmp_path / 'load.js'}")
    tab.wait_for_selector("text=Sandwich")
    tab.keyboard.press("3")  # the table of functions
    tab.wait_for_selector("text=app.leaf")
    rows = [line.split("\t") for line in tab.inner_text("body").replace("\n\t", "\t").split("\n") if "\t" in line]
    shown = {row[-1].strip(): row[-2].partition(" ")[0] for row in rows}
    profile = read_profile(open_experiment("default", tmp_path).recordings())
    own = dict(zip([one.name for one in profile.components], profile.function_own["time"].tolist(), strict=True))
    for function in ("app.leaf", "app.f"):
        told = f"{round(own[function]):,}"
        if form != "collapsed":
            unit, factor = ("µs", 1e3) if own[function] < 1e6 else ("ms", 1e6)
            told = f"{own[function] / factor:.2f}{unit}"
        assert shown[function] == told, (shown, quantity(own[function], "ns"))
    tab.close()
