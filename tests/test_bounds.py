"""Files that are too large, too deep or have too many digits are refused before anything is built of them."""

from __future__ import annotations

import gzip
import json
import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.bounds import MAX_DEPTH, MAX_DIGITS, check_depth, read_json, unpack_gzip
from perflaw.documents import DocumentSource, json_document, toml_document, yaml_document
from perflaw.errors import DataError, UsageError
from perflaw.imports.registry import read_trace
from perflaw.imports.uftrace import Tasks, parse_dump
from perflaw.record.compiled.gcov_files import read_header


def otlp(line: str = "3", stamp: str = '"2"') -> str:
    attributes = f'[{{"key": "code.lineno", "value": {{"intValue": {line}}}}}]'
    span = (
        f'{{"name": "f", "spanId": "1", "startTimeUnixNano": "1", "endTimeUnixNano": {stamp}, '
        f'"attributes": {attributes}}}'
    )
    return f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{span}]}}]}}]}}'


@pytest.mark.parametrize("line", ['"1e99999999"', '"-5"', f'"{"9" * 300}"', '"1e300"', '"1e-99999999"', '"nan"', "{}"])
def test_a_line_that_cannot_be_is_none(tmp_path, line):
    (tmp_path / "trace.json").write_text(otlp(line))
    [process] = read_trace(tmp_path / "trace.json").processes
    assert {component.line for component in process.definitions.components.values()} == {0}


@pytest.mark.parametrize("text", [otlp("1e99999999"), otlp(stamp="1e99999999"), otlp("9" * 5000), otlp("[" * 50000)])
def test_numbers_and_lists_beyond_the_bounds_are_refused(tmp_path, text):
    (tmp_path / "trace.json").write_text(text)
    with pytest.raises(DataError, match=r"not readable as JSON: (a number has more|its lists and mappings)"):
        read_trace(tmp_path / "trace.json")


def test_a_gzip_bomb_takes_the_memory_that_is_allowed_and_no_more():
    bomb = gzip.compress(b" " * (1 << 26)) * 96  # 6 GiB, in many members
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="larger than the 16 MiB that are read"):
            unpack_gzip(bomb, 1 << 24)
        assert tracemalloc.get_traced_memory()[1] < 3 << 24
    finally:
        tracemalloc.stop()


def test_members_are_joined_and_damage_is_told():
    whole = gzip.compress(b"one ") + gzip.compress(b"two")
    assert unpack_gzip(whole) == unpack_gzip(whole + b"\0" * 99) == b"one two"
    for wrong in (whole[:-9], whole[:30] + b"\xff" * 30, whole + b"x"):
        with pytest.raises(ValueError, match=r"incorrect|invalid|middle"):
            unpack_gzip(wrong)
    with pytest.raises(ValueError, match="larger"):
        unpack_gzip(whole, 6)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**MAX_DIGITS) + 1, 10**MAX_DIGITS - 1) | st.text() | st.floats(-1, 1),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(VALUES, st.integers(0, 2 * MAX_DEPTH))
def test_what_is_within_the_bounds_is_read_as_always(value, depth):
    text = "[" * depth + json.dumps(value) + "]" * depth
    levels = depth_of(value) + depth
    if levels <= MAX_DEPTH:
        assert read_json(text) == json.loads(text)
    else:
        with pytest.raises(ValueError, match="deep"):
            read_json(text)


def depth_of(value: object) -> int:
    if not isinstance(value, list | dict):
        return 0
    return 1 + max((depth_of(one) for one in (value.values() if isinstance(value, dict) else value)), default=0)


def test_strings_that_never_end_are_looked_at_once():
    check_depth('"' + "[" * 1000 + '\\"' * 500_000)


SOURCE = DocumentSource("study.yaml")
ODD = (
    "1__0",
    "0x_",
    "_1",
    "!!int ''",
    "!!float ''",
    "!!int x",
    "!!bool y",
    "._",
    "9" * 5000,
    "0x" + "f" * 5000,
    ".inf",
)


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("form", ["n: {}", "n: [{}]", "{}: 1", "- {}"])
def test_odd_scalars_of_yaml_are_values_or_refused(text, form):
    try:
        yaml_document(form.format(text), SOURCE)
    except UsageError as error:
        assert str(error).startswith("study.yaml")


DEEP = ("[" * 100_000, "{a: " * 5000, "- " * 5000, '{"a":' * 5000, "a: " + "[" * 5000, "a: &a [*a]", "\0", "\ud800")


@pytest.mark.parametrize("read", [yaml_document, toml_document, json_document])
@pytest.mark.parametrize("text", DEEP)
def test_deep_and_endless_documents_are_refused(read, text):
    with pytest.raises(UsageError, match=r"study\.yaml"):
        read(text, SOURCE)


def test_a_deep_list_in_toml_is_refused():
    with pytest.raises(UsageError, match="100 deep"):
        toml_document("a = " + "[" * 5000 + "]" * 5000, SOURCE)


@pytest.mark.parametrize(
    "line",
    [
        f"{'9' * 5000}.000000001  1: [entry] f(40) depth: 1",
        f"1.000000001  {'9' * 5000}: [entry] f(40) depth: 1",
        f"1.000000001  1: [entry] f(40) depth: {'9' * 5000}",
        f"  args[{'9' * 5000}] d32: 1",
        f"  args[0] d32: {'9' * 5000}",
        "  args[0] d32: seven",
        "  args[0] d32: 0x",
        "  args[0] d0: 1",
        "  args[0] d32: 1_0_",
        "٣.٠٠٠٠٠٠٠٠١  1: [entry] f(40) depth: 1",
    ],
)
def test_strange_lines_of_a_uftrace_dump_are_passed_over(line):
    good = ["1.000000001  1: [entry] f(40) depth: 0", line, "1.000000003  1: [exit ] f(40) depth: 0"]
    [process] = parse_dump(good, Tasks({}, {})).processes
    assert len(process.tracks) == 1


@pytest.mark.parametrize("version", ["B²2*", "é22*", "****", "\0\0\0\0", "A³3*", "B22*"])
def test_versions_of_gcov_that_there_are_not_are_none(tmp_path, version):
    path = tmp_path / "x.gcda"
    path.write_bytes(struct.pack("=I", 0x67636461) + version.encode("latin-1")[::-1] + b"\0" * 4)
    header = read_header(path)
    assert header is not None
    assert header.major == (12 if version == "B22*" else 0)


def test_a_manifest_that_is_nested_deeply_is_told(perflaw, tmp_path):
    run = tmp_path / ".perflaw" / "default" / "runs" / "0001"
    run.mkdir(parents=True)
    (run / "run.json").write_text("[" * 100_000)
    done = perflaw("runs")
    assert "unexpected" not in done.stderr + done.stdout
    assert "100 deep" in done.stdout + done.stderr
