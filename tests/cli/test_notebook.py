"""The notebook of the examples, executed by Jupyter's own client in a kernel of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "tutorial.ipynb"


FAILING = r"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
shell.run_cell("%load_ext perflaw")
for cell in ("%%perflaw\n1 // 0", "%%perflaw\nraise KeyboardInterrupt", "%%perflaw\nif 1 print(2)", "%%perflaw --wrong\n1"):
    print("CELL")
    result = shell.run_cell(cell)
    print("ENDED BY", type(result.error_in_exec).__name__)
shell.run_cell("%%perflaw\nx = 5")
shell.run_cell("print('x is', x)\n1 // 0")
"""


@pytest.mark.slow
def test_a_cell_that_fails_or_is_interrupted_ends_the_run_of_all_cells_and_is_told_once(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FAILING], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    zero, interrupted, syntax, wrong = done.stdout.split("CELL\n")[1:]
    assert "ENDED BY ZeroDivisionError" in zero
    assert zero.count("integer division or modulo by zero") == 1
    assert "magic.py" not in zero
    assert "ENDED BY KeyboardInterrupt" in interrupted
    assert "ENDED BY SyntaxError" in syntax
    told, _, after = wrong.partition("ENDED BY UsageError")
    assert "Traceback" not in told
    assert "there is no such option" in done.stderr + told
    assert "x is 5" in after
    assert after.count("ZeroDivisionError: ") == 1, "cells without the magic show their errors as before"


@pytest.mark.slow
def test_the_tutorial_runs_and_shows_laws(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    shown = [
        {kind: text for output in cell.outputs for kind, text in output.get("data", {}).items()}
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    tree, laws, plot, calls, runs = (shown[place] for place in (2, 4, 5, 6, 7))
    assert "same" in tree["text/html"]
    assert "IPython" not in tree["text/html"]
    assert "<table>" in laws["text/html"]
    assert "n^2" in laws["text/plain"]
    assert "<svg" in plot.get("image/svg+xml", plot.get("text/html", ""))
    assert 0.9 < float(calls["text/plain"]) / 1000**2 < 1.1  # a call of same for each pair
    assert all(str(size) in runs["text/plain"] for size in (40, 60, 90, 130, 200))
