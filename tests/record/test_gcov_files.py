"""The files of gcc's coverage: how they begin, and which notes belong to which counts. Any bytes may stand there."""

import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflaw.errors import TargetError, UsageError
from perflaw.record.compiled.gcov import CountSums, SourceFunction
from perflaw.record.compiled.gcov_files import (
    BuildPlaces,
    CoverageHeader,
    NotesFinder,
    apart,
    build_places,
    counted_program,
    find_gcov,
    noted_functions,
    read_header,
)
from tests.conftest import examples

ONCE = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = st.integers(0, (1 << 32) - 1)


@ONCE
@given(
    st.text("AB0123456789*", min_size=4, max_size=4),
    WORDS,
    st.binary(max_size=9),
    st.sampled_from([0x67636461, 0x67636E6F]),
)
def test_a_header_is_read_as_it_was_written(tmp_path, version, stamp, rest, magic):
    path = tmp_path / "x.gcda"
    path.write_bytes(struct.pack("=III", magic, int.from_bytes(version.encode(), "big"), stamp) + rest)
    assert read_header(path) == CoverageHeader(version, stamp)


@ONCE
@given(st.binary(max_size=40))
def test_any_other_bytes_are_no_header(tmp_path, data):
    path = tmp_path / "x.gcda"
    path.write_bytes(data)
    known = data[:4] in (b"adcg", b"gcda", b"oncg", b"gcno") and len(data) >= 12
    assert (read_header(path) is not None) <= known
    (tmp_path / "program").write_bytes(b"\x7fELF" + data)
    if b"profil" not in data:
        with pytest.raises(TargetError, match=r"no execution counts in it|compiled by clang"):
            counted_program(tmp_path / "program")


def notes(path, stamp):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("=III", 0x67636E6F, int.from_bytes(b"B22*", "big"), stamp))
    return path


def test_of_notes_of_one_name_those_of_the_stamp_are_found(tmp_path):
    one, other = notes(tmp_path / "a/x.gcno", 1), notes(tmp_path / "b/x.gcno", 2)
    finder = NotesFinder(BuildPlaces(notes=tmp_path), Path("/usr/bin/program"))
    assert finder.find("/build/a/x.gcda", 1) == (one, False)
    assert finder.find("/build/a/x.gcda", 2) == (other, False)
    assert finder.find("/build/a/x.gcda", 3) == (one, True), "of another build"
    assert finder.find("/build/a/y.gcda", 3) == (None, False)


def test_the_longest_folder_that_was_mapped_decides(tmp_path):
    places = build_places(None, ["/build=/here", "/build/lib=/there/"])
    assert places.now("/build/a.c") == "/here/a.c"
    assert places.now("/build/lib/a.c") == "/there/a.c"
    assert places.now("/builder/a.c") == "/builder/a.c"
    with pytest.raises(UsageError, match="OLD=NEW"):
        build_places(None, ["=x"])


@pytest.mark.parametrize("major", [0, 4, 8])
def test_old_compilers_are_refused(major):
    with pytest.raises(TargetError, match="cannot be read"):
        find_gcov(major)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("main", "main"),
        ("double sum<double>(std::vector<double, std::allocator<double> > const&)", "sum"),
        ("std::vector<int, A<int> >::push_back(int const&)", "std::vector::push_back"),
        ("ns::operator<(ns::A const&, ns::A const&)", "ns::operator<"),
        ("(anonymous namespace)::f(int)", "{}::f"),
        ("A::operator()(int) const", "A::operator"),
    ],
)
def test_instantiations_of_a_template_have_one_plain_name(name, plain):
    assert SourceFunction(1, name, "c++").plain == plain


def branch(count, fallthrough=False, throw=False):
    return {"count": count, "fallthrough": fallthrough, "throw": throw}


def document(functions, lines):
    said = [
        {"name": name, "demangled_name": name, "start_line": line, "execution_count": count}
        for name, line, count in functions
    ]
    rows = [
        {"line_number": number, "function_name": name, "count": count, "branches": branches}
        for number, name, count, branches in lines
    ]
    return {"current_working_directory": "/b", "files": [{"file": "../b/x.c", "functions": said, "lines": rows}]}


def test_object_files_add_up_and_calls_that_throw_are_no_branches():
    sums = CountSums(BuildPlaces())
    thrown = [branch(4, fallthrough=True), branch(1, throw=True), branch(3), branch(1, fallthrough=True)]
    assert sums.add(document([("f", 1, 5)], [(2, "f", 5, thrown)])) == ["/b/x.c"]
    sums.add(document([("f", 1, 2), ("g", 2, 1)], [(2, "f", 2, []), (2, "g", -1, [branch(7), branch(8)])]))
    counts = sums.counts()
    told = [(place.kind, place.name, place.function) for place in counts.locations]
    assert told == [
        ("function", "f", "f"),
        ("function", "g", "g"),
        ("line", "x.c:2", "g"),
        ("block", "x.c:2 branch 1", "g"),
        ("block", "x.c:2 branch 2", "g"),
        ("block", "x.c:2 branch 3", "g"),
        ("block", "x.c:2 branch 4", "g"),
    ]
    assert counts.counts.tolist() == [7, 1, 7, 3, 1, 7, 8]


def test_notes_that_are_torn_name_no_functions(tmp_path):
    (tmp_path / "a.c").write_text('int f(void) {\n#include "b.inc"\n}\nint main(void) { return f(); }\n')
    (tmp_path / "b.inc").write_text("return 0;\n")
    subprocess.run(["gcc", "-O0", "--coverage", "-c", "a.c"], cwd=tmp_path, check=True)
    whole = (tmp_path / "a.gcno").read_bytes()
    major = read_header(tmp_path / "a.gcno").major
    functions = noted_functions(tmp_path / "a.gcno", major)
    assert {each.name: dict(each.included) for each in functions} == {"f": {"b.inc": {1}}, "main": {}}
    assert [[each.name for each in group] for group in apart(functions)] == [["f"]]
    for length in range(12, len(whole), 7):
        (tmp_path / "a.gcno").write_bytes(whole[:length])
        assert {each.name for each in noted_functions(tmp_path / "a.gcno", major)} <= {"f", "main"}
