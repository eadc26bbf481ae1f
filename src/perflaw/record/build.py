"""Compiles the native libraries when they are first needed, and keeps them in a cache folder.

A tracer has to fit the target's exact interpreter, so a wheel contains those of a few: what it lacks is compiled. A
library's file name contains a digest of everything that the library depends on: sources, interpreter, compiler and flags.
A change of any of them gives another file, so an existing file is always valid, and no file is overwritten while a
program has it mapped.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import perflaw
from perflaw.errors import PerflawError
from perflaw.record.cache import cache_folder, distrust, make_cache_folder
from perflaw.record.python.interpreter import Interpreter, probe
from perflaw.record.unfinished import is_abandoned

PACKAGE: Final = Path(perflaw.__file__).parent
SHIPPED: Final = PACKAGE / "libraries"
"""Libraries that a wheel contains; a checkout has none."""
FLAGS: Final = (
    "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", "-Werror=implicit-function-declaration",
)  # fmt: skip
RETRY_S: Final = 600
"""A failed compilation is tried again after this time."""
UNUSED_S: Final = 60 * 86400
"""A cached file that no recording has used for this time is removed at the next compilation."""
_CACHED: Final = ("_perflaw_native-*", "libperflaw_*", "dwarf-*", "patches-*")
"""Names of the files in the cache."""
_BUILDING: Final = "building-"
"""Prefix of the folders in which libraries are compiled."""
_LOCKED_S: Final = 5.0
"""Time in which a recorder locks the folder that it has made."""
_LOAD_LIBRARY: Final = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
_LOAD_EXTENSION: Final = (
    "import sys, importlib.util as util;"
    " util.module_from_spec(util.spec_from_file_location('_perflaw_native', sys.argv[1]))"
)

Tell = Callable[[str], object]
"""Receives the parts of one line: what is being compiled and, when it is finished, how long that took."""


class BuildError(PerflawError):
    """A native library cannot be built on this machine; the pure-Python tracer records instead."""


@dataclass(frozen=True, slots=True)
class Product:
    """A shared library that can be built."""

    title: str
    """Its name in messages."""
    name: str
    """Start of its file name, before the digest."""
    suffix: str
    """End of its file name."""
    sources: tuple[Path, ...]
    """Its C files."""
    folders: tuple[Path, ...] = ()
    """Folders of headers: ``native/``, and those of the interpreter."""
    optional: tuple[str, ...] = ()
    """Flags that make it faster and that some compilers lack."""
    interpreter: Interpreter | None = None
    """The only interpreter that it fits, whose headers it includes; None if it includes none."""


def extension(interpreter: Interpreter) -> Product:
    """The tracer that runs in a Python program. ``sitecustomize`` reads the exact Python version from its file name."""
    native, include = sources_folder(), Path(interpreter.include)
    return Product(
        f"the native core for Python {interpreter.short}",
        f"_perflaw_native-{interpreter.version}",
        interpreter.suffix,
        _listed_sources("python"),
        (native, include, include / "internal"),
        interpreter=interpreter,
    )


def core() -> Product:
    """The library of the call tree, which the recorder loads. Hot paths cross files, so link-time optimisation helps."""
    return Product(
        "the native core", "libperflaw_core", ".so", _listed_sources("core"), (sources_folder(),), ("-flto",)
    )


def hooks() -> Product:
    """The library that is preloaded into programs compiled with ``-finstrument-functions``."""
    sources, folders = _listed_sources("compiled"), (sources_folder(),)
    return Product("the hooks for compiled programs", "libperflaw_hooks", ".so", sources, folders, ("-flto",))


def meters() -> Product:
    """The library that is preloaded as well where allocations or locks of compiled programs are counted."""
    return Product(
        "the meters for compiled programs", "libperflaw_meters", ".so", _listed_sources("meters"), (sources_folder(),)
    )


def _listed_sources(room: str) -> tuple[Path, ...]:
    """The C files that ``SOURCES`` in a folder of ``native/`` lists, one a line."""
    native = sources_folder()
    lines = (line.strip() for line in (native / room / "SOURCES").read_text().splitlines())
    return tuple(native / line for line in lines if line and not line.startswith("#"))


def sources_folder() -> Path:
    """``native/``: inside the installed package, or beside ``src/`` in a checkout."""
    installed = PACKAGE / "native"
    return installed if installed.is_dir() else PACKAGE.parents[1] / "native"


def compiler() -> tuple[str, ...]:
    """The command ``$CC`` with its options, else the first C compiler on PATH; empty if there is none."""
    wanted = shlex.split(os.environ.get("CC", ""))
    for command, *options in [wanted] if wanted else [["cc"], ["gcc"], ["clang"]]:
        if path := shutil.which(command):
            return (path, *options)
    return ()


def ready(product: Product) -> Path | None:
    """The built library; None if it is not built yet. This reads all sources, which takes about a millisecond."""
    if library := _shipped(product):
        return library
    library = _library_file(product)
    return library if _is_kept(library) else None


def _shipped(product: Product) -> Path | None:
    """The library in the wheel that perflaw was installed from, if its sources are those that are installed."""
    if not SHIPPED.is_dir():
        return None
    library = SHIPPED / shipped_name(product)
    return library if library.is_file() else None


def shipped_name(product: Product) -> str:
    """The library's file name in a wheel. The compiler and the place of the headers do not count: neither is here."""
    python = product.interpreter
    return _file_name(product, repr((FLAGS, product.optional, (python.version, python.suffix) if python else ())))


