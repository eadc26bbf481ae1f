"""Progress: the time left is told truly, nothing is drawn where nobody looks, and --quiet and --verbose keep their word."""

import io
import math
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from perflaw import progress as shared
from perflaw.cli import progress as terminal
from perflaw.cli.explore import Shown
from perflaw.cli.main import VERBS, cli
from perflaw.progress import RemainingTime, RunTimes, Work
from tests.studies_factory import trial


def told(speed, whole_s, every_s=0.5):
    """(true seconds left, estimate) at every telling of work whose part goes by ``speed(share of the time)``."""
    shares = [step / 1000 for step in range(1001)]
    done = [0.0]
    for share in shares[1:]:
        done.append(done[-1] + speed(share))
    remaining, pairs, now = RemainingTime(100.0), [], every_s
    while now < whole_s:
        place = now / whole_s * 1000
        part = done[int(place)] / done[-1]
        remaining.tell(100.0 + now, part)
        pairs.append((whole_s - now, remaining.seconds(100.0 + now)))
        now += every_s
    return pairs


def test_the_time_left_is_true_for_steady_work():
    for true, estimate in told(lambda share: 1.0, 60)[4:]:
        assert estimate == pytest.approx(true, rel=0.02, abs=0.5)


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_the_estimate_follows_work_whose_speed_changes(factor):
    pairs = told(lambda share: 1.0 if share < 0.3 else factor, 60)
    late = [estimate / true for true, estimate in pairs if 10 < true < 20]  # twice the time of the change has passed
    assert late
    assert all(0.8 < ratio < 1.25 for ratio in late), late


def test_the_estimate_runs_down_between_two_tellings_and_grows_when_one_is_overdue():
    remaining = RemainingTime(0.0)
    remaining.tell(10.0, 0.5)
    assert [remaining.seconds(at) for at in (10.0, 12.0, 19.0)] == [10.0, 8.0, 1.0]
    assert remaining.seconds(40.0) > 20.0


def test_the_estimate_follows_a_load_that_changes():
    """Of 100 s of work, 40 are done alone; then three other processes share the CPU."""
    waited = 0.0
    remaining, pairs = RemainingTime(0.0, lambda: waited), []
    for second in range(1, 280):
        if second > 40:
            waited += 0.75
        remaining.tell(float(second), (second - waited) / 100.0)
        pairs.append((280.0 - second, remaining.seconds(float(second))))
    assert [estimate for true, estimate in pairs if true == 240.0] == [pytest.approx(60.0)], "nobody can know yet"
    later = [estimate / true for true, estimate in pairs if true < 220]
    assert all(0.9 < ratio < 1.1 for ratio in later), later


def test_a_time_that_the_work_told_itself_is_not_stretched_by_the_load():
    waited = 0.0
    remaining = RemainingTime(0.0, lambda: waited)
    waited = 5.0
    remaining.tell(10.0, 0.5, 20.0)
    assert remaining.seconds(10.0) == 20.0


def test_the_wait_for_a_cpu_is_read_and_only_grows():
    first = shared.waited_for_cpu()
    assert 0.0 <= first <= shared.waited_for_cpu()


def test_nothing_is_said_before_anything_is_known():
    remaining = RemainingTime(0.0)
    assert remaining.seconds(5.0) is None
    remaining.tell(5.0, 0.001)
    assert remaining.seconds(5.0) is None


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_runs_of_sizes_not_made_yet_are_foretold_by_those_that_are(exponent):
    sizes = [100.0, 200.0, 400.0, 800.0, 1600.0]
    times = RunTimes([(f"n={n:g}", n) for n in sizes for _ in range(2)])
    seconds = {n: (n / 100) ** exponent for n in sizes}
    for n in (100.0, 100.0, 200.0, 200.0):
        times.ended(seconds[n])
    true = 2 * sum(seconds[n] for n in sizes[2:])
    assert times.seconds() == pytest.approx(true)


def test_runs_without_one_number_take_as_long_as_the_longest():
    times = RunTimes([("kind=a", None), ("kind=b", None), ("kind=c", None)])
    times.ended(3.0)
    times.ended(1.0)
    assert times.seconds() == 3.0


