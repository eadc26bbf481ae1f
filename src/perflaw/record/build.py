"""Builds the native core on demand, once: what runs in a target must fit its very interpreter, so no wheel can carry it.

The result lies in a cache folder (``$PERFLAW_CACHE``, else ``$XDG_CACHE_HOME/perflaw``, else ``~/.cache/perflaw``) under
a name made of all that it depends on: the sources, the interpreter, the compiler. So a change of any makes another file,
a file once there is right for ever, and an old one is never overwritten while a program has it mapped.
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
from dataclasses import dataclass
from pathlib import Path

import perflaw
from perflaw.errors import PerflawError
from perflaw.record.python.interpreter import Interpreter

# ---- The C compiler: which one there is, and shared libraries made by it.

FLAGS = ("-O2", "-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden")
_COMPILERS = ("cc", "gcc", "clang")


def compiler() -> tuple[str, ...]:
    """``$CC`` with its options, else the first compiler on PATH; empty where there is none."""
    wanted = shlex.split(os.environ.get("CC", ""))
    for head, *options in [wanted] if wanted else [[name] for name in _COMPILERS]:
        if found := shutil.which(head):
            return (found, *options)
    return ()


def state(command: Sequence[str]) -> str:
    """Tells one version of a compiler from another without starting it."""
    if not command:
        return ""
    found = Path(command[0]).resolve()
    about = found.stat()
    return f"{command} {found} {about.st_size} {about.st_mtime_ns}"


def make_shared(command: Sequence[str], sources: Sequence[Path], folders: Sequence[Path], part: Path) -> str:
    """Compile the sources side by side and link them to ``part``, beside which object files are left.

    Gives the first command that failed and its words; empty if none did.
    """
    objects = [str(part.parent / f"{number}.o") for number in range(len(sources))]
    head = [*command, *FLAGS, *(f"-I{path}" for path in folders)]
    commands = [[*head, "-c", str(path), "-o", to] for path, to in zip(sources, objects, strict=True)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for said in pool.map(run, commands):
            if said:
                pool.shutdown(cancel_futures=True)
                return said
    return run([*command, *FLAGS, "-shared", *objects, "-lm", "-o", str(part)])


def run(command: Sequence[str]) -> str:
    """Run a command; it and its words where it failed, empty if it did not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    except OSError as error:
        return f"{shlex.join(command)}\nerror: {error}\n"
    said = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
    return f"{shlex.join(command)}\n{said}\n" if done.returncode else ""


PACKAGE = Path(perflaw.__file__).parent
RETRY_S = 600
"""For so long a refusal of the compiler's is remembered."""
UNUSED_S = 60 * 86400
"""What no recording has used for so long is removed when something else is built."""

Tell = Callable[[str], object]
"""Is told what is being built and, when it is, how long that took: parts of one line."""


class BuildError(PerflawError):
    """The native core cannot be built here; the pure-Python tracer records instead."""


@dataclass(frozen=True, slots=True)
class Product:
    """One shared library that can be built."""

    words: str
    """What a person calls it."""
    name: str
    """Start of its file's name."""
    suffix: str
    """End of its file's name."""
    sources: tuple[Path, ...]
    """Its C files."""
    folders: tuple[Path, ...] = ()
    """Where headers are looked for: ``native/``, and the interpreter's."""
    optional: tuple[str, ...] = ()
    """Flags that make it faster, where the compiler knows them."""
    interpreter: Interpreter | None = None
    """Whose headers it needs, and what it then fits alone."""


def sources_folder() -> Path:
    """``native/``: within the package where it is installed, beside ``src/`` in a checkout."""
    installed = PACKAGE / "native"
    return installed if installed.is_dir() else PACKAGE.parents[1] / "native"


def cache_folder() -> Path:
    """Where built libraries are kept; it need not exist yet."""
    if chosen := os.environ.get("PERFLAW_CACHE"):
        return Path(chosen)
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path("~/.cache").expanduser()) / "perflaw"


def extension(interpreter: Interpreter) -> Product:
    """The tracer that enters a target; its file's name says the exact version that it fits (``sitecustomize`` looks)."""
    native, include = sources_folder(), Path(interpreter.include)
    return Product(
        f"the native core for Python {interpreter.short}",
        f"_perflaw_native-{interpreter.version}",
        interpreter.suffix,
        listed(native, native / "python" / "SOURCES"),
        (native, include, include / "internal"),
        interpreter=interpreter,
    )


def core() -> Product:
    """The call tree's library, which the recorder loads."""
    native = sources_folder()
    sources = listed(native, native / "core" / "SOURCES")
    optional = ("-flto",)  # hot paths cross files
    return Product("the native core", "libperflaw_core", ".so", sources, (native,), optional)


def hooks() -> Product:
    """The library that is preloaded into compiled programs which have the hooks of ``-finstrument-functions``."""
    native = sources_folder()
    sources = listed(native, native / "compiled" / "SOURCES")
    return Product("the hooks for compiled programs", "libperflaw_hooks", ".so", sources, (native,), ("-flto",))


def listed(native: Path, file: Path) -> tuple[Path, ...]:
    """The C files that a ``SOURCES`` file names, one a line."""
    lines = (line.strip() for line in file.read_text().splitlines())
    return tuple(native / line for line in lines if line and not line.startswith("#"))


