"""What runs while a library is imported belongs to the import; what a library does when it is called is recorded."""

import pytest

from tests.conftest import costs_of

pytestmark = pytest.mark.interpreter

LIBRARY = """
import library_part

def tiny(x):
    return x

class Defined:
    value = tiny(1)

def outer(n):
    for i in range(n):
        tiny(i)

def call(function):
    return function(2)

def import_lazily():
    import library_late
    return library_late.late()

outer(100)
import mine_plugin
"""
PART = """
def prepared(n):
    return n

PREPARED = [prepared(n) for n in range(50)]
"""
LATE = """
def helper():
    return 7

VALUE = helper()

def late():
    return helper()
"""
PLUGIN = """
def register(n):
    return n

REGISTERED = register(1)
"""
MINE = """
from library import call, outer, tiny

outer(3)

class Mine:
    value = tiny(4)

def set_up():
    outer(5)

set_up()
"""
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import library, mine

class InMain:
    library.outer(10)

def back(n):
    library.outer(n)

library.outer(20)
library.call(back)
library.import_lazily()
"""


@pytest.fixture
def found(recorded, tmp_path, request):
    """Calls of each function of the program, by tracer."""
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    for name, text in (("library", LIBRARY), ("library_part", PART), ("library_late", LATE)):
        (folder / f"{name}.py").write_text(text)
    for name, text in (("mine_plugin", PLUGIN), ("mine", MINE), ("app", PROGRAM)):
        (tmp_path / f"{name}.py").write_text(text)
    [recording] = recorded("--clock", "fake", "--tracer", request.param, "--", tmp_path / "app.py", folder)
    tables = recording.tables()
    names = {row[0]: row[1] for row in tables["components"]}
    nodes = {row[0]: (names.get(row[2], ""), row[1]) for row in tables["calltree"]}
    callers = {(nodes[parent][0] if parent in nodes else "", name) for name, parent in nodes.values()}
    return {name: row[0] for name, row in costs_of(recording).items()}, callers


@pytest.mark.parametrize("found", ["native", "python"], indirect=True)
def test_an_import_is_one_context(found):
    calls, callers = found
    # the program, a function of its own that a library calls, one's own import, and a lazy one
    assert calls["library.outer"] == 5
    assert calls["library.tiny"] == 20 + 2 + 5 + 1
    assert calls["library.<module>"] == calls["library_late.<module>"] == 1
    assert calls["library_late.late"] == calls["library_late.helper"] == 1
    assert calls["library.call"] == calls["library.import_lazily"] == 1
    assert not {"library_part.<module>", "library_part.prepared", "library.Defined"} & calls.keys()
    # one's own code is recorded wherever it runs
    assert (
        calls["mine_plugin.<module>"]
        == calls["mine_plugin.register"]
        == calls["mine.set_up"]
        == calls["mine.Mine"]
        == 1
    )
    assert ("library.<module>", "mine_plugin.<module>") in callers
    assert ("mine.<module>", "library.outer") in callers
    assert ("app.InMain", "library.outer") in callers
    assert ("library.import_lazily", "library_late.<module>") in callers
    assert ("library.call", "app.back") in callers


@pytest.mark.parametrize("tracer", ["native", "python"])
def test_own_leaves_out_what_is_in_no_package_named(recorded, tmp_path, tracer):
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "named.py").write_text("import other\n\ndef call(n):\n    return other.helped(n)\n")
    (folder / "other.py").write_text("def helped(n):\n    return n\n")
    (tmp_path / "app.py").write_text(
        f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport named\n\nnamed.call(3)\n"
    )
    for own, expected in (("named", {"app.<module>", "named.<module>", "named.call"}), ("", {"app.<module>"})):
        options = ("--clock", "fake", "--tracer", tracer, "--own", own)
        [recording] = recorded(*options, "--", tmp_path / "app.py", experiment=f"own-{own}")
        assert costs_of(recording).keys() == expected


FROZEN = """
import abc, os

class Shape(abc.ABC):
    pass

def look(n):
    for i in range(n):
        os.path.exists("/")
        isinstance(i, Shape)
    return os.environ["HOME"]

look(20)
"""


@pytest.mark.parametrize("tracer", ["native", "python"])
def test_library_modules_that_the_interpreter_keeps_frozen_are_recorded(recorded, tmp_path, tracer):
    (tmp_path / "app.py").write_text(FROZEN)
    [recording] = recorded("--clock", "fake", "--tracer", tracer, "--", tmp_path / "app.py")
    calls = {name: row[0] for name, row in costs_of(recording).items()}
    assert calls["genericpath.exists"] == calls["abc.ABCMeta.__instancecheck__"] == 20
    assert calls["os._Environ.__getitem__"] == 1
    assert not [name for name in calls if name.startswith(("importlib._bootstrap", "runpy", "site."))]