def ship(pythons: Sequence[str]) -> None:
    """Compile what a wheel contains: the libraries that fit every Python, and the tracers of ``pythons``.

    The same sources give the same bytes in whatever folder they are.
    """
    SHIPPED.mkdir(exist_ok=True)
    anywhere = f"-ffile-prefix-map={sources_folder()}=native"
    for product in (core(), hooks(), meters(), *(extension(probe(python)) for python in pythons)):
        _compile(replace(product, optional=(*product.optional, anywhere)), SHIPPED / shipped_name(product))


def _is_kept(library: Path) -> bool:
    """Whether the library is in the cache; BuildError if another user could have changed it."""
    try:
        why = distrust(library)
    except OSError:  # it is not there
        return False
    if why:
        problem = f"{library}: not loaded, for another user could have changed it"
        raise BuildError(problem, why, "PERFLAW_CACHE=~/perflaw-cache perflaw …")
    return True


def obstacle(product: Product) -> BuildError | None:
    """Why the library cannot be built, as far as that is known without compiling; None if nothing is known."""
    what = f"{product.title}: cannot be built"
    if not compiler():
        return BuildError(what, "no C compiler found (CC, cc, gcc, clang)", "apt-get install -y gcc libc6-dev")
    if missing := [path for path in product.sources if not path.is_file()]:
        return BuildError(what, f"{missing[0]} is missing", "pip install --force-reinstall perflaw")
    python = product.interpreter
    if python and not Path(python.include, "Python.h").is_file():
        why = f"no Python.h in {python.include} (the headers of Python {python.short} are not installed)"
        return BuildError(what, why, f"apt-get install -y python{python.short}-dev")
    return None


def build(product: Product, tell: Tell = lambda text: None) -> Path:
    """The built library, which is compiled first if need be. BuildError says why that fails and what to install."""
    if library := _shipped(product):
        return library
    library = _library_file(product)
    if _is_kept(library):
        with suppress(OSError):  # the cache may belong to another user
            os.utime(library)
        return library
    if error := obstacle(product):
        raise error
    with _locked(library):
        if _is_kept(library):  # another recorder built it while this one waited
            return library
        log = _log_file(library)
        with suppress(OSError):  # there is no log unless the last compilation failed
            # The same sources fail again at once; after a while the cause may be gone, such as a full disk.
            if time.time() - log.stat().st_mtime < RETRY_S:
                raise _logged_error(product, log)
        tell(f"building {product.title}, once")
        started = time.monotonic()
        try:
            _compile(product, library)
        finally:
            tell(f" ({time.monotonic() - started:.0f} s)\n")
    return library


def _library_file(product: Product) -> Path:
    """The library's place in the cache, with the digest of everything that it depends on.

    The interpreter's path does not count, so virtual environments share one library. The compiler's version is known by its
    file's size and time.
    """
    python, command = product.interpreter, compiler()
    interpreter = (python.version, python.suffix, python.include) if python else ()
    version = ""
    if command:
        file = Path(command[0]).resolve()
        about = file.stat()
        version = f"{command} {file} {about.st_size} {about.st_mtime_ns}"
    return cache_folder() / _file_name(product, repr((FLAGS, product.optional, version, interpreter)))


def _file_name(product: Product, circumstances: str) -> str:
    """The library's file name, with a digest of its sources and of the circumstances that it is compiled in.

    All headers below ``native/`` count as used, except those that programs with probes include.
    """
    native = sources_folder()
    digest = hashlib.sha256(circumstances.encode())
    for path in (*map(str, product.sources), *_headers(str(native))):
        name = path.removeprefix(f"{native}/").encode()
        try:
            with open(path, "rb") as source:  # noqa: PTH123 (a hundred files are read before each recording)
                digest.update(name + source.read())
        except FileNotFoundError:
            digest.update(name)
    return f"{product.name}-{digest.hexdigest()[:16]}{product.suffix}"


