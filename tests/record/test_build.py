"""The native core is built on demand, once; where it cannot be, the reason says what to install."""

import fcntl
import os
import runpy
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from perflaw.errors import TargetError, UsageError
from perflaw.record import build
from perflaw.record.build import BuildError
from perflaw.record.cache import cache_folder, keep, read_kept
from perflaw.record.python.interpreter import Interpreter, probe
from perflaw.record.python.tracers import NativeTracer, PythonTracer
from perflaw.record.tracers import choose, foresee, unfit

pytestmark = pytest.mark.interpreter

EXTENSION = """
#include <Python.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_perflaw_native"};
PyMODINIT_FUNC PyInit__perflaw_native(void) { return PyModule_Create(&definition); }
"""
OURS = probe(sys.executable)


@pytest.fixture
def native(tmp_path, monkeypatch):
    """Small sources in the place of the true ones, and a cache of our own."""
    folder = tmp_path / "native"
    (folder / "python").mkdir(parents=True)
    (folder / "python" / "SOURCES").write_text("# the list\npython/module.c\n")
    (folder / "python" / "module.c").write_text(EXTENSION)
    for room in ("core", "compiled", "meters"):
        (folder / room).mkdir()
        (folder / room / "SOURCES").write_text("tree.c\n")
    (folder / "tree.c").write_text('#include "tree.h"\nint tree(void) { return 1; }\n')
    (folder / "tree.h").write_text("int tree(void);\n")
    monkeypatch.setattr(build, "sources_folder", lambda: folder)
    monkeypatch.setenv("PERFLAW_CACHE", str(tmp_path / "cache"))
    return folder


def a_compiler(folder, text):
    """A compiler of our own."""
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_it_is_built_once(native):
    told = []
    assert build.ready(build.extension(OURS)) is None
    first = build.build(build.extension(OURS), told.append)
    assert first == build.build(build.extension(OURS), told.append) == build.ready(build.extension(OURS))
    assert told[0] == f"building the native core for Python {OURS.short}, once"
    assert told[1].endswith(" s)\n")
    assert len(told) == 2
    assert [path.name for path in first.parent.iterdir()] == [first.name], "nothing is left beside it"
    assert first.name.startswith(f"_perflaw_native-{OURS.version}-")
    assert first.name.endswith(OURS.suffix), "what sitecustomize looks at"


def test_a_library_of_the_wheel_needs_no_compiler(native, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "SHIPPED", tmp_path / "libraries")
    build.ship([sys.executable])
    monkeypatch.setenv("PATH", "")
    assert build.build(build.core()) == build.ready(build.core()) == build.SHIPPED / build.shipped_name(build.core())
    tracer = choose("native", OURS)
    assert tracer.file.parent == build.SHIPPED
    assert not cache_folder().exists(), "nothing was compiled"
    (native / "tree.h").write_text("int tree(void); int leaf(void);\n")
    assert build.ready(build.core()) is None, "it is of other sources"


@pytest.mark.parametrize("changed", ["tree.c", "tree.h", "core/SOURCES"])
def test_a_change_of_the_sources_makes_another_file(native, changed):
    first = build.build(build.core())
    (native / "more.c").write_text("")
    (native / changed).write_text(
        (native / changed).read_text() + ("more.c\n" if changed == "core/SOURCES" else "\n\n")
    )
    second = build.build(build.core())
    assert first != second
    assert first.exists(), "a program may have it mapped"


@pytest.mark.any_python
def test_what_nobody_uses_any_more_is_removed(native):
    old, used = build.build(build.core()), build.build(build.extension(OURS))
    for path in (old, used):
        os.utime(path, (1e9, 1e9))
    build.build(build.extension(OURS))
    (native / "tree.c").write_text('#include "tree.h"\nint tree(void) { return 2; }\n')
    new = build.build(build.core())
    assert sorted(new.parent.iterdir()) == sorted([new, used])


def test_virtual_environments_of_one_python_share_it(native):
    assert build.build(build.extension(OURS)) == build.build(build.extension(replace(OURS, path="/elsewhere/python")))


