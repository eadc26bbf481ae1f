"""What a run of a compiled program left behind, read: data files matched with their notes, sources with both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from perflaw.collect.gcov_counts import Sums
from perflaw.collect.gcov_files import NotesFinder, Object, Places, read_header
from perflaw.collect.gcov_tool import find_gcov, read_documents
from perflaw.collect.recorded import Counted
from perflaw.errors import TargetError

_SOME: Final = 3
"""Names told of files that something is wrong with."""
_SLACK_S: Final = 1.0
"""A source file that is newer than its notes by no more than this may be of the same build: clocks of file systems."""


@dataclass(slots=True)
class Doubts:
    """Files that something is wrong with, by what is wrong."""

    torn: list[str] = field(default_factory=list)
    """Data files that are none."""
    missing: list[str] = field(default_factory=list)
    """Data files whose notes are not there."""
    stale: list[str] = field(default_factory=list)
    """Data files whose notes are of another build."""
    changed: list[str] = field(default_factory=list)
    """Source files newer than the program."""
    absent: list[str] = field(default_factory=list)
    """Source files that are not there."""

    def told(self) -> str:
        """All of it in words; empty where nothing is wrong."""
        said = [
            _said(self.missing, "not counted for want of notes (--notes DIR says where the .gcno files are)"),
            _said(self.stale, "not counted: its .gcno is of another build than the program"),
            _said(self.torn, "not counted: its .gcda is torn"),
            _said(self.changed, "changed since the program was built: line numbers are those of the build"),
            _said(self.absent, "source not found (--source-map OLD=NEW says where it is)"),
        ]
        return "; ".join(filter(None, said))

    def error(self, places: Places) -> TargetError:
        """Why nothing at all could be read."""
        if self.stale:
            why = "they are of another build than the program: it was compiled again, or they were, and not linked"
            remedy = "make clean && make CFLAGS='-O0 -g --coverage'"
            return TargetError(f"notes of {_named(self.stale)} do not belong to what was counted", why, remedy)
        if self.missing:
            return no_notes(self.missing[0], places)
        return TargetError("the counts cannot be read", f"damaged: {_named(self.torn) or 'gcov says nothing'}", "df -h")


def no_notes(data: str, places: Places) -> TargetError:
    """Notes that are not where they were made."""
    notes = data.removesuffix(".gcda") + ".gcno"
    if places.notes is not None:
        return TargetError(
            f"{Path(notes).name}: not below {places.notes}", "gcc writes it beside the object file", f"ls {notes}"
        )
    why = "the compiler's notes, without which counts have no lines, were removed or moved"
    return TargetError(f"{notes}: no such file", why, "perflaw record --collect lines --notes DIR -- …")


def _said(files: list[str], what: str) -> str:
    return f"{_named(files)}: {what}" if files else ""


def _named(files: list[str]) -> str:
    names = sorted({Path(file).name for file in files})
    more = len(names) - _SOME
    return ", ".join(names[:_SOME]) + (f" and {more} more" if more > 0 else "")


def read_counted(folder: Path, program: Path, places: Places, doubts: Doubts) -> Counted:
    """Everything counted below ``folder``; what is wrong with single files goes to ``doubts``.

    TargetError where nothing is left, or no gcov fits.
    """
    finder = NotesFinder(places, program)
    found = (_object(path, folder, finder, doubts) for path in sorted(folder.rglob("*.gcda")))
    objects = [one for one in found if one]
    sums, built = Sums(places), dict[str, float]()
    for major in sorted({one.major for one in objects}):
        its = [one for one in objects if one.major == major]
        for one, document in read_documents(find_gcov(major), its):
            made = one.notes.stat().st_mtime
            built.update({file: max(made, built.get(file, 0)) for file in sums.add(document)})
    if not built:
        raise doubts.error(places)
    return Counted(sums.counts(), _sources(built, doubts))


def _object(data: Path, folder: Path, finder: NotesFinder, doubts: Doubts) -> Object | None:
    """A data file with its notes; None where they do not come together."""
    header, name = read_header(data), "/" + str(data.relative_to(folder))
    if header is None:
        doubts.torn.append(name)
        return None
    notes, stale = finder.find(name, header.stamp)
    if notes is None or stale:
        (doubts.stale if stale else doubts.missing).append(name)
        return None
    return Object(data, notes, header.major)


def _sources(built: Mapping[str, float], doubts: Doubts) -> dict[str, str]:
    """Texts of the source files; ``built``: when the newest program of each was."""
    texts: dict[str, str] = {}
    for file, made in sorted(built.items()):
        path = Path(file)
        try:
            texts[file] = path.read_bytes().decode(errors="replace")
        except OSError:
            doubts.absent.append(file)
            continue
        if path.stat().st_mtime > made + _SLACK_S:
            doubts.changed.append(file)
    return texts
