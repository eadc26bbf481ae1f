"""Laws that one verb learnt are there for the next one, to the last bit, and never those of other recordings."""

import os
import shutil
from unittest import mock

import pytest

import perflaw.api.laws
from perflaw.api import kept
from perflaw.record import cache
from tests.conftest import first, run_perflaw

APP = """\
import sys
def inner(n): return sum(range(n))
def outer(n):
    for _ in range(5): inner(n)
for n in (10, 100, 1000, 10000): outer(n * int(sys.argv[1]))
"""


@pytest.fixture
def folder(made_once, tmp_path, monkeypatch):
    """An experiment of three sizes, a cache of its own, and whatever is learnt is kept."""

    def make(place):
        (place / "app.py").write_text(APP)
        run_perflaw(place, "record", "--vary", "n=1,2,3,4", "--", "app.py", "{n}")

    shutil.copytree(made_once("kept", make), tmp_path / "work")
    monkeypatch.setenv("PERFLAW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "MIN_LEARNING_S", 0.0)
    return tmp_path / "work"


@pytest.fixture
def learning():
    """Counts how often laws are learnt."""
    with mock.patch.object(perflaw.api.laws, "_learn", wraps=perflaw.api.laws._learn) as learn:
        yield learn


def files(folder):
    return sorted((folder.parent / "cache").glob("laws-*"))


@pytest.mark.parametrize(
    "verb",
    first(
        3,
        map(
            pytest.param,
            [
                ("annotate", "--json"),
                ("annotate", "--at", "n=50"),
                ("annotate", "--paper", "--text"),
                ("annotate", "-o", "/dev/stdout"),
                ("predict", "default", "n=50", "--json"),
                ("diff", "default", "other", "--json"),
                ("report", "-o", "page.html"),
            ],
        ),
    ),
    ids=" ".join,
)
def test_what_is_kept_is_what_is_learnt_to_the_last_bit(folder, learning, verb):
    if verb[0] == "diff":
        shutil.copytree(folder / ".perflaw" / "default", folder / ".perflaw" / "other")
        run_perflaw(folder, "feature", "-e", "other", "n=5", "0004")
    if "/dev/stdout" in verb:
        verb = ("annotate", "-o", "perf.law")
    answers = []
    for _ in range(2):
        answers.append([run_perflaw(folder, *verb).stdout])
        answers[-1] += [file.read_bytes() for file in sorted(folder.glob("p*.*"))]
        assert learning.call_count == (2 if verb[0] == "diff" else 1)
    assert answers[0] == answers[1]


def test_another_verb_finds_them(folder, learning):
    run_perflaw(folder, "annotate", "-o", "perf.law")
    for verb in (["report"], ["predict", "n=50"], ["annotate", "--text"]):
        options = {"predict": ["default", "n=50"]}.get(verb[0], verb[1:])
        run_perflaw(folder, verb[0], *options)
    assert learning.call_count == 2  # the prediction is at another point


@pytest.mark.parametrize("change", first(3, ["run", "feature", "point", "metric", "options", "perflaw", "without"]))
def test_whatever_they_depend_on_changes_they_are_learnt_anew(folder, learning, monkeypatch, change):
    run_perflaw(folder, "annotate", "--json")
    options = {
        "point": ["--at", "n=7"],
        "metric": ["--metric", "events"],
        "options": ["--paper"],
        "without": ["1", "2", "3"],
    }
    if change == "run":
        shutil.rmtree(folder / ".perflaw/default/runs/0002")
    if change == "feature":
        run_perflaw(folder, "feature", "n=5", "0004")
    if change == "perflaw":
        kept._code.cache_clear()
        monkeypatch.setattr("perflaw.__version__", "99")
    run_perflaw(folder, "annotate", "--json", *options.get(change, []))
    kept._code.cache_clear()
    assert learning.call_count == 2
    assert len(files(folder)) == 2


@pytest.mark.parametrize("damage", ["truncated", "altered", "empty", "others may write"])
def test_what_is_damaged_or_not_ours_is_learnt_anew(folder, learning, damage):
    first = run_perflaw(folder, "annotate", "--json").stdout
    [file] = files(folder)
    content = file.read_bytes()
    if damage == "others may write":
        file.chmod(0o666)
        assert cache.distrust(file)
    else:
        file.write_bytes(
            {"truncated": content[:-1], "altered": content[:-9] + b"x" + content[-8:], "empty": b""}[damage]
        )
    assert run_perflaw(folder, "annotate", "--json").stdout == first
    assert learning.call_count == 2
    assert files(folder)[0].read_bytes() == content
    assert files(folder)[0].stat().st_mode & 0o777 == 0o600


def test_a_damaged_recording_is_told_although_its_laws_are_kept(folder):
    run_perflaw(folder, "annotate", "--json")
    table = folder / ".perflaw/default/runs/0002/calltree.parquet"
    content = table.read_bytes()
    table.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert "calltree.parquet: damaged" in run_perflaw(folder, "annotate", "--json", status=2).stderr


@pytest.mark.slow
def test_room_is_made_for_what_is_new(folder, monkeypatch):
    run_perflaw(folder, "annotate", "--json")
    [old] = files(folder)
    monkeypatch.setattr(kept, "MAX_BYTES", 5 * old.stat().st_size)
    for n in range(7):
        run_perflaw(folder, "annotate", "--json", "--at", f"n={n + 10}")
    assert old not in files(folder)
    assert 3 <= len(files(folder)) <= 5


def test_room_is_made_while_another_process_removes_files(folder, monkeypatch):
    gone = cache.make_cache_folder() / "laws-0.pickle"
    gone.symlink_to("removed")  # listed, and not there any more
    monkeypatch.setattr(kept, "MAX_BYTES", 5000)
    for number in range(8):
        one = kept.Kept([], (number,))
        one.keep(b"x" * 1000)
    assert sum(file.stat().st_size for file in files(folder) if file != gone) <= kept.MAX_BYTES
    assert one.read() is not None, "what is newest stays"


def test_two_processes_that_keep_the_same_laws_at_once_leave_one_of_them_whole(folder):
    """A reader finds what one of them wrote, or nothing, and no part of a file stays."""
    one, results = kept.Kept([], ("same",)), [[n] * 50_000 for n in range(3)]
    writers = []
    for result in results[1:]:
        writer = os.fork()
        if not writer:
            for _ in range(30):
                one.keep(result)
            os._exit(0)
        writers.append(writer)
    found = [one.read() for _ in range(60)]
    assert {os.waitpid(writer, 0)[1] for writer in writers} == {0}
    assert all(each is None or each in results for each in found)
    assert one.read() in results[1:]
    assert [path.name for path in (folder.parent / "cache").glob("*")] == [one.name]


@pytest.mark.slow
def test_laws_are_checked_alike_whether_they_are_kept_or_learnt(folder, learning):
    run_perflaw(folder, "record", "-e", "new", "--vary", "n=2,3", "--", "app.py", "{n}")
    answers = [
        run_perflaw(folder, "check", "default", "-e", "new", "--metric", "events", "--json").stdout for _ in range(2)
    ]
    assert learning.call_count == 1
    assert answers[0] == answers[1]
    assert "verdict" in answers[0]


def test_an_unusable_cache_changes_nothing(folder, learning):
    (folder.parent / "cache").write_text("no folder")
    first = run_perflaw(folder, "annotate", "--json").stdout
    assert run_perflaw(folder, "annotate", "--json").stdout == first
    assert learning.call_count == 2