def ready(product: Product) -> Path | None:
    """The built file, None where it was not built yet. Costs the reading of the sources, about a millisecond."""
    found = _place(product)
    return found if found.exists() else None


def build(product: Product, tell: Tell = lambda text: None) -> Path:
    """The built file, compiled now if it was not yet; BuildError says why it cannot be, and what to install."""
    place = _place(product)
    if place.exists():
        with suppress(OSError):  # a cache that only others may write to
            os.utime(place)
        return place
    if why := obstacle(product):
        raise why
    with _alone(place):
        if not place.exists():  # another recorder may have built it while we waited
            _raise_again(product, place)
            tell(f"building {product.words}, once")
            started = time.monotonic()
            try:
                _compile(product, place)
            finally:
                tell(f" ({time.monotonic() - started:.0f} s)\n")
    return place


def _raise_again(product: Product, place: Path) -> None:
    """What the compiler refused a moment ago it refuses again; a full disk or memory may be another in a while."""
    log = _log(place)
    with suppress(OSError):  # nothing was refused: there is no log
        if time.time() - log.stat().st_mtime < RETRY_S:
            raise _refused(product, log)


def obstacle(product: Product) -> BuildError | None:
    """What stands in the way of building, as far as can be told without trying."""
    what = f"{product.words}: cannot be built"
    if not compiler():
        return BuildError(what, "no C compiler found (CC, cc, gcc, clang)", "apt-get install -y gcc libc6-dev")
    if missing := [path for path in product.sources if not path.is_file()]:
        return BuildError(what, f"{missing[0]} is missing", "pip install --force-reinstall perflaw")
    for_whom = product.interpreter
    if for_whom and not Path(for_whom.include, "Python.h").is_file():
        why = f"no Python.h in {for_whom.include} (the headers of Python {for_whom.short} are not installed)"
        return BuildError(what, why, f"apt-get install -y python{for_whom.short}-dev")
    return None


def _place(product: Product) -> Path:
    return cache_folder() / f"{product.name}-{_key(product)}{product.suffix}"


def _key(product: Product) -> str:
    """Hash of everything that the file depends on: our headers may all be meant."""
    who = product.interpreter
    fits = (who.version, who.suffix, who.include) if who else ()  # not its path: virtual environments share
    digest = hashlib.sha256(repr((FLAGS, product.optional, state(compiler()), fits)).encode())
    users = sources_folder() / "include"  # what programs with probes include: no library of ours does
    headers = sorted(path for path in sources_folder().rglob("*.h") if users not in path.parents)
    for path in (*product.sources, *headers):
        digest.update(path.name.encode() + (path.read_bytes() if path.is_file() else b""))
    return digest.hexdigest()[:16]


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Hold the lock of this file, so that two recorders do not both compile; a file system without locks does not matter."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = place.with_suffix(".lock").open("wb")
    except OSError as error:
        why = f"{place.parent}: {error.strerror}"
        raise BuildError("the native core: nowhere to keep it", why, "PERFLAW_CACHE=/tmp/perflaw perflaw …") from error
    with lock:
        with suppress(OSError):  # a file system without locks: both compile, and the later rename wins
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            place.with_suffix(".lock").unlink(missing_ok=True)


def _compile(product: Product, place: Path) -> None:
    """Compile to a name of our own, then give the file its name: it is there whole or not at all."""
    log = _log(place)
    with tempfile.TemporaryDirectory(prefix="building-", dir=place.parent) as folder:
        part = Path(folder) / place.name
        for optional in dict.fromkeys((product.optional, ())):
            if not (said := make_shared([*compiler(), *optional], product.sources, product.folders, part)):
                break
        said = said or _trouble(product, part)
        if said:
            log.write_text(said)
            raise _refused(product, log)
        part.replace(place)
        log.unlink(missing_ok=True)
    _forget_unused(place.parent)


def _forget_unused(cache: Path) -> None:
    """Remove what no recording has used for long: of older sources, interpreters that are gone."""
    patterns = ("_perflaw_native-*", "libperflaw_*", "dwarf-*")
    for path in [path for pattern in patterns for path in cache.glob(pattern)]:
        with suppress(OSError):  # another recorder may remove it at the same moment
            if time.time() - path.stat().st_mtime > UNUSED_S:
                path.unlink()


def _log(place: Path) -> Path:
    """Where the compiler's words are kept, in full."""
    return place.with_suffix(".log")


def _refused(product: Product, log: Path) -> BuildError:
    """The first of the errors, and where the others are."""
    said = log.read_text().splitlines()[1:]
    lines = [line.strip() for line in said if "error" in line.lower()] or said[-1:] or ["no message"]
    return BuildError(f"{product.words}: cannot be built", f"{lines[0]} (all of it: {log})", f"less {log}")


def _trouble(product: Product, part: Path) -> str:
    """Load it once where it will be loaded: what does not fit is found now, not within a target. Empty if it does."""
    python = product.interpreter.path if product.interpreter else sys.executable
    load = _LOAD_EXTENSION if product.interpreter else _LOAD_LIBRARY
    return run([python, "-I", "-S", "-c", load, str(part)])


_LOAD_LIBRARY = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
_LOAD_EXTENSION = (
    "import sys, importlib.util as util;"
    " util.module_from_spec(util.spec_from_file_location('_perflaw_native', sys.argv[1]))"
)
