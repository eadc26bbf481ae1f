"""The files of gcc's coverage: counts that a run wrote (``.gcda``) and notes that the compiler wrote (``.gcno``).

Both begin with a magic number, the version of gcc (``B22*``: 12.2) and the stamp of the compilation, 4 bytes each in the
byte order of the machine. Counts belong only to notes of equal stamp. gcc's ``gcov`` reads them; it has to fit the
compiler.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Any, Final

from perflaw.errors import TargetError, UsageError
from perflaw.record.compiled.elf import is_elf, libraries

LAUNCHERS: Final = ("sh", "bash", "dash", "zsh", "env", "timeout", "nice", "setsid", "stdbuf", "xargs", "make", "ninja")
"""Programs that are not counted themselves and start programs that are."""
_LIBGCOV: Final = (b"libgcov profiling error", b"profiling:%s:")
"""Texts of which every version of libgcov contains one."""
_MAPPING: Final = b"__llvm_covmap\0"
"""Name of the section in which clang's own coverage maps counters to the source."""
_CLANG: Final = b"llvm_gcda_"
"""Text that the coverage of clang contains."""
_DATA_NAME: Final = re.compile(rb"(/[^\0\n]{1,4096}?\.gcda)\0")
"""Name of a data file, as an object file contains it."""


@dataclass(frozen=True, slots=True)
class CountedProgram:
    """A program whose executions can be counted."""

    path: Path
    """Its file."""
    data: tuple[str, ...]
    """Data files that it will write when it ends; empty if only the programs that it starts will."""


def counted_program(path: Path) -> CountedProgram:
    """The program at ``path``; TargetError if it is compiled and contains no coverage of gcc's.

    ``--coverage`` links libgcov into the program, and each object file contains the name of its data file. Both are found
    as bytes, so a stripped program is recognised too. Scripts, shells and the like may start programs with coverage, so
    they are accepted.
    """
    if not is_elf(path) or path.name in LAUNCHERS:
        return CountedProgram(path, ())
    data = _data_files(path)
    if data is None:
        linked = [names for library in libraries(path) if (names := _data_files(library)) is not None]
        if not linked:
            why = "it was compiled without --coverage (gcc's -fprofile-arcs -ftest-coverage), so it counts nothing"
            raise TargetError(
                f"{path}: no execution counts in it", why, "make clean && make CFLAGS='-O0 -g --coverage'"
            )
        data = set().union(*linked)
    return CountedProgram(path, tuple(sorted(data)))


def mapped_objects(path: Path) -> tuple[Path, ...]:
    """The program and its own libraries, those that were built with clang's source-based coverage."""
    if not is_elf(path) or path.name in LAUNCHERS:
        return ()
    content = path.read_bytes()
    if any(words in content for words in _LIBGCOV):
        return ()  # gcc's
    program = (path,) if _MAPPING in content else ()
    return (*program, *(library for library in libraries(path) if _MAPPING in library.read_bytes()))


def _data_files(path: Path) -> set[str] | None:
    """Names of the data files that this program or library writes itself; None if it contains no libgcov."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(_CLANG) >= 0:
                why = "with --coverage clang writes counts for which there is no reader; its own coverage is read"
                flags = "-g -fprofile-instr-generate -fcoverage-mapping"
                raise TargetError(f"{path}: compiled by clang", why, f"make clean && make CFLAGS='{flags}'")
            if not any(content.find(words) >= 0 for words in _LIBGCOV):
                return None
            return {match[1].decode(errors="surrogateescape") for match in _DATA_NAME.finditer(content)}
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return None


_PRODUCER: Final = re.compile(rb"GNU (?:C|C\+\+)\d\d [\d.]+ [^\0]*?(-O(?:[1-3sgz]|fast)?)(?= |\0)(?![^\0]* -O)")
"""Debug information of an object file of gcc's, with the level of its optimisation; ``-O0`` is not found."""
_FRAME: Final = b"\x55\x48\x89\xe5"
"""How functions that gcc compiled for x86-64 without optimisation keep their frame: push rbp; mov rbp, rsp."""
_X86_64: Final = b"\x3e\x00"
"""Machine in the header of an ELF file, at ``_MACHINE``."""
_MACHINE: Final = slice(18, 20)


def optimisation(path: Path) -> str:
    """How a program was optimised: ``-O2``, or ``optimisation``; empty if it was not, or if nothing tells.

    Debug information tells. Without it, a program for x86-64 in which no function keeps its frame was optimised.
    """
    try:
        content = path.read_bytes()
    except OSError:  # only a warning depends on it; that the program cannot be read is said where it is started
        return ""
    if b".debug_str\0" in content and b"GNU C" in content:
        found = _PRODUCER.search(content)
        return found[1].decode() if found else ""
    return "optimisation" if content[_MACHINE] == _X86_64 and _FRAME not in content else ""


