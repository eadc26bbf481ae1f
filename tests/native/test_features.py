"""Features read in C: what is read of which values, the same by exploring calls and by the finished program."""

from __future__ import annotations

import array
import collections
import dataclasses
import math
import sys
from pathlib import Path, PurePosixPath
from types import CellType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.native.feature_probe import Both, Inline, Plain, Probe, Slotted, features, of

pytestmark = pytest.mark.interpreter

TARGET = Path(__file__).parents[2] / "src" / "perflaw" / "record" / "python" / "target"

LIMITS = [1, 2, 3]
SCALE = 7
NOTHING = None


def test_numbers() -> None:
    assert [of(value) for value in (3, -2.5, True, 2**70)] == [{"x": 3}, {"x": -2.5}, {"x": 1}, {"x": 2.0**70}]
    assert [of(value) for value in (math.inf, math.nan, 2**1024, -(10**400), None, 1j)] == [{}] * 6


def test_integers_at_the_end_of_the_floats() -> None:
    largest = int(sys.float_info.max)
    for value in (largest, largest - 1, 2**1023, 2**1023 - 1, 2**1020 + 1, 2**1024 - 2**972):
        assert of(value) == {"x": float(value)} and of(-value) == {"x": -float(value)}
    for value in (largest + 1, 2**1024 - 2**970 - 1, 2**1024, 2**1050):
        assert of(value) == of(-value) == {}


def test_lengths() -> None:
    values: list[Any] = [
        "",
        "é€",
        b"ab",
        bytearray(b"abc"),
        {1: 2},
        {1, 2},
        frozenset([1]),
        range(3, 90, 2),
        ["a"],
        ("a", "b"),
    ]
    assert [of(value) for value in values] == [{"x.len": len(value)} for value in values]
    assert of(collections.deque("abcd", 3)) == {"x.len": 3}
    assert of(collections.defaultdict(list, a=[1], b=[])) == {"x.len": 2}
    assert of(collections.OrderedDict(a=1, b=2, c=3)) == {"x.len": 3}
    assert of(collections.Counter("banana")) == {"x.len": 3}
    assert of(array.array("d", [1, 2])) == {"x.len": 2, "x.nbytes": 16}
    assert of(memoryview(b"12345678").cast("I")) == {"x.len": 2, "x.nbytes": 8}
    assert of(range(10**30)) == {}


def test_a_released_view_has_no_size() -> None:
    view = memoryview(bytearray(8))
    below = memoryview(view)
    view.release()
    assert of(view) == {} and of(below) == {"x.len": 8, "x.nbytes": 8}


def test_sums_of_short_sequences_of_numbers() -> None:
    assert of([1, 2.5]) == {"x.len": 2, "x.sum": 3.5}
    assert of(tuple(range(64))) == {"x.len": 64, "x.sum": 2016}
    for items in ([], list(range(65)), [1, "a"], [True, 2], [1e308, 1e308], [10**400]):
        assert of(items) == {"x.len": len(items)}
    reader = Probe(lambda x: None)
    assert [dict(reader.read((items,))).get("x.sum") for items in ([], [1], [])] == [None, 1, 0]


@pytest.mark.parametrize("kind", ["f8", "u1", "m8[s]", "O", "U5", [("a", "i4"), ("b", "f8")]])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 3, 4, 5, 1)])
def test_numpy_arrays(kind: Any, shape: tuple[int, ...]) -> None:
    value = np.zeros(shape, kind)
    extents = {f"x.shape[{axis}]": extent for axis, extent in enumerate(shape[:4])}
    assert of(value) == {**extents, "x.size": value.size, "x.nbytes": value.nbytes}
    assert of(value[..., ::-1] if shape else value)["x.nbytes"] == value.nbytes


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "é").mkdir()
    (tmp_path / "é" / "data").write_bytes(bytes(1234))
    monkeypatch.chdir(tmp_path)
    shown = Path("é/data")
    assert str(shown)
    joined = [Path("é", "data"), Path("é") / "data", tmp_path / "é" / "data", Path("/tmp", tmp_path, "é//data/")]
    for path in (shown, PurePosixPath("é/data"), *joined):
        assert of(path) == {"x.bytes": 1234}
    assert [of(path) for path in (Path("é"), Path("none"), Path(), Path("\0"), Path("a" * 5000))] == [{}] * 5
    text = str(tmp_path / "é" / "data")
    assert features(lambda in_path, other: None, text, text)["in_path.bytes"] == 1234
    assert "other.bytes" not in features(lambda in_path, other: None, text, text)
    assert "file.bytes" not in features(lambda file: None, str(tmp_path))


