"""Libraries that come and go, ids used twice, a full disk, folders that are not to be trusted: the program goes on."""

import os
import subprocess

import pytest

from perflaw.record.probes import layout
from tests.conftest import first
from tests.record.probe_areas import areas, probe_of, read_area, type_of
from tests.record.probe_programs import CXX, SOURCES, C, built, compiled, produced, run

FRONT = layout.ring_offset(0, layout.RING_RECORDS)


def test_libraries_share_the_area_of_their_process(tmp_path):
    """Two that do not see each other, of which each says something else of probe 1, loaded three times each."""
    libraries = []
    for kind, compiler in ((1, C), (2, CXX)):
        libraries.append(tmp_path / f"lib{kind}.so")
        compiled([SOURCES / "library.c"], libraries[-1], compiler, "-shared", "-fPIC", f"-DKIND={kind}")
    [area], _ = run(built("loads.c"), *libraries, folder=tmp_path / "areas")
    assert area.probes() == {1: ("one", "LAT"), 20: ("library", "SNAPSHOT"), 30: ("", "SNAPSHOT")}
    assert area.entries["conflict"].nonzero()[0].tolist() == [1]
    assert area.head["conflicts"] == 1
    assert produced(area) == len(area.all) == 3 * 2 * 10 + 3 * 10 + 7
    kinds = [layout.TYPES[type_of(one)] for one in area.all if probe_of(one) == 1]
    assert (kinds.count("LAT"), kinds.count("CNT")) == (30, 30), "records say themselves what they are"
    assert [int(ring["state"]) for ring in area.rings].count(layout.IN_USE) == 1, "what is unloaded holds none"
    assert sum(ring["state"] != layout.FREE for ring in area.rings) <= 4


@pytest.mark.parametrize(
    "flags", first(1, map(pytest.param, [("-O0",), ("-O2", "-flto"), ("-O1", "-g", "-fsanitize=thread")])), ids=" ".join
)
def test_c_and_cxx_in_one_program(flags, tmp_path):
    """Templates, inline functions, static objects: one set of rings, whatever is put together how."""
    part = tmp_path / "mixed.o"
    compiled([SOURCES / "mixed.c"], part, C, "-c", *flags)
    compiled([SOURCES / "mixed.cc"], tmp_path / "mixed", ("g++", "-std=gnu++17", part), *flags)
    [area], _ = run(tmp_path / "mixed", folder=tmp_path / "areas", TSAN_OPTIONS="halt_on_error=1")
    assert {probe: len(area.of(probe)) for probe in area.probes()} == {
        40: 80, 41: 40, 42: 5, 43: 1, 44: 1, 45: 0, 46: 1, 47: 2,
    }  # fmt: skip
    assert area.of(41) == [(2,)] * 40
    assert area.of(44) == [(2**64 - 1, 2, 1, 97, 1)]
    assert not area.entries["conflict"].any()


def test_two_files_that_use_an_id_twice(tmp_path):
    """The first name stays, the entry is marked; the same file twice would not compile."""
    main = (
        "int main(void) { LAT_PROBE_BEGIN(5, 1); LAT_PROBE_END(5); LAT_PROBE_BEGIN(6, 1); LAT_PROBE_END(6); return 0; }"
    )
    texts = [f'#include <perflaw.h>\nPERFLAW_PROBE(5, "{name}", "");\nPERFLAW_PROBE(6, "same", "");\n' for name in "ab"]
    files = [tmp_path / "a.c", tmp_path / "b.c"]
    for file, text, more in zip(files, texts, (main, ""), strict=True):
        file.write_text(text + more)
    compiled(files, tmp_path / "twice")
    [area], _ = run(tmp_path / "twice", folder=tmp_path / "areas", enable="a,6")
    assert area.probes() == {5: ("a", "LAT"), 6: ("same", "LAT")}
    assert area.entries["conflict"].nonzero()[0].tolist() == [5]
    assert len(area.all) == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("LAT_PROBE_BEGIN(1024, 1); LAT_PROBE_END(1024);", "ids of probes are 0 to 1023"),
        ("LAT_PROBE_BEGIN(-1, 1);", "perflaw_lat_"),
        ("LAT_PROBE_END(3);", "perflaw_lat_3"),
        ("CNT_PROBE_BEGIN(3, 1);", "unused"),
        ("SNAPSHOT_PROBE(3, 1, 1, 2, 3, 4, 5, 6, 7);", "PERFLAW_SNAPSHOT_7"),
        ("SNAPSHOT_PROBE(1024, 1);", "ids of probes are 0 to 1023"),
    ],
)
def test_wrong_use_does_not_compile(wrong, words, tmp_path):
    (tmp_path / "wrong.c").write_text(f"#include <perflaw.h>\nint main(void) {{ {wrong} return 0; }}\n")
    with pytest.raises(AssertionError, match=words):
        compiled([tmp_path / "wrong.c"], tmp_path / "wrong", C, "-fsyntax-only")


