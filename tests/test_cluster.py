"""What is learnt on a cluster is what one process learns, to the last bit, also if a worker is lost."""

import os
import pickle
import signal
import sys

import numpy as np
import pytest

from perflaw.api import mining
from perflaw.api.mining import specs_of_observed
from perflaw.cluster import on_cluster
from perflaw.errors import DataError, UsageError
from perflaw.learn.annotations import annotate
from perflaw.learn.parts import in_parts, mapped_by
from perflaw.learn.paths import MiningOptions
from perflaw.learn.series import learner
from perflaw.learn.trend import trend
from perflaw.types import Component, Evidence
from tests.check.spec_data import observed


def matrix():
    rng = np.random.default_rng(5)
    size = np.array([10.0, 20, 50, 100, 200, 500, 1000, 2000])
    exponents = rng.uniform(0.5, 2, 12)[:, None]
    counts = np.rint(size**exponents * np.exp(0.3 * rng.standard_normal((12, 8))))
    return counts, [f"f:{i}" for i in range(12)], {"n": size}


def evidence(number):
    rng = np.random.default_rng(number)
    x = np.round(np.exp(rng.uniform(0, 6, 40)))
    cost = 50 * x * np.exp(0.1 * rng.standard_normal(40))
    run, ones = np.repeat(["0001", "0002", "0003", "0004"], 10), np.ones(40)
    return Evidence(Component(f"m.f{number}"), cost, ones, ones > 0, run, {"x": x}, ())


def mine_all():
    return specs_of_observed(list(observed(1).values()), MiningOptions(), 2_000_000_000)


def pickled(function, parts):
    """What a cluster does with the parts, the last of them first."""
    message = pickle.dumps((function, parts))
    results = []
    for at in reversed(range(len(parts))):
        sent, all_parts = pickle.loads(message)
        results.append(pickle.loads(pickle.dumps(sent(all_parts[at]))))
    return results[::-1]


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(learner, "PART", 3)
    monkeypatch.setattr(
        sys.modules["perflaw.learn.annotations.annotate"], "PART", 2
    )  # the room exports a function of its name
    monkeypatch.setattr(mining, "PART", 2)


@pytest.mark.usefixtures("small_parts")
def test_parts_learnt_elsewhere_in_another_order_give_the_same():
    here = trend(*matrix()), annotate([evidence(i) for i in range(5)])
    with mapped_by(pickled):
        elsewhere = trend(*matrix()), annotate([evidence(i) for i in range(5)])
    assert repr(elsewhere) == repr(here)


@pytest.mark.usefixtures("small_parts")
def test_functions_mined_elsewhere_in_another_order_give_the_same():
    here = mine_all()
    assert any(one.spec.borders for one in here.file.specs)
    with mapped_by(pickled):
        assert repr(mine_all().file) == repr(here.file)


def test_an_error_is_that_of_one_process():
    error = pickle.loads(pickle.dumps(DataError("what", "why", "next")))
    assert (error.what, error.why, error.next_command) == ("what", "why", "next")


@pytest.mark.parametrize("address", ["local:0", "local:x"])
def test_a_number_of_workers_is_a_number(address):
    with pytest.raises(UsageError), on_cluster(address):
        pass


@pytest.mark.slow
@pytest.mark.usefixtures("small_parts")
def test_a_cluster_gives_the_same(tmp_path):
    marker = tmp_path / "killed"

    def squares_on_a_mortal_worker(numbers):
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [number**2 for number in numbers]

    here, mined = (trend(*matrix()), annotate([evidence(i) for i in range(5)])), repr(mine_all().file)
    with on_cluster("local:2"):
        assert in_parts(squares_on_a_mortal_worker, range(10), 3) == [number**2 for number in range(10)]
        assert repr((trend(*matrix()), annotate([evidence(i) for i in range(5)]))) == repr(here)
        assert repr(mine_all().file) == mined
    assert marker.exists(), "a worker was lost"
