"""assert_scales on a simulated machine: planted growth is found, noise never is, and what is open warns."""

import gc
import math
import warnings

import pytest

from perflaw.errors import UsageError
from perflaw.pytest_plugin.scales import ScalingError, ScalingWarning, Subject, assert_scales
from tests.pytest_plugin.simulated import Machine

SIZES = (100, 300, 1000, 3000, 10_000)
GROWTHS = {
    "1": lambda n: 70e3,
    "log n": lambda n: 9e3 * math.log(n),
    "n": lambda n: 800.0 * n,
    "n log n": lambda n: 90.0 * n * math.log(n),
    "n**1.5": lambda n: 80.0 * n**1.5,
    "n^2": lambda n: 9.0 * n**2,
    "n^2 log n": lambda n: 7.0 * n**2 * math.log(n),
}
ORDER = list(GROWTHS)


def held(growth, bound, noise=0.05, bursts=0.05, seed=0, sizes=SIZES, **options):
    """Verdict of a function of that growth against the bound: what the person sees of it."""
    machine = Machine(GROWTHS.get(growth, growth) if isinstance(growth, str) else growth, noise, bursts, seed)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            assert_scales(machine.run, sizes, bound, clock=machine.clock, **options)
        except ScalingError:
            return "violated"
    return "inconclusive" if told else "holds"


@pytest.mark.parametrize("growth", ORDER)
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
def test_a_function_keeps_its_own_bound(growth, noise):
    verdicts = [held(growth, growth, noise, seed=seed) for seed in range(3)]
    assert "violated" not in verdicts
    assert verdicts.count("holds") >= 2