def test_counters_that_there_are(tmp_path):
    """Made up ones: by the instruction from 1107 on, by 7 at each reading, which the others are between; by read n (n + 2)."""
    [area], said = run(built("faults.c", ("gcc", "-std=gnu11", "-Wno-unused-function")), folder=tmp_path / "areas")
    assert said == "done\n"
    assert area.of(1) == [(7,)] * 4
    assert [references for references, _ in area.of(2)] == [5, 9, 13, 17]
    assert area.of(4) == []
    assert area.entries["refused"][4] == 4
    assert area.head["refusal"] == b"SET_PERFCNTR was not called for this counter"


def test_every_system_call_may_fail(tmp_path):
    """From the n-th on, for all n until none is left that could."""
    program = built("faults.c", ("gcc", "-std=gnu11", "-Wno-unused-function"))
    complete = 0
    for fail in range(1, 80):
        folder = tmp_path / str(fail)
        environment = {"PERFLAW_PROBES": str(folder), "PERFLAW_PROBES_ENABLE": "*", "FAIL": str(fail)}
        done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=20)
        assert (done.returncode, done.stdout) == (0, "done\n"), fail
        found = [path for path in folder.iterdir() if path.name[0] != "."] if folder.exists() else []
        if found:
            [area] = map(read_area, found)
            assert len(area.of(3)) + int(area.head["lost_no_ring"]) >= 4, fail
            complete += len(area.of(3)) == 4
    assert complete > 20


@pytest.mark.parametrize(("limit", "rings"), [(FRONT - 1, 0), (FRONT + layout.ring_bytes(4096) + 1, 1), (10**7, 37)])
def test_a_limit_on_files_ends_nothing(limit, rings, tmp_path):
    """Beyond such a limit the kernel would kill the program with SIGXFSZ."""
    found, _ = run(built("life.c"), "threads", 4, 4, folder=tmp_path / "areas", limit=limit)
    assert [int(area.head["rings"]) for area in found] == [rings] * bool(rings)
    assert not rings or produced(found[0]) >= 4 * 12


def in_default_folder(tmp_path, enable):
    """Run a program that looks where nobody tells it otherwise; that is below tmp_path for once."""
    program = built("table.c", C, f'-DPERFLAW_FOLDER="{tmp_path}/of-"')
    run(program, 2, folder=None, enable=enable)
    return tmp_path / f"of-{os.geteuid()}"


def test_the_default_folder_is_the_users_alone(tmp_path):
    folder = in_default_folder(tmp_path, "*")
    assert folder.stat().st_mode & 0o777 == 0o700
    [area] = folder.iterdir()
    assert area.stat().st_mode & 0o777 == 0o600


def test_an_area_that_nobody_used_is_removed(tmp_path):
    folder = in_default_folder(tmp_path, "")
    assert not list(folder.iterdir())


@pytest.mark.parametrize("what", ["others may write", "a link", "a file"])
def test_a_folder_that_is_not_to_be_trusted_is_not_used(what, tmp_path):
    place, elsewhere = tmp_path / f"of-{os.geteuid()}", tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if what == "others may write":
        place.mkdir()
        place.chmod(0o777)
    elif what == "a link":
        place.symlink_to(elsewhere)
    else:
        place.write_text("")
    in_default_folder(tmp_path, "*")
    assert not list(elsewhere.iterdir())
    assert not place.is_dir() or not list(place.iterdir())


@pytest.mark.parametrize("told", ["/proc/nothing", "/dev/null", "relative/../place", "x" * 600])
def test_places_where_nothing_can_be(told, tmp_path):
    environment = {"PERFLAW_PROBES": told, "PERFLAW_PROBES_ENABLE": "*"}
    done = subprocess.run([built("table.c"), "3"], env=environment, cwd=tmp_path, timeout=20)
    assert done.returncode == 0


def test_a_relative_folder_is_where_the_program_began(tmp_path):
    environment = {"PERFLAW_PROBES": "here", "PERFLAW_PROBES_ENABLE": "*"}
    assert subprocess.run([built("table.c"), "3"], env=environment, cwd=tmp_path, timeout=20).returncode == 0
    assert len(areas(tmp_path / "here")[0].of(7)) == 3