def _headers(native: str) -> list[str]:
    """The headers below ``native/`` that programs with probes do not include."""
    folders = (entry for entry in os.walk(native) if not f"{entry[0]}/".startswith(f"{native}/include/"))
    return sorted(f"{folder}/{name}" for folder, _, names in folders for name in names if name.endswith(".h"))


def _log_file(library: Path) -> Path:
    """The file that keeps the compiler's messages if it fails."""
    return library.with_suffix(".log")


def _logged_error(product: Product, log: Path) -> BuildError:
    """The first error in a log, and where the others are. The log's first line is the command that failed."""
    messages = log.read_text().splitlines()[1:]
    lines = [line.strip() for line in messages if "error" in line.lower()] or messages[-1:] or ["no message"]
    return BuildError(f"{product.title}: cannot be built", f"{lines[0]} (all of it: {log})", f"less {log}")


@contextmanager
def _locked(library: Path) -> Iterator[None]:
    """Hold the lock of a library, so that of several recorders only one compiles it."""
    lock = library.with_suffix(".lock")
    try:
        make_cache_folder()
        file = lock.open("wb")
    except OSError as error:
        why = f"{library.parent}: {error.strerror}"
        raise BuildError(
            "the native core: nowhere to keep it", why, "PERFLAW_CACHE=~/perflaw-cache perflaw …"
        ) from error
    with file:
        with suppress(OSError):  # a file system without locks: both compile, and the later rename wins
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _compile(product: Product, library: Path) -> None:
    """Compile in a temporary folder and rename the result, so that ``library`` is complete whenever it exists.

    The result is loaded once where it will be used: a library that does not fit fails here and not in a recorded program.
    Files of the cache that have not been used for long are removed afterwards.
    """
    log = _log_file(library)
    _remove_abandoned(library.parent)
    with tempfile.TemporaryDirectory(prefix=_BUILDING, dir=library.parent) as folder, _held(Path(folder)):
        part = Path(folder) / library.name
        failure = _link(product, [*compiler(), *product.optional], part)
        if failure and product.optional:
            failure = _link(product, compiler(), part)
        if not failure:
            python = product.interpreter.path if product.interpreter else sys.executable
            load = _LOAD_EXTENSION if product.interpreter else _LOAD_LIBRARY
            failure = _run([python, "-I", "-S", "-c", load, str(part)])
        if failure:
            log.write_text(failure)
            raise _logged_error(product, log)
        part.chmod(0o755)  # whatever the umask is
        part.replace(library)
        log.unlink(missing_ok=True)
    for path in [path for pattern in _CACHED for path in library.parent.glob(pattern)]:
        with suppress(OSError):  # another recorder may remove it at the same moment
            if time.time() - path.stat().st_mtime > UNUSED_S:
                path.unlink()


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder, which the system releases when the recorder ends in whatever way."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned(cache: Path) -> None:
    """Remove the folders of recorders that were killed while they compiled."""
    for folder in cache.glob(f"{_BUILDING}*"):
        with suppress(OSError):  # it is removed just now
            if is_abandoned(folder) and time.time() - folder.stat().st_mtime > _LOCKED_S:
                shutil.rmtree(folder, ignore_errors=True)


def _link(product: Product, command: Sequence[str], part: Path) -> str:
    """Compile the sources in parallel and link them to ``part``, with the object files beside it.

    Returns the first command that failed and its messages; empty if none did.
    """
    objects = [str(part.parent / f"{number}.o") for number in range(len(product.sources))]
    head = [*command, *FLAGS, *(f"-I{folder}" for folder in product.folders)]
    commands = [[*head, "-c", str(path), "-o", to] for path, to in zip(product.sources, objects, strict=True)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for failure in pool.map(_run, commands):
            if failure:
                pool.shutdown(cancel_futures=True)
                return failure
    return _run([*command, *FLAGS, "-shared", *objects, "-lm", "-o", str(part)])


def _run(command: Sequence[str]) -> str:
    """Run a command. Returns the command and its messages if it failed; empty if it did not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    except OSError as error:
        return f"{shlex.join(command)}\nerror: {error}\n"
    message = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
    return f"{shlex.join(command)}\n{message}\n" if done.returncode else ""
