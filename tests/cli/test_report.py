"""`perflaw report --check` and `--diff`: verdicts on the page, and files that hold none."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.conftest import Run, first

VERDICT = {"component": "app.f", "metric": "time", "path": "", "verdict": "violated", "p": 0.001, "effect": 1.8,
           "effect_low": 1.6, "effect_high": 2.1}  # fmt: skip


@pytest.fixture
def experiment(perflaw: Run, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import sys\ndef f(n): return sum(range(n))\nf(int(sys.argv[1]))\n")
    perflaw("record", "--vary", "n=10,100", "--", "app.py", "{n}")


def data_of(page: Path) -> Any:
    return json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])


@pytest.mark.usefixtures("experiment")
@pytest.mark.parametrize("verb", ["check", "diff"])
def test_verdicts_are_embedded(perflaw: Run, tmp_path: Path, verb: str) -> None:
    (tmp_path / "verdicts.json").write_text(json.dumps({"schema": f"perflaw.{verb}/1", "verdicts": [VERDICT]}))
    perflaw("report", f"--{verb}", "verdicts.json")
    shown = data_of(tmp_path / "report.html")["outcomes"]
    assert (shown["verb"], shown["rows"][0]["text"]) == (verb, "1.8x (1.6–2.1)")
    assert shown["rows"][0]["index"] is not None


@pytest.mark.usefixtures("experiment")
@pytest.mark.parametrize(
    ("text", "told"),
    first(
        2,
        [
            ("", "not JSON"),
            ("[" * 100_000, "not JSON"),
            ("[]", "schema is None"),
            ('{"schema": "perflaw.annotate/1"}', "perflaw.annotate/1"),
            ('{"schema": "perflaw.check/1", "verdicts": [{"component": "f", "verdict": "fine"}]}', "damaged"),
            ('{"schema": "perflaw.check/1", "verdicts": 5}', "damaged"),
        ],
    ),
)
def test_what_holds_no_verdicts_is_told(perflaw: Run, tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    done = perflaw("report", "--check", "bad.json", status=2)
    assert told in done.stderr
    assert "perflaw check" in done.stderr
    assert not (tmp_path / "report.html").exists()


def test_a_missing_file_and_both_at_once_are_told(perflaw: Run, tmp_path: Path) -> None:
    assert "gone.json" in perflaw("report", "--diff", "gone.json", status=2).stderr
    assert "one of them" in perflaw("report", "--diff", "a.json", "--check", "b.json", status=2).stderr


@pytest.mark.usefixtures("experiment")
def test_plots_are_svg_and_png_on_white(perflaw: Run, tmp_path: Path) -> None:
    done = perflaw("report", "--plots", "plots")
    names = sorted(path.stem for path in (tmp_path / "plots").glob("*.svg"))
    assert names == ["law_functions", "profile_flame_graph"], "runs of one size have no law"
    assert "wrote 2 plots to plots" in done.stdout
    assert "law_…" in done.stdout
    assert names == sorted(path.stem for path in (tmp_path / "plots").glob("*.png"))
    for name in names:
        drawn = ElementTree.parse(tmp_path / "plots" / f"{name}.svg").getroot()
        assert drawn.tag.endswith("}svg")
        assert any(drawn.itertext())
        content = (tmp_path / "plots" / f"{name}.png").read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", content[16:24])
        assert [str(width // 2), str(height // 2)] == drawn.get("viewBox", "").split()[2:]
        assert len(content) > 2000  # with its words: without fonts it is half as long
    (tmp_path / "file").touch()
    assert "file: cannot be written" in perflaw("report", "--plots", "file", status=2).stderr
