"""Features read in C: none of the target's code runs, torn objects do no harm, and nothing is left behind."""

from __future__ import annotations

import array
import collections
import gc
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.native.feature_probe import Both, Inline, Plain, Probe, Slotted, features, of

pytestmark = pytest.mark.interpreter

UNSET = ...  # the probe leaves such a variable NULL
LIMITS = [1, 2, 3]
SCALE = 7

CRIES: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_of_other_tests_dies_in_this_one() -> None:
    """Hostile objects hold themselves: their ``__del__`` would run in whichever test the collector comes by."""
    gc.collect()


SPECIAL = (
    "__len__", "__getattribute__", "__getattr__", "__setattr__", "__hash__", "__eq__", "__ne__", "__lt__", "__bool__",
    "__index__", "__float__", "__int__", "__iter__", "__next__", "__repr__", "__str__", "__contains__",
    "__length_hint__", "__sizeof__", "__getitem__", "__get__", "__set__", "__call__", "__instancecheck__",
    "__subclasscheck__", "__fspath__", "__buffer__", "__array__", "__array_interface__", "__reduce__", "__missing__",
    "__dir__",
)  # fmt: skip


def cry(name: str) -> Any:
    def method(*arguments: object, **named: object) -> Any:
        CRIES.append(name)
        raise RuntimeError(name)

    return method


def hostile_space(*, slots: tuple[str, ...] | None = None) -> dict[str, Any]:
    space: dict[str, Any] = {name: cry(name) for name in SPECIAL}
    for name in ("__class__", "__dict__", "items", "count"):
        space[name] = property(cry(name))
    space["__del__"] = lambda self: CRIES.append("__del__")
    if slots is not None:
        for name in slots:
            space.pop(name, None)
        space["__slots__"] = slots
    return space


class Meta(type):
    """Its classes cry out when they are looked at as objects."""

    __name__ = property(cry("meta __name__"))
    __mro__ = property(cry("meta __mro__"))
    for _name in ("__hash__", "__eq__", "__instancecheck__", "__subclasscheck__", "__getattribute__", "__call__"):
        locals()[_name] = cry("meta " + _name)


