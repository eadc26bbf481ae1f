"""The notebook of the examples, executed by Jupyter's own client in a kernel of its own."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "tutorial.ipynb"


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