@pytest.mark.parametrize(
    ("growth", "bound"),
    [
        ("n", "1"),
        ("n", "log n"),
        ("n**1.5", "n"),
        ("n^2", "n log n"),
        ("n^2", "n**1.5"),
        ("n^2 log n", "n**1.5"),
        ("n^2", "1"),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_planted_growth_is_found(growth, bound, noise):
    assert [held(growth, bound, noise, seed=seed) for seed in range(3)] == ["violated"] * 3


def test_exponential_growth():
    sizes = (4, 6, 8, 10, 12, 14, 16)

    def doubling(n):
        return 500.0 * 2.0**n

    assert held(doubling, "n^3", sizes=sizes) == "violated"
    assert held(doubling, "2^n", sizes=sizes) != "violated"


def test_noise_never_fails():
    """Null tests: loud functions of exactly their bound's growth, bursts in a tenth of the calls."""
    verdicts = [
        held(growth, growth, noise=0.4, bursts=0.1, seed=seed, repeats=3)
        for growth in ("1", "n", "n log n", "n^2")
        for seed in range(10)
    ]
    assert verdicts.count("violated") == 0


def test_a_disturbance_during_the_large_sizes_is_measured_again():
    """A neighbour makes the first sample's large sizes dear; the second sample shows that it was not the function."""

    class Disturbed(Machine):
        def run(self, n):
            quiet = self.now > 50e9
            self.now += 800.0 * n * (1.0 if quiet else (n / 100) ** 0.7)

    machine = Disturbed(lambda n: 0.0)
    machine.now = 50e9 - 800.0 * sum(SIZES) * 200
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        assert_scales(machine.run, SIZES, "n", clock=machine.clock)
    assert machine.now > 50e9


def test_time_for_which_others_had_the_cpu_is_left_out(monkeypatch):
    """A thread that is queued for longer than its calls take would seem to need the same time at all sizes."""

    class Queued(Machine):
        queued = 0.0

        def run(self, n):
            super().run(n)
            delay = float(self.random.uniform(3e9, 6e9))
            self.queued += delay
            self.now += delay

    machine = Queued(lambda n: 10.0 * n**2, noise=0.02)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        assert_scales(machine.run, SIZES, "n log n", clock=machine.clock)
    monkeypatch.setattr(Subject, "queued_ns", lambda subject: int(machine.queued))
    with pytest.raises(ScalingError, match=r"grows as n\^2\.0"):
        assert_scales(machine.run, SIZES, "n log n", clock=machine.clock)


def test_what_is_open_warns_at_the_line_of_the_test():
    machine = Machine(GROWTHS["n"], noise=1.0, seed=3)
    with pytest.warns(ScalingWarning, match="inconclusive") as told:
        found = assert_scales(machine.run, (100, 110, 120, 130, 140), "n", clock=machine.clock, repeats=3)
    assert found.verdict == "inconclusive"
    assert told[0].filename == __file__


def test_the_message_tells_law_interval_and_table():
    machine = Machine(GROWTHS["n^2"])
    with pytest.raises(ScalingError) as failed:
        assert_scales(machine.run, SIZES, "n log n", clock=machine.clock)
    text = str(failed.value)
    assert "Machine.run grows as n^2.00 (95 %: 2.00 to 2.00) at n = 10,000; n log n is n^1.11 there" in text
    assert "law: 9.0 ns · n^2, quadratic, from 50 measurements" in text
    assert text.splitlines()[-1].split() == ["10,000", "900", "ms", "900", "ms", "900", "ms", "n^2.00"]


def test_a_sample_that_is_found_once_is_enough_to_hold():
    found = assert_scales(*(lambda m: (m.run, SIZES, "n"))(machine := Machine(GROWTHS["n"])), clock=machine.clock)
    assert found.verdict == "holds"
    assert len(found.measurements) == 5 * len(SIZES)


def test_growth_of_a_few_cache_misses_is_none():
    assert held(lambda n: 20.0 + 0.01 * n, "1") != "violated"
    assert held(lambda n: 20.0 + 1.0 * n, "1") == "violated"


@pytest.mark.filterwarnings("ignore::perflaw.pytest_plugin.scales.ScalingWarning")  # by a real clock
def test_arguments_are_fresh_for_what_changes_them():
    seen = []

    def consume(items):
        seen.append(len(items))
        items.clear()

    found = assert_scales(consume, SIZES, "n^2", make=lambda n: [0] * n, repeats=3)
    assert found.fresh
    assert 0 not in seen


@pytest.mark.filterwarnings("ignore::perflaw.pytest_plugin.scales.ScalingWarning")  # by a real clock
def test_arguments_are_shared_by_what_leaves_them_alone():
    made = []

    def make(n):
        made.append(n)
        return [0] * n, 1

    found = assert_scales(lambda items, start: items[start:3], SIZES, "n^2", make=make, repeats=3)
    assert not found.fresh
    assert len(made) <= (2 + 3 + 1) * len(SIZES)


@pytest.mark.filterwarnings("ignore::perflaw.pytest_plugin.scales.ScalingWarning")  # by a real clock
def test_what_cannot_be_pickled_gets_its_own():
    found = assert_scales(sum, SIZES, "n^2", make=lambda n: (value for value in range(n)), repeats=3)
    assert found.fresh


@pytest.mark.filterwarnings("ignore::perflaw.pytest_plugin.scales.ScalingWarning")  # by a real clock
def test_the_collector_is_as_it_was():
    for was in (False, True):
        (gc.enable if was else gc.disable)()
        try:
            assert_scales(lambda n: None, SIZES, "n^2", repeats=3)
            assert gc.isenabled() is was
        finally:
            gc.enable()


def test_errors_of_the_function_are_the_persons():
    with pytest.raises(ZeroDivisionError):
        assert_scales(lambda n: n / 0, SIZES, "n")
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("sizes", "options", "says"),
    [
        ((), {}, "none"),
        ((1, 2, 3, 3, 3), {}, "at least 5"),
        ((0, 1, 2, 3, 4), {}, "from 1 on"),
        (SIZES, {"repeats": 1}, "rounds"),
    ],
)
def test_what_cannot_be_asked(sizes, options, says):
    with pytest.raises(UsageError, match=says):
        assert_scales(lambda n: None, sizes, "n", **options)