def test_attributes_of_every_layout() -> None:
    inline = {"x.items.len": 3, "x.items.sum": 60, "x.n": 5, "x.name.len": 3}
    slots = {"x.left": 2, "x.right": 10, "x.table.len": 1, "x.right-x.left": 8}
    both = {**slots, "x.more.len": 2, "x.more.sum": 3.5}
    materialised, dynamic = Inline(), Plain(**vars(Inline()))
    assert vars(materialised)["n"] == 5
    assert of(Inline()) == of(materialised) == of(dynamic) == inline
    assert of(Slotted()) == slots and of(Both()) == both
    assert of(SimpleNamespace(n=1)) == {}  # a type of C: no class statement's layout


def test_attributes_of_exceptions_and_of_subclasses_of_built_in_types() -> None:
    class TroubleError(Exception):
        pass

    class Items(list):
        pass

    trouble, items = TroubleError(), Items([1, 2])
    trouble.count, items.count_of = 3, 4
    assert of(trouble) == {"x.count": 3} and of(items) in ({"x.count_of": 4}, {})  # its length is not ours to know


def test_a_counter_of_the_program_runs_none_of_its_code() -> None:
    class Counter(dict):
        def __len__(self) -> int:
            raise AssertionError

    assert of(Counter(a=1, b=2)) == {"x.len": 2}
    assert of(type("Counter", (), {})()) == {}


Point = collections.namedtuple("Point", "width height")


class Part(NamedTuple):
    rows: int
    items: list[int]


class Named(Part):
    """A class of named tuples below another one."""


def test_fields_of_named_tuples() -> None:
    assert of(Point(3, 4)) == {"x.width": 3, "x.height": 4}
    assert of(Part(2, [5])) == of(Named(2, [5])) == {"x.rows": 2, "x.items.len": 1, "x.items.sum": 5}
    assert of(Plain(point=Point(3, "a"), n=1)) == {"x.n": 1, "x.point.width": 3, "x.point.height.len": 1}
    assert of(tuple.__new__(Point, (6,))) == {"x.width": 6}  # shorter than its class says
    reader = Probe(lambda x: None)
    turns = [Point(1, 2), Plain(width=7, height=8), Part(3, []), Point(5, 6)]
    found = [{k: v for k, v in reader.read((one,)) if k != "x.type"} for one in turns]
    assert found == [
        {"x.width": 1, "x.height": 2},
        {"x.width": 7, "x.height": 8},
        {"x.rows": 3, "x.items.len": 0},
        {"x.width": 5, "x.height": 6},
    ]


def test_named_tuples_run_none_of_the_programs_code() -> None:
    class Odd(tuple):
        _fields = ("n", 3, "absent", "n")

        @property
        def n(self) -> int:
            raise AssertionError

    assert of(Odd((1, 2))) == {"x.n": 1}
    assert of(type("Wrong", (tuple,), {"_fields": ["n"]})((1,))) == {}


def test_fields_of_data_classes() -> None:
    for options in ({}, {"frozen": True}, {"slots": True}, {"frozen": True, "slots": True}):
        made = dataclasses.make_dataclass("Made", [("depth", int), ("items", list)], **options)
        assert of(made(3, [1, 2])) == {"x.depth": 3, "x.items.len": 2, "x.items.sum": 3}


def test_items_of_dictionaries_that_the_code_names() -> None:
    def f(options: dict[str, object], other: dict[object, object], self: Plain) -> object:
        return options["limit"], options.get("ratio", 1), options["name"], other["limit"], self.settings["limit"], "x-y"

    settings = {"limit": 9, "ratio": 0.5, "name": "abc", "unnamed": 7, "x-y": 1}
    found = features(f, settings, {"limit": 4, 1: 2}, Plain(settings=settings))
    assert {name: value for name, value in found.items() if not name.endswith(".type")} == {
        "options.len": 5, "options.limit": 9, "options.ratio": 0.5, "other.len": 2,
        "self.settings.len": 5, "self.settings.limit": 9, "self.settings.ratio": 0.5,
    }  # fmt: skip


def test_attributes_to_depth_two() -> None:
    inner = Plain(size=4, deeper=Plain(unseen=1))
    assert of(Plain(config=inner, n=1)) == {"x.n": 1, "x.config.size": 4}


def test_attributes_that_read_like_measures() -> None:
    found = features(lambda self, **keys: None, Plain(type=3, len=4), {"type": 5, "len": 6})
    assert (found["self.type"], found["self.type.value"], found["self.len.value"]) == (1, 3, 4)
    assert (found["keys.len"], found["keys.type.value"], found["keys.len.value"]) == (2, 5, 6)