def hostile_class(name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Any:
    return Meta(name, bases, space)


class HostileText(str):
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CRIES.append("key __eq__")
        return str.__eq__(self, other)


def hostile_objects() -> Iterator[object]:
    plain = hostile_class("Hostile", (), hostile_space())
    slotted = hostile_class("HostileSlots", (), hostile_space(slots=("items", "count")))
    for kind in (plain, slotted):
        yield object.__new__(kind)
    full, filled = object.__new__(plain), object.__new__(slotted)
    for name, value in (("items_held", [1, 2]), ("count_held", 3), ("me", full)):
        object.__setattr__(full, name, value)
    for name in ("items", "count"):
        type.__getattribute__(slotted, "__dict__")[name].__set__(filled, full)
    yield from (full, filled, plain, slotted, [full], {HostileText("a"): full})
    for base in (list, dict, str, int, float, tuple, bytes, set, collections.deque):
        yield base.__new__(hostile_class("Sub" + base.__name__, (base,), hostile_space()))
    yield array.array.__new__(hostile_class("SubArray", (array.array,), hostile_space()), "d")
    yield object.__new__(hostile_class("SubPath", (type(Path()),), hostile_space()))
    yield np.ndarray.__new__(type("SubTensor", (np.ndarray,), hostile_space()), (2, 3))


def test_hostile_classes_are_called_zero_times() -> None:
    def f(self, *args, hostile_path, **kwargs):
        return self.items, self.count, LIMITS

    CRIES.clear()
    values = list(hostile_objects())
    CRIES.clear()
    reader = Probe(f)
    for _ in range(60):
        for value in values:
            reader.read((value, value, (value,), {"key": value}))
            reader.read((Inline(), value, (), {HostileText("k"): 1, "count": 2}))
    outer = Plain(**{f"a{i}": value for i, value in enumerate(values[:15])})
    for _ in range(60):
        reader.read((outer, values, tuple(values), {}))
    assert CRIES == []


def test_attributes_of_hostile_objects_are_read_all_the_same() -> None:
    plain = hostile_class("Hostile", (), hostile_space() | {"__setattr__": object.__setattr__})
    value = object.__new__(plain)
    object.__setattr__(value, "held", [1, 2])
    assert of(value) == {"x.held.len": 2, "x.held.sum": 3}


def test_names_of_attributes_that_are_no_plain_strings() -> None:
    CRIES.clear()
    odd, outer = Plain(n=1), Plain(n=1)
    odd.__dict__[HostileText("m")] = 2
    outer.__dict__.update({"a b": 1, "": 2, "é": 3, "\udc80": 4, "__hidden__": 5, "x" * 100: 6})
    CRIES.clear()
    assert of(odd) == {} and of(outer) == {"x.n": 1, "x.é": 3}
    assert CRIES == []


def test_classes_that_only_bear_a_name() -> None:
    for name in ("numpy.ndarray", "collections.deque", "array.array", "PosixPath", "ndarray"):
        impostor = type(name, (), {"__slots__": ("a", "b", "c", "d", "e", "f", "g", "h", "i", "_str")})()
        impostor._str, impostor.a = "/etc/passwd/none", 3
        assert set(of(impostor)) <= {"x.a", "x._str.len"}


# ---- torn states ----


def test_half_made_objects() -> None:
    for kind in (Inline, Slotted, Both, Path):
        assert of(object.__new__(kind if kind is not Path else type(Path()))) == {}
    slotted = Slotted()
    del slotted.table, slotted.left
    assert of(slotted) == {"x.right": 10}


def test_unset_variables_and_empty_cells() -> None:
    def f(a: object, b: object) -> object:
        return lambda: (a, never)

    assert features(f, UNSET, 3) == {"b.type": 1, "b": 3}
    if UNSET is None:
        never = 1


def test_cyclic_and_deep_graphs() -> None:
    loop = Plain(n=1)
    loop.me = loop
    assert of(loop) == {"x.n": 1, "x.me.n": 1}
    deep: Any = Plain(n=0)
    for n in range(10000):
        deep = Plain(n=n, below=deep)
    assert of(deep) == {"x.n": 9999, "x.below.n": 9998}
    while deep is not None:  # taken apart from the top: deallocation recurses
        deep = vars(deep).pop("below", None)


def test_a_descriptor_in_a_class_that_it_is_not_of() -> None:
    class Small:
        __slots__ = ()
        stolen = Both.__dict__.get("left") or Slotted.__dict__["left"]

    class Renamed(Slotted):
        __slots__ = ()
        other = Slotted.__dict__["left"]

    assert of(Small()) == {} and of(Renamed())["x.left"] == 2


def test_types_that_take_turns() -> None:
    one = type("One", (), {"__slots__": ("a", "b")})()
    two = type("Two", (), {"__slots__": ("z", "y", "b", "a")})()
    three = Plain(b=3, a=30)
    one.a, one.b, two.a, two.b = 10, 1, 20, 2
    reader = Probe(lambda self: None)
    for _ in range(300):
        for value, b in ((one, 1), (two, 2), (three, 3), (None, None), ([1], None)):
            found = dict(reader.read((value,)))
            assert (found.get("self.b"), found.get("self.a")) == (b, b and 10 * b)


def test_types_that_come_late_are_explored_within_bounds() -> None:
    reader = Probe(lambda self: None)
    for _ in range(50):
        assert dict(reader.read((Plain(a=1),)))["self.a"] == 1
    kinds = [Inline(), Slotted(), Plain(late=4), Both()]
    for turn in range(400):
        found = dict(reader.read((kinds[turn % 4],)))
    assert found["self.more.len"] == 2


def dying(turn: int) -> Any:
    """An instance of a class of its own, with the slot ``n`` at one of three places: slots lie in the order of names."""
    value = type("Dying", (), {"__slots__": (*(("a", "b"), ("a", "y"), ("x", "y"))[turn % 3], "n")})()
    value.n = turn
    return value


def test_classes_that_died_leave_no_guard() -> None:
    """A class at the address of a dead one has its slots elsewhere: they are looked for anew, and no class is kept alive."""
    reader, reused = Probe(lambda self: None), 0
    gc.freeze()
    try:
        for turn in range(60):
            value = dying(turn)
            assert dict(reader.read((value,)))["self.n"] == turn
            place, died = id(type(value)), weakref.ref(type(value))
            del value
            gc.collect()
            assert died() is None
            others: list[Any] = []
            while len(others) < 100 and (not others or id(type(others[-1])) != place):
                others.append(dying(turn + 1))
            reused += id(type(others[-1])) == place
            assert dict(reader.read((others[-1],)))["self.n"] == turn + 1
    finally:
        gc.unfreeze()
    assert reused > 0, "no address was used twice: nothing was tested"


def test_classes_that_change() -> None:
    reader = Probe(lambda self: None)
    value = Inline()
    for turn in range(200):
        Inline.changes = turn
        value.n = turn
        assert dict(reader.read((value,)))["self.n"] == turn
    del Inline.changes


def test_a_pending_exception_stays() -> None:
    def f(self: object, number: object, path: object) -> object:
        return LIMITS

    with pytest.raises(KeyError, match="pending"):
        Probe(f).keeps_error((Inline(), 10**400, Path("a")))


# ---- bounds, and nothing left behind ----


def test_bounds() -> None:
    big = Plain(**{f"a{i}": i for i in range(100)})
    assert len(of(big)) == 16
    nest = Plain(**{f"o{i}": Plain(**{f"a{j}": j for j in range(20)}) for i in range(20)})
    names = [name for name in features(lambda a, b, c: None, nest, nest, big) if not name.endswith(".type")]
    assert len(names) <= 48
    scope: dict[str, Any] = {}
    exec(f"def f({','.join(f'p{i}' for i in range(200))}): pass", scope)
    assert len(features(scope["f"], *range(200))) == 400  # as the twin has it


def test_attributes_that_the_code_names_come_first() -> None:
    big = Plain(**{f"a{i}": i for i in range(100)})
    assert features(lambda self: self.a77, big)["self.a77"] == 77


def everything() -> tuple[Callable[..., object], tuple[object, ...]]:
    table = {1: 2}

    def f(self, other, where_path, values, start, stop, *args, **kwargs):
        return LIMITS, SCALE, table

    values = (Both(), Path("/etc") / "passwd", "/etc/passwd", np.zeros((2, 3)), 2**70, 10.5, ([1], 2), {"k": 3})
    return f, values


def test_references_and_the_collector_are_left_alone() -> None:
    function, arguments = everything()
    watched = [function.__code__, *arguments, *map(type, arguments), LIMITS]
    reader = Probe(function)
    gc.collect()
    gc.disable()
    before = [sys.getrefcount(value) for value in watched]
    try:
        counts = gc.get_count()
        for afresh in (False, True):
            reader.repeat(arguments, 1000, afresh)
        after = gc.get_count()
    finally:
        gc.enable()
    assert after[0] - counts[0] < 10 and after[1:] == counts[1:]
    assert [sys.getrefcount(value) for value in watched] == before


@pytest.mark.parametrize("afresh", [False, True])
def test_nothing_leaks(afresh: bool) -> None:
    function, arguments = everything()
    reader = Probe(function)
    reader.repeat(arguments, 100, afresh)
    held, resident = sys.getallocatedblocks(), resident_bytes()
    tracemalloc.start()
    try:
        reader.repeat(arguments, 1000, afresh)
        before = tracemalloc.get_traced_memory()[0]
        reader.repeat(arguments, 20_000 if afresh else 100_000, afresh)
        assert tracemalloc.get_traced_memory()[0] - before < 1000
    finally:
        tracemalloc.stop()
    assert sys.getallocatedblocks() - held < 100
    assert resident_bytes() - resident < 4 << 20  # what no allocator of Python's sees


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
