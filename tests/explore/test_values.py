"""Quantities: read, and compared with what a target says."""

from hypothesis import given
from hypothesis import strategies as st

from perflaw.explore.values import UNITS, Quantity, host, quantity, same


@given(st.integers(-(2**60), 2**60), st.sampled_from(["B", "s", "Hz", "B/s", ""]))
def test_whole_quantities_round_trip(value, unit):
    assert quantity(f"{value!r}{unit}") == Quantity(value, unit)


@given(st.floats(-1e15, 1e15), st.sampled_from(["B", "s", "Hz", ""]))
def test_others_round_trip_too(value, unit):
    found = quantity(f"{value!r}{unit}")
    assert found.unit == unit
    assert abs(found.value - value) <= 1e-14 * abs(value)


@given(st.integers(0, 10**6), st.sampled_from(sorted(UNITS)))
def test_every_unit_is_read(number, unit):
    factor, base = UNITS[unit]
    found = quantity(f"{number} {unit}")
    assert found.unit == base
    assert abs(found.value - number * factor) <= 1e-12 * number * factor


@given(st.text(max_size=80))
def test_no_text_breaks_it(text):
    quantity(text)
    same(text, text)


def test_what_is_none():
    assert [quantity(text) for text in ("", "fast", "4 KiB 2", "4XB", "nan", "inf", "1e999", "1" * 70, "--1")] == [
        None
    ] * 9


def test_a_target_may_say_it_in_its_own_words():
    assert same(4096, "4096") and same(4096, 4096.0) and same(4096, "4kB") and same(4096, "4KiB")
    assert same(True, "1") and same(True, "on") and same(False, "off") and same(True, 1)
    assert same("on", "1") and same("no", False) and same("WAL", "wal") and same("4", "4.0")


def test_a_setting_that_was_not_taken_is_another_one():
    assert not same(2 * 2**20, "4096")
    assert not same(True, "off") and not same(False, "maybe") and not same(True, "2")
    assert not same("on", "0") and not same("on", "on_demand")
    assert not same("wal", "delete") and not same(0, "") and not same(4096, "4096.1")


def test_the_machine_has_memory_and_processors():
    machine = host()
    assert machine["host.mem"] > 2**20 and machine["host.cpus"] >= 1