_DATA, _NOTES = 0x67636461, 0x67636E6F
"""``gcda`` and ``gcno``."""
_HEADER: Final = struct.Struct("=III")
"""Magic number, version and stamp."""


@dataclass(frozen=True, slots=True)
class CoverageHeader:
    """Beginning of a coverage file."""

    version: str
    """``B22*``."""
    stamp: int
    """Distinguishes one compilation from another."""

    @property
    def major(self) -> int:
        """Major version of gcc; 0 if it is older than 5 or not gcc (clang writes 4.08).

        >>> CoverageHeader("B22*", 0).major, CoverageHeader("A93*", 0).major, CoverageHeader("408*", 0).major
        (12, 9, 0)
        """
        first, second = self.version[0], self.version[1]
        return 10 * (ord(first) - ord("A")) + int(second) if "A" <= first <= "Z" and "0" <= second <= "9" else 0


def read_header(path: Path) -> CoverageHeader | None:
    """The beginning of a file; None if it is no coverage file, or torn."""
    try:
        with path.open("rb") as file:
            magic, version, stamp = _HEADER.unpack(file.read(_HEADER.size))
    except (OSError, struct.error):  # a process that still runs may replace it or write to it: there is nothing to read
        return None
    if magic not in (_DATA, _NOTES):
        return None
    return CoverageHeader(version.to_bytes(4, "big").decode("latin-1"), stamp)


@dataclass(frozen=True, slots=True)
class BuildPlaces:
    """Present places of files that were built elsewhere or moved since."""

    maps: tuple[tuple[str, str], ...] = ()
    """Folder at the time of the build → present folder (``--source-map``)."""
    notes: Path | None = None
    """Folder of notes (``--notes``)."""

    def now(self, path: str) -> str:
        """Present place of a file of the build: the longest mapped folder decides."""
        for old, new in sorted(self.maps, key=lambda pair: -len(pair[0])):
            if path == old or path.startswith(old.rstrip("/") + "/"):
                return os.path.normpath(new + "/" + path[len(old) :])
        return path


def build_places(notes: str | None, maps: Iterable[str]) -> BuildPlaces:
    """The options ``--notes DIR`` and ``--source-map OLD=NEW``; UsageError if they make no sense."""
    if notes is not None and not Path(notes).is_dir():
        raise UsageError(f"--notes {notes}: no such folder", "it is where the .gcno files are now", f"ls {notes}")
    pairs = []
    for text in maps:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            example = "perflaw record --collect lines --source-map /build/app=. -- ./app"
            why = "OLD=NEW is expected: a folder of the build, and where it is now"
            raise UsageError(f"--source-map {text}", why, example)
        pairs.append((os.path.normpath(old), str(Path(new).absolute())))
    return BuildPlaces(tuple(pairs), Path(notes) if notes is not None else None)


class NotesFinder:
    """Finds the notes that belong to counts: at their original or mapped place, beside the program, or in a folder."""

    def __init__(self, places: BuildPlaces, program: Path) -> None:
        self.places = places
        self.beside = program.parent
        """Notes may have been moved together with the program."""
        self._index: dict[str, list[Path]] | None = None

    def find(self, data: str, stamp: int | None) -> tuple[Path | None, bool]:
        """Notes for the data file of that original path, and whether they are of another build (no stamp: any will do)."""
        stale = None
        name = data.removesuffix(".gcda") + ".gcno"
        if "#" in Path(name).name:  # with -fprofile-dir the name is the path, mangled
            name = Path(name).name.replace("#", "/")
        if self.places.notes is None:
            usual = [Path(name), Path(self.places.now(name)), self.beside / Path(name).name]
            likely = list(dict.fromkeys(usual))
        else:
            if self._index is None:
                self._index = {}
                for each in sorted(self.places.notes.rglob("*.gcno")):
                    self._index.setdefault(each.name, []).append(each)
            same = self._index.get(Path(name).name, [])

            def common_parts(path: Path) -> int:
                """Number of last parts that the path has in common with the name."""
                pairs = list(zip(reversed(path.absolute().parts), reversed(PurePath(name).parts), strict=False))
                return next((count for count, (mine, its) in enumerate(pairs) if mine != its), len(pairs))

            likely = sorted(same, key=common_parts, reverse=True)
        for path in likely:
            header = read_header(path)
            if header and (stamp is None or header.stamp == stamp):
                return path, False
            stale = stale or (path if header else None)
        return stale, stale is not None