def test_two_recorders_at_once_compile_once(native, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", a_compiler(tmp_path, f'echo >> {tmp_path}/compiled; sleep 0.2; exec cc "$@"'))
    barrier, built = threading.Barrier(2), []

    def record():
        barrier.wait()
        built.append(build.build(build.core()))

    threads = [threading.Thread(target=record) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 2
    assert len(set(built)) == 1
    assert (tmp_path / "compiled").read_text() == "\n\n", "one file compiled, one library linked"


def refused(product):
    with pytest.raises(build.BuildError) as error:
        build.build(product)
    return error.value


def test_no_compiler(native, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    error = refused(build.core())
    assert "no C compiler found" in error.why
    assert error.next_command == "apt-get install -y gcc libc6-dev"


def test_no_headers(native, tmp_path):
    error = refused(build.extension(replace(OURS, include=str(tmp_path))))
    assert "no Python.h" in error.why
    assert error.next_command == f"apt-get install -y python{OURS.short}-dev"


def test_a_broken_compiler_is_told_and_its_words_are_kept(native, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", a_compiler(tmp_path, "echo 'x.c:1: error: no such thing' >&2; echo more >&2; exit 1"))
    error = refused(build.core())
    assert error.why.startswith("x.c:1: error: no such thing")
    [log] = (tmp_path / "cache").iterdir()
    assert str(log) in error.why
    assert "more" in log.read_text()
    Path(f"{tmp_path}/compiler").write_text("#!/bin/sh\necho again >> compiled\n")
    monkeypatch.setattr(build, "_library_file", lambda product: log.with_suffix(".so"))
    assert str(refused(build.core())) == str(error), "it is not tried again at once"


def test_what_cannot_be_loaded_is_not_kept(native, tmp_path):
    (native / "python" / "module.c").write_text("int nothing;\n")
    assert "PyInit__perflaw_native" in refused(build.extension(OURS)).why
    (native / "tree.c").write_text(
        'int missing(void);\n__attribute__((visibility("default"))) int tree(void) { return missing(); }\n'
    )
    assert "missing" in refused(build.core()).why
    assert not list((tmp_path / "cache").glob("*.so"))


@pytest.mark.any_python
def test_a_cache_that_cannot_be_written(native, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PERFLAW_CACHE", str(tmp_path / "file" / "cache"))
    assert "nowhere to keep it" in refused(build.core()).what


@pytest.mark.any_python
@pytest.mark.parametrize("place", ["cache", "above", "library"])
@pytest.mark.parametrize("how", ["owner", "mode"])
def test_what_another_user_could_have_changed_is_neither_loaded_nor_read(native, tmp_path, monkeypatch, place, how):
    folder = tmp_path / "above" / "cache"
    monkeypatch.setenv("PERFLAW_CACHE", str(folder))
    library = build.build(build.core())
    keep("kept", b"content")
    assert (build.ready(build.core()), read_kept("kept")) == (library, b"content")
    changed = {"cache": folder, "above": folder.parent, "library": library}[place]
    if how == "owner":
        os.chown(changed, 65534, -1)
    else:
        changed.chmod(0o777)
    for use in (build.ready, build.build):
        with pytest.raises(
            BuildError, match=r"another user could have changed it: .*(belongs to user 65534|others may)"
        ):
            use(build.core())
    assert read_kept("kept") == (b"content" if place == "library" else None)
    monkeypatch.setenv("PERFLAW_CACHE", str(tmp_path / "link"))
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(BuildError):
        build.build(build.core())


@pytest.mark.any_python
def test_nothing_new_is_built_where_others_may_write(native, tmp_path, monkeypatch):
    monkeypatch.setenv("PERFLAW_CACHE", str(tmp_path))
    tmp_path.chmod(0o777)
    assert "others may write to" in refused(build.core()).why
    keep("kept", b"content")
    assert not (tmp_path / "kept").exists()


@pytest.mark.any_python
def test_what_a_recorder_left_that_was_killed_while_it_compiled_is_removed(native, tmp_path):
    left, busy = (tmp_path / "cache" / f"building-{name}" for name in ("left", "busy"))
    for folder in (left, busy):
        folder.mkdir(parents=True, mode=0o700)
        os.utime(folder, (0, 0))
    (tmp_path / "cache").chmod(0o700)
    held = os.open(busy, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    build.build(build.core())
    os.close(held)
    assert [path.name for path in (tmp_path / "cache").glob("building-*")] == ["building-busy"]


@pytest.mark.any_python
def test_the_cache_is_where_people_keep_caches(monkeypatch, tmp_path):
    monkeypatch.delenv("PERFLAW_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative, which is to be ignored")
    assert cache_folder() == tmp_path / ".cache" / "perflaw"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "perflaw"


def test_the_native_tracer_is_chosen_where_it_builds(native):
    tracer = choose("auto", OURS)
    assert isinstance(tracer, NativeTracer)
    assert tracer.reason.startswith(("sys.monitoring (Python 3.1", "frame evaluation, PEP 523 (Python 3.11)"))
    assert tracer.file.exists()
    assert tracer.library.exists()
    assert choose("native", OURS) == tracer
    assert foresee(OURS) == ("native", tracer.reason + ", built")


def test_the_pure_python_tracer_stands_in_with_the_reason(native, tmp_path):
    headless = replace(OURS, include=str(tmp_path))
    tracer = choose("auto", headless)
    assert isinstance(tracer, PythonTracer)
    assert "no Python.h" in tracer.reason
    assert f"python{OURS.short}-dev" in tracer.reason
    assert foresee(headless) == ("python", tracer.reason)
    with pytest.raises(TargetError, match=r"no Python\.h"):
        choose("native", headless)


@pytest.mark.parametrize(
    ("version", "suffix", "why"),
    [
        ("3.14.0", ".cpython-314-x86_64-linux-gnu.so", "newer than the native core knows"),
        ("3.13.1", ".cpython-313t-x86_64-linux-gnu.so", "without the global interpreter lock"),
        ("3.12.1", ".cpython-312-darwin.so", "for Linux on x86-64 and aarch64"),
        ("3.12.1", ".cpython-312-i386-linux-gnu.so", "for Linux on x86-64 and aarch64"),
        ("3.11.9", ".cpython-311-aarch64-linux-gnu.so", ""),
        ("3.13.1", ".cpython-313-x86_64-linux-musl.so", ""),
    ],
)
def test_which_pythons_it_is_for(version, suffix, why):
    interpreter = Interpreter("python", "cpython", version, suffix, "")
    assert why in unfit(interpreter)
    assert bool(why) == bool(unfit(interpreter))
    if why:
        assert why in choose("auto", interpreter).reason


def test_wishes():
    assert choose("python", OURS).reason == "asked for by --tracer"
    assert choose("nothing", OURS).name == "nothing"
    with pytest.raises(UsageError, match="there are auto, native, python and nothing"):
        choose("magic", OURS)


@pytest.mark.any_python
def test_every_source_that_is_named_is_there():
    for product in (build.core(), build.extension(OURS)):
        assert product.sources
        assert [path for path in product.sources if not path.is_file()] == []


@pytest.mark.any_python
def test_a_package_carries_the_sources(monkeypatch):
    root = Path(__file__).parents[2]
    tools = SimpleNamespace(setup=lambda **options: None, Distribution=object, build_py=object, bdist_wheel=object)
    for name in ("setuptools", *(f"setuptools.command{end}" for end in ("", ".build_py", ".bdist_wheel"))):
        monkeypatch.setitem(sys.modules, name, tools)  # newer environments have none
    files = set(runpy.run_path(str(root / "setup.py"))["native_files"]())
    for product in (build.core(), build.extension(OURS)):
        assert set(product.sources) <= files
    assert set((root / "native" / "include").rglob("*.h")) <= files


def test_the_users_header_is_no_source_of_ours(native):
    """Who changes perflaw.h builds no library anew."""
    before = build.build(build.core())
    (native / "include").mkdir()
    (native / "include" / "perflaw.h").write_text("")
    assert build.ready(build.core()) == before
