"""Specifications as ``mine`` prints them: an export, a document, or a table with the command that refines it."""

from __future__ import annotations

import re
import shlex
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perflaw.api.mining import MinedSpecs


def specs_text(mined: MinedSpecs, export: str | None, as_json: bool, every: bool, experiment: str = "") -> str:
    """What is printed of specifications: an export, the JSON document, or the table, with ``every`` function in it."""
    if export in ("yaml", "evidence"):
        from perflaw.specs.files import spec_yaml

        return spec_yaml(mined.reviewable(), evidence=False) if export == "yaml" else spec_yaml(mined.file)
    if export == "pytest":
        from perflaw.report.mine.exports import mine_pytest

        return mine_pytest(mined.reviewable(), experiment)
    if export == "prometheus":
        from perflaw.report.mine.exports import mine_prometheus

        return mine_prometheus(mined.file)
    from perflaw.types.documents import dumps

    if export == "otlp":
        from perflaw.report.mine.exports import mine_otlp

        return dumps(mine_otlp(mined.file)) + "\n"
    from perflaw.report.documents import mine_document

    document = mine_document(mined.file, mined.steps)
    if as_json:
        return dumps(document) + "\n"
    from perflaw.report.mine.text import merge_text, mine_text

    colour = sys.stdout.isatty()
    merges = merge_text(document, colour)
    return merges + "\n" * bool(merges) + mine_text(document, colour, every)


def refine_text(mined: MinedSpecs, experiment: str) -> str:
    """The command that records alone the functions that recording the calls within them distorted; empty for none.

    It is one line, to be run where the program was recorded.
    """
    from perflaw.learn.paths.borders import PERTURBED
    from perflaw.mine.journal import read_journal
    from perflaw.report.tables import paragraph

    names = [one.spec.component for one in mined.file.specs if any(n.startswith(PERTURBED) for n in one.spec.notes)]
    if not names or not mined.recordings:
        return ""
    run, folder = mined.recordings[-1].run, mined.recordings[-1].folder.parents[1]
    if run.id in {entry.get("run") for entry in read_journal(folder)}:
        return ""  # of a program that runs: the loop measures such functions alone by itself
    verb = "are" if len(names) > 1 else "is"
    if run.lost.unselected_functions and {one.component for one in mined.observed} <= {*names}:
        sentence = (
            f"{', '.join(names)} {verb} distorted by hooks of functions that are not recorded, which could not be taken out of "
            "the running code; build the program without -finstrument-functions, and record it with the same command"
        )
        return f"\n{paragraph(sentence)}"
    # An interpreter is chosen by perflaw; a program is named as it was.
    start = run.command.index(run.target) if run.target in run.command else 0
    runs = len({one.run.id for one in mined.recordings if not one.run.parent})
    words = ["perflaw", "record", "-e", f"{experiment}-alone", "--collect", "paths"]
    for name in names:
        words += ["--select", re.sub(r"([*?[])", r"[\1]", name)]
    words += ["--repeat", str(runs), "--", *run.command[start:]]
    what = f"{len(names)} function{'s' * (len(names) > 1)} {verb} distorted by recording the calls within"
    sentence = paragraph(f"{what}; record {'them' if len(names) > 1 else 'it'} alone:")
    return f"\n{sentence}{shlex.join(words)}\n"