def test_the_line_says_part_and_time_left_and_of_unknown_work_the_time_it_took():
    clock, drawn = iter([0.0, 0.5, 2.0, 2.0, 4.0, 4.0]), []
    work = Work("learning", drawn.append, lambda: next(clock), ticking=False)
    work.show(0.1)
    assert drawn == [], "less than a second"
    work.show(0.5)
    assert drawn == ["learning [##########----------] 50 % · about 2 s left"]
    work.show(0.5, 2.0, "run 2 of 3")
    assert drawn[-1].endswith("about 2 s left · run 2 of 3"), "a narrow terminal cuts what comes last"
    other = Work("reading", drawn.append, lambda: 0.0, ticking=False)
    assert other.line(75.0) == "reading · 1 min 15 s"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def screen_of(monkeypatch):
    """Standard error as a terminal; pytest puts its own back between a fixture and its test."""
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(shared, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(shared, "DRAWN_EVERY_S", 0.01)
    monkeypatch.setattr(terminal, "_verbosity", terminal.NORMAL)
    return shown


def work_for(seconds):
    with terminal.step("learning") as show:
        show(0.5)
        time.sleep(seconds)
        terminal.note("a remark")
    return threading.active_count()


def test_a_terminal_sees_progress_which_goes_again_and_remarks_stay_whole(monkeypatch):
    screen = screen_of(monkeypatch)
    before = threading.active_count()
    assert work_for(0.2) == before
    text = screen.getvalue()
    assert "learning [##########----------] 50 %" in text
    assert "\r\x1b[Kperflaw: a remark\n" in text
    assert text.endswith("\r\x1b[K") or text.endswith("a remark\n")


@pytest.mark.parametrize("silence", ["quiet", "NO_COLOR", "dumb", "pipe"])
def test_nothing_is_drawn_where_nobody_looks(monkeypatch, silence):
    screen = screen_of(monkeypatch)
    if silence == "quiet":
        terminal.set_verbosity(terminal.QUIET)
    elif silence == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    elif silence == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    else:
        monkeypatch.setattr(screen, "isatty", lambda: False)
    before = threading.active_count()
    with terminal.step("learning") as show:
        assert threading.active_count() == before, "no thread either"
        show(0.5)
        time.sleep(0.05)
    assert screen.getvalue() == ""


def test_telling_costs_the_work_nothing_that_matters():
    work = Work("counting", lambda text: None)
    try:
        began = time.process_time()
        for number in range(10_000):
            work.show(number / 10_000)
        each = (time.process_time() - began) / 10_000
    finally:
        work.close()
    assert each < 1e-4, "a store of three values, far below a part of work that is worth telling"


def test_verbs_take_quiet_and_verbose_before_and_after(perflaw, tmp_path):
    (tmp_path / "data.csv").write_text("x,y\n1,2\n2,4\n3,6\n4,8\n5,10.1\n")
    plain = perflaw("fit", "data.csv", "--response", "y")
    for words in (("--verbose", "fit"), ("fit", "--verbose")):
        done = perflaw(*words, "data.csv", "--response", "y")
        assert done.stdout == plain.stdout
        assert "perflaw: done in " in done.stderr
    quiet = perflaw("fit", "--quiet", "data.csv", "--response", "y")
    assert (quiet.stdout, quiet.stderr) == (plain.stdout, "")


def test_quiet_leaves_answers_and_errors_and_verbose_tells_each_step(perflaw, shifted, tmp_path):
    (tmp_path / ".perflaw").symlink_to(shifted / ".perflaw")
    loud = perflaw("trend", "-o", "trend.html")
    assert "wrote trend.html" in loud.stderr
    quiet = perflaw("trend", "-o", "trend.html", "--quiet")
    assert quiet.stderr == ""
    assert quiet.stdout == loud.stdout
    assert perflaw("annotate", "-e", "nowhere", "--quiet", status=2).stderr.startswith("perflaw: ")
    steps = perflaw("annotate", "--verbose").stderr
    assert "reading the manifests of default: " in steps
    assert "learning: " in steps
    assert steps.splitlines()[-1].startswith("perflaw: done in ")


def test_verbs_that_read_many_recordings_tell_that_they_read(perflaw, shifted, tmp_path):
    (tmp_path / ".perflaw").symlink_to(shifted / ".perflaw")
    assert "reading the recordings: " in perflaw("show", "--verbose").stderr
    assert "reading the recordings: " in perflaw("compare", "default", "default", "--verbose").stderr
    assert "verifying the recordings: " in perflaw("runs", "--verify", "--verbose").stderr


def test_record_is_quiet_and_verbose_and_leaves_the_programs_options(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("import sys\ndef f(): return 1\nf()\nprint(sys.argv[1:])\n")
    done = perflaw("record", "--quiet", "--", "app.py", "--verbose")
    assert (done.stdout, done.stderr) == ("['--verbose']\n", "")
    assert "run 1 of 2 of n=1: " in perflaw("record", "--verbose", "--vary", "n=1,2", "--", "app.py", "{n}").stderr


def test_every_verb_has_both_options():
    context = cli.make_context("perflaw", [], resilient_parsing=True)
    for verb in VERBS:
        names = {parameter.name for parameter in cli.get_command(context, verb).params}
        assert {"quiet", "verbose"} <= names, verb


def test_times_are_told_as_people_read_them():
    assert terminal.seconds_words(0.5) == "500 ms"
    assert math.isclose(float(terminal.seconds_words(3.14159).split()[0]), 3.14)


def test_a_notebook_shows_progress_below_the_cell_and_takes_it_away(monkeypatch):
    import IPython.display

    from perflaw.api.magic import notebook_step

    shown = []

    class Handle:
        def update(self, cell):
            shown.append(str(cell))

    def display(cell, display_id):
        shown.append(str(cell))
        return Handle()

    monkeypatch.setattr(IPython.display, "display", display)
    monkeypatch.setattr(shared, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(shared, "DRAWN_EVERY_S", 0.01)
    with notebook_step("recording"):
        time.sleep(0.1)
    assert any(text.startswith("recording") for text in shown)
    assert shown[-1] == ""


def test_what_comes_between_the_trials_of_a_study_is_in_the_time_left():
    """A trial of half a second that starts its target for a second takes a second and a half."""
    budget = SimpleNamespace(trials=10)
    metric = SimpleNamespace(name="cost", goal="min", unit="")
    study = SimpleNamespace(metrics=[metric], budget=budget, repetitions=1)
    now, told = [0.0], []
    shown = Shown(study, lambda part, left=None, text="": told.append((part, left)), lambda: now[0])
    made = []
    for number in range(1, 5):
        now[0] += 1.5
        made.append(replace(trial(number, {"x": number}, cost=1.0), seconds=0.5))
        shown.trial(made[-1], made)
    assert told[-1] == (0.4, pytest.approx(9.0))