def test_replaced_dictionaries_and_classes() -> None:
    one, other = Inline(), Inline()
    one.__dict__ = {"n": 8}
    other.__class__ = type("Other", (Inline,), {})
    assert of(one) == {"x.n": 8} and of(other)["x.n"] == 5
    one.__dict__ = collections.OrderedDict(n=9)  # no exact dictionary
    assert of(one) == {}


def test_keyword_arguments() -> None:
    found = features(lambda *many, **named: None, (1, 2), {"a": 1, "b": "no", "c": 2.5})
    assert {name: value for name, value in found.items() if not name.endswith(".type")} == {
        "many.len": 2, "many.sum": 3, "named.len": 3, "named.a": 1, "named.c": 2.5,
    }  # fmt: skip
    assert len(features(lambda **named: None, {f"k{i}": i for i in range(50)})) == 2 + 8


@pytest.mark.parametrize(
    ("low", "high"),
    [("begin", "end"), ("start", "stop"), ("start", "end"), ("lo", "hi"), ("first", "last"), ("min_x", "max_x"),
     ("row_left", "row_right"), ("i", "j"), ("low", "high")],
)  # fmt: skip
def test_differences(low: str, high: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def f({high}, {low}): pass", scope)
    assert features(scope["f"], 10, 4)[f"{high}-{low}"] == 6
    assert of(Plain(**{low: 1.5, high: 2}))[f"x.{high}-x.{low}"] == 0.5
    assert f"{high}-{low}" not in features(scope["f"], "ten", 4)


def test_no_differences_of_what_does_not_belong_together() -> None:
    found = features(lambda start_x, end_y, end, hi, self: None, 1, 2, 3, 4, Plain(start=1))
    assert not [name for name in found if "-" in name]


def test_globals_that_the_code_names() -> None:
    def f() -> object:
        return LIMITS, SCALE, NOTHING, sys, np, Plain, of, len, sys.path, ABSENT  # noqa: F821 (what is absent must do no harm)

    assert features(f) == {"globals.LIMITS.len": 3, "globals.LIMITS.sum": 6, "globals.SCALE": 7}


def test_globals_far_down_the_code() -> None:
    names = [f"g{i}" for i in range(400)]
    scope: dict[str, Any] = {"g399": "abc"}
    exec(f"def f():\n return lambda: 0\n {','.join(names)}\ndef h(): {','.join(names)}", scope)
    assert features(scope["f"]) == {} or features(scope["f"]) == {"globals.g399.len": 3}  # behind a return
    assert features(scope["h"]) == {"globals.g399.len": 3}


def test_cells_that_the_code_names() -> None:
    table, count, unnamed, later = {1: 2}, 3, [1], None

    def f(a: object) -> object:
        return lambda: (a, table, count, later, missing)

    assert features(f, [1], cells=True) == features(f, [1]) == {
        "a.type": 1, "a.len": 1, "a.sum": 1, "closure.table.len": 1, "closure.count": 3,
    }  # fmt: skip
    if unnamed is None:
        missing = 1


def test_an_argument_that_is_a_cell() -> None:
    assert of(CellType(3)) == {}


class Definitions:
    """In place of the twin's spool."""

    def define(self, *fields: object) -> None: ...


numbers = st.integers() | st.floats() | st.booleans() | st.integers(-(2**1030), 2**1030)
counts = st.dictionaries(st.text(), st.integers())
collected = st.one_of(
    counts.map(collections.OrderedDict),
    counts.map(lambda items: collections.defaultdict(int, items)),
    counts.map(collections.Counter),
    st.lists(st.none()).map(collections.deque),
)
containers = (
    collected
    | st.lists(st.integers())
    | st.text()
    | st.binary()
    | st.dictionaries(st.text(), st.integers())
    | st.none()
)


@given(st.lists(numbers | containers, min_size=4, max_size=4))
@settings(deadline=None, max_examples=examples(200))
def test_the_twin_reads_the_same(arguments: list[object]) -> None:
    sys.path.insert(0, str(TARGET))
    try:
        from _perflaw_functions import Functions, TracedFunction
    finally:
        sys.path.remove(str(TARGET))

    def f(a, b, *c, d): ...

    functions = Functions(Definitions(), {})
    values = dict(zip(("a", "b", "d", "c"), arguments, strict=True))
    read = dict(functions.read(TracedFunction(f.__code__, "f", 1, True, functions.costs), values))
    names = {number: name for (_, name), number in functions.features.items()}
    twin = {names[number]: value for number, value in read.items()}
    mine = features(f, *arguments)
    assert {name: value for name, value in mine.items() if name.count(".sum") == 0} == twin
