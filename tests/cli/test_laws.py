"""Laws written beside functions: at no cost there, and collected as a ``.law`` file."""

import subprocess
import sys

import pytest

from perflaw import law
from perflaw.decorator import ATTRIBUTE
from perflaw.laws.reading import parse

APP = """
import functools
from perflaw import law

print("a module that speaks")

@law("Norm(50*src.len, 0.2*src.len)", unit="us")
def parse(src):
    return src.split()

class Store:
    @law("Exp(8)", metric="cpu")
    @law("[n > 3] Exp(3)")
    @law("[n <= 3] {{0.5} Exp(3); {0.5} Norm(3, 1)};")
    @classmethod
    def find(cls, n): ...

    @staticmethod
    @law("Exp(1)")
    def make(x, *rest, **more): ...

    @property
    @law("Exp(2)")
    def size(self): ...

    @functools.cached_property
    @law("Exp(3)")
    def total(self): ...

    class Inner:
        @law("Exp(4)")
        def deep(self): ...

def twice(function):
    @functools.wraps(function)
    def around(*arguments):
        return function(*arguments), function(*arguments)
    return around

@twice
@law("Exp(5)")
def wrapped(a): ...

again = wrapped
"""
EXPECTED = {
    "app.parse.time": ("src",),
    "app.Store.find.cpu": ("cls", "n"),
    "app.Store.find.time": ("cls", "n"),
    "app.Store.make.time": ("x", "rest", "more"),
    "app.Store.size.time": ("self",),
    "app.Store.total.time": ("self",),
    "app.Store.Inner.deep.time": ("self",),
    "app.wrapped.time": ("a",),
}


@pytest.fixture
def app(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    return tmp_path / "app.py"


@pytest.mark.parametrize("name", ["app", "app.py"])
def test_all_laws_of_a_module(app, perflaw, name):
    done = perflaw("laws", name)
    blocks = parse(done.stdout).blocks
    assert {f"{block.component}.{block.metric}": block.parameters for block in blocks} == EXPECTED
    assert blocks[0].unit == "us"
    assert [len(block.clauses) for block in blocks if block.component == "app.Store.find"] == [1, 2]
    assert "a module that speaks" in done.stderr


def test_a_package_with_its_modules(app, tmp_path, perflaw):
    inner = tmp_path / "package" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").write_text("from package.inner.work import work\n")
    (tmp_path / "package" / "__main__.py").write_text("raise SystemExit('ran')\n")
    (inner / "__init__.py").touch()
    (inner / "work.py").write_text("from perflaw import law\n@law('Exp(n)')\ndef work(n): ...\n")
    assert perflaw("laws", "package").stdout == "package.inner.work.work.time(n) {\n  Exp(n);\n}\n"


@pytest.mark.parametrize(
    ("source", "name", "says"),
    [
        (None, "app", "no module 'app'"),
        (None, "app.py", "app.py: no such file"),
        ("import missing_one", "app", "app: no module 'missing_one'"),
        ("1 / 0", "app", "app cannot be imported: ZeroDivisionError: division by zero"),
        ("def f(:", "app", "SyntaxError"),
        ("raise SystemExit(0)", "app", "SystemExit"),
        ("x = 1", "app", "no laws in app"),
        ("from perflaw import law\n\n@law('Nrm(3, 4)')\ndef f(): ...", "app", "app.py:3:1: @law of app.f: "),
        ("from perflaw import law\n\n@law('Exp(3) }')\ndef f(): ...", "app", "app.py:3:1: @law of app.f: "),
        ("from perflaw import law\n@law('Exp(3) } g.time() { Exp(4)')\ndef f(): ...", "app", "app.py:2"),
        ("from perflaw import law\n@law('Exp(3)', unit='us')\n@law('Exp(4)')\ndef f(): ...", "app", "different units"),
        ("from perflaw import law\n@law('Exp(3)', unit='hours')\ndef f(): ...", "app", "app.py:2"),
        ("from perflaw import law\n@law('')\ndef f(): ...", "app", "app.py:2"),
    ],
)
def test_what_cannot_be_collected(tmp_path, perflaw, source, name, says):
    if source is not None:
        (tmp_path / "app.py").write_text(source)
    done = perflaw("laws", name, status=2)
    assert says in done.stderr
    assert done.stdout == ""


def test_the_decorator_gives_the_function_back():
    def plain(n):
        return n

    assert law("Exp(n)")(plain) is plain
    assert plain.__dict__.keys() == {ATTRIBUTE}
    assert plain(3) == 3


def test_laws_of_a_subclass_are_its_own():
    @law("Exp(1)")
    class Base:
        pass

    @law("Exp(2)")
    class Derived(Base):
        pass

    assert [one.text for one in getattr(Derived, ATTRIBUTE)] == ["Exp(2)"]


def test_what_takes_no_law():
    with pytest.raises(TypeError, match="takes no attributes"):
        law("Exp(1)")(len)
    with pytest.raises(TypeError, match="a law is a text"):
        law(len)


def test_a_program_in_production_imports_nothing_but_what_it_calls():
    code = "from perflaw import law, listen; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {name for name in loaded if name.startswith("perflaw")} == {
        "perflaw",
        "perflaw.decorator",
        "perflaw.listening",
    }
    assert not loaded & {"numpy", "click", "socket", "threading"}