@dataclass(frozen=True, slots=True)
class CountedObject:
    """The counts of one object file and the notes that explain them."""

    data: Path
    """Its ``.gcda`` in the run's spool."""
    notes: Path
    """Its ``.gcno``."""
    major: int
    """Major version of the gcc that compiled it."""


# ---- Files that functions include. gcov tells the function of a line only if the function begins in the line's file: the
# counts of a file that is included within several functions of an object file are one number for all of them. The notes
# say which functions have lines of which files, and gcov counts some functions alone if notes and counts hold no others.

_FUNCTION, _LINES, _COUNTERS = 0x01000000, 0x01450000, (0x01A10000, 0x01FF0000)
"""Tags of records: a function, lines of one of its blocks, first and last tag of counters."""
_BYTES_SINCE: Final = 12
"""The first gcc that counts lengths of records and texts in bytes, and has a checksum in the header."""


@dataclass(frozen=True, slots=True)
class NotedFunction:
    """A function in the notes of an object file."""

    ident: int
    """Its number, which counts refer to."""
    name: str
    """Its name as the linker knows it."""
    included: dict[str, frozenset[int]]
    """Other file than that in which it begins → lines of it in the function; empty for functions of the compiler's own."""


def noted_functions(notes: Path, major: int) -> list[NotedFunction]:
    """The functions of an object file; none if its notes cannot be read."""
    content = notes.read_bytes()
    functions: dict[int, tuple[str, str, bool]] = {}
    lines: dict[int, dict[str, set[int]]] = {}
    ident = 0
    try:
        for tag, start, _ in _records(content, major, is_notes=True):
            if tag == _FUNCTION:
                ident = _word(content, start)
                name, at = _text(content, start + 12, major)
                source, _ = _text(content, at + 4, major)
                functions[ident] = name, source, _word(content, at) != 0
            elif tag == _LINES:
                file, at = "", start + 4
                while True:
                    line, at = _word(content, at), at + 4
                    if line:
                        lines.setdefault(ident, {}).setdefault(file, set()).add(line)
                        continue
                    file, at = _text(content, at, major)
                    if not file:
                        break
    except (struct.error, ValueError):
        return []
    return [
        NotedFunction(
            ident,
            name,
            {file: frozenset(numbers) for file, numbers in lines.get(ident, {}).items() if file != source and not own},
        )
        for ident, (name, source, own) in functions.items()
    ]


def apart(functions: Iterable[NotedFunction]) -> list[list[NotedFunction]]:
    """Functions with included files in groups, in which no two functions include lines of one file."""
    groups: list[tuple[set[str], list[NotedFunction]]] = []
    for function in functions:
        files = set(function.included)
        if not files:
            continue
        for known, members in groups:
            if not known & files:
                known |= files
                members.append(function)
                break
        else:
            groups.append((files, [function]))
    return [members for _, members in groups]


def alone(each: CountedObject, group: Iterable[NotedFunction], stem: Path) -> CountedObject:
    """Counts and notes of these functions of an object file alone, written to ``stem`` with the suffixes of both."""
    idents = {function.ident for function in group}
    kept = CountedObject(stem.with_suffix(".gcda"), stem.with_suffix(".gcno"), each.major)
    for source, target in ((each.data, kept.data), (each.notes, kept.notes)):
        content, is_notes, keeps = source.read_bytes(), source == each.notes, True
        records = list(_records(content, each.major, is_notes=is_notes))
        begin = records[0][1] - 8 if records else len(content)
        parts = [content[:begin]]
        for tag, start, end in records:
            if tag == _FUNCTION:
                keeps = _word(content, start) in idents
            of_program = not is_notes and tag != _FUNCTION and not _COUNTERS[0] <= tag <= _COUNTERS[1]
            if keeps or of_program:
                parts.append(content[start - 8 : end])
        target.write_bytes(b"".join(parts) + (b"" if is_notes else bytes(4)))
    return kept


def _records(content: bytes, major: int, *, is_notes: bool) -> Iterator[tuple[int, int, int]]:
    """Tag, and begin and end of the content, of each record of a coverage file."""
    unit = 1 if major >= _BYTES_SINCE else 4
    at = _HEADER.size + 4 * (major >= _BYTES_SINCE)
    if is_notes:  # the folder of the compilation, and whether blocks may be unexecuted
        _, at = _text(content, at, major)
        at += 4
    while at + 8 <= len(content):
        tag, length = struct.unpack_from("=Ii", content, at)
        if not tag:
            return
        end = at + 8 + unit * max(length, 0)  # counters that are all 0 have a negative length, and no content
        yield tag, at + 8, end
        at = end


def _word(content: bytes, at: int) -> int:
    return int(struct.unpack_from("=I", content, at)[0])


def _text(content: bytes, at: int, major: int) -> tuple[str, int]:
    """A text, and where it ends."""
    end = at + 4 + _word(content, at) * (1 if major >= _BYTES_SINCE else 4)
    if end > len(content):
        raise ValueError("a text ends beyond its file")
    return content[at + 4 : end].rstrip(b"\0").decode(errors="surrogateescape"), end


OLDEST: Final = 9
"""The first gcc whose gcov writes JSON."""
_BATCH: Final = 64
"""Maximum number of object files for one call of gcov."""
_VERSION: Final = re.compile(r"(\d+)\.\d+(?:\.\d+)?\s*$")
"""Version at the end of the first line that gcov --version prints."""


@dataclass(frozen=True, slots=True)
class Gcov:
    """An installed gcov."""

    path: str
    """Its executable."""
    major: int
    """Major version of its gcc."""


@cache
def find_gcov(major: int) -> Gcov:
    """The gcov for counts of that gcc: ``$GCOV``, ``gcov-12``, then ``gcov``. TargetError if none fits."""
    if major < OLDEST:
        why = f"gcc {major}" if major else "clang, or a gcc before 5"
        message = f"compiled by {why}: its counts cannot be read"
        raise TargetError(message, f"gcc {OLDEST} and newer write them as JSON", "gcc --version")
    seen = []
    for name in filter(None, (os.environ.get("GCOV"), f"gcov-{major}", "gcov")):
        path = shutil.which(name)
        version = _major_of(path) if path else 0
        if path and version == major:
            return Gcov(path, version)
        seen += [f"{path} is of gcc {version}"] * bool(version)
    why = "; ".join(seen) or "no gcov is on PATH"
    message = f"gcov of gcc {major}: not found"
    raise TargetError(message, f"the program was compiled by gcc {major}, and {why}", f"sudo apt install gcc-{major}")


def installed_gcov() -> Gcov | None:
    """The gcov that is tried first for programs of this machine's gcc; None if there is none that writes JSON."""
    for path in filter(None, map(shutil.which, filter(None, (os.environ.get("GCOV"), "gcov")))):
        if (major := _major_of(path)) >= OLDEST:
            return Gcov(path, major)
    return None


def _major_of(path: str) -> int:
    """Major version of a gcov; 0 if it is none (llvm-cov answers otherwise)."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    first = answer.stdout.partition("\n")[0]
    match = _VERSION.search(first)
    return int(match[1]) if match and first.startswith("gcov") else 0


def read_documents(gcov: Gcov, objects: Sequence[CountedObject]) -> Iterator[tuple[CountedObject, dict[str, Any]]]:
    """Gcov's JSON document of each object file that it can read. TargetError if gcov itself fails.

    gcov needs counts and notes side by side under one name: they are linked into a temporary folder, to which nothing is
    written, so several recorders can do so at once.
    """
    with tempfile.TemporaryDirectory(prefix="perflaw-gcov-") as folder:
        for number, each in enumerate(objects):
            (Path(folder) / f"{number}.gcda").symlink_to(each.data.resolve())
            (Path(folder) / f"{number}.gcno").symlink_to(each.notes.resolve())
        known = {str(number): each for number, each in enumerate(objects)}
        names = [f"{number}.gcda" for number in range(len(objects))]
        batches = [names[at : at + _BATCH] for at in range(0, len(names), _BATCH)]
        for text in _run_batches(gcov, folder, batches):
            for document in _documents(gcov, text):
                name = Path(str(document.get("data_file", ""))).stem
                if name in known and document.get("files"):
                    yield known[name], document


def _run_batches(gcov: Gcov, folder: str, batches: Sequence[Sequence[str]]) -> Iterator[bytes]:
    """What gcov prints for each batch of data files; several batches are read at once."""
    if len(batches) < 2:
        yield from (_run(gcov, folder, batch) for batch in batches)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(batches), os.cpu_count() or 1)) as pool:
        yield from pool.map(lambda batch: _run(gcov, folder, batch), batches)


def _run(gcov: Gcov, folder: str, names: Sequence[str]) -> bytes:
    """What gcov prints for these data files of a folder. TargetError if it fails."""
    command = [gcov.path, "--json-format", "--branch-probabilities", "--stdout", *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    if done.returncode and not done.stdout:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"exit status {done.returncode}"
        raise TargetError(f"{gcov.path}: failed", why, "gcov --version")
    return done.stdout


def _documents(gcov: Gcov, text: bytes) -> Iterator[dict[str, Any]]:
    """The documents in what gcov printed, one a line. TargetError if a line is no JSON."""
    for line in text.splitlines():
        try:
            document = json.loads(line)
        except ValueError as error:
            raise TargetError(f"{gcov.path}: its answer is no JSON", str(error), "gcov --version") from error
        if isinstance(document, dict):
            yield document
