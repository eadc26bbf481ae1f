"""What is read and learnt on a cluster is what one process has, to the last bit, also if a worker is lost."""

import os
import pickle
import signal
import sys
import warnings
from functools import partial

import numpy as np
import pytest

from perflaw.api import mining, pages
from perflaw.api.mining import specs_of_observed
from perflaw.cluster import on_cluster
from perflaw.errors import DataError, StoreError, UsageError
from perflaw.learn.annotations import annotate
from perflaw.learn.paths import MiningOptions
from perflaw.learn.series import learner
from perflaw.learn.trend import trend
from perflaw.learn.variance.tree import Options
from perflaw.parts import Mapper, in_parts, mapped_by
from perflaw.store import call_trees
from perflaw.store.call_trees import OF_NO_TREE, read_merged
from perflaw.store.merge import merge
from perflaw.store.tables import read_tables
from perflaw.types import Component, Evidence
from tests.check.spec_data import observed
from tests.conftest import PROGRAMS
from tests.record.recording import record_fake


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


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Five runs, whose costs differ."""
    sizes = {"n": ["10", "20", "40", "80", "160"]}
    return record_fake(tmp_path_factory.mktemp("runs"), "native", [PROGRAMS / "known.py", "{n}"], vary=sizes)


def vary(recordings):
    """The patterns of variance by metric, with the explanations of their functions."""
    views = pages.variance_views(recordings, "time", Options(high=0.1, least=2))
    assert len(views[0].explanations) > 2 * pages.PART, [len(one.explanations) for one in views]
    assert views[0].variance.patterns
    return views


class Pickled(Mapper):
    """What a cluster does with the parts, the last of them first."""

    def results(self, function, parts):
        message = pickle.dumps((function, parts))
        results = []
        for at in reversed(range(len(parts))):
            sent, all_parts = pickle.loads(message)
            results.append(pickle.loads(pickle.dumps(sent(all_parts[at]))))
        return results[::-1]

    def merged(self, read, merge, items, size, tell):
        def run(function):
            return lambda part: self.results(function, [part])[0]

        return super().merged(run(read), run(merge), items, size, tell)


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(learner, "PART", 3)
    monkeypatch.setattr(
        sys.modules["perflaw.learn.annotations.annotate"], "PART", 2
    )  # the room exports a function of its name
    monkeypatch.setattr(mining, "PART", 2)
    monkeypatch.setattr(call_trees, "PART", 2)
    monkeypatch.setattr(pages, "PART", 2)


@pytest.mark.usefixtures("small_parts")
def test_parts_learnt_elsewhere_in_another_order_give_the_same():
    here = trend(*matrix()), annotate([evidence(i) for i in range(5)])
    with mapped_by(Pickled()):
        elsewhere = trend(*matrix()), annotate([evidence(i) for i in range(5)])
    assert repr(elsewhere) == repr(here)


@pytest.mark.slow
@pytest.mark.usefixtures("small_parts")
def test_functions_mined_elsewhere_in_another_order_give_the_same():
    here = mine_all()
    assert any(one.spec.borders for one in here.file.specs)
    with mapped_by(Pickled()):
        assert repr(mine_all().file) == repr(here.file)


@pytest.mark.usefixtures("small_parts")
def test_recordings_merged_elsewhere_in_another_order_give_the_same(recordings):
    folders = [one.folder for one in recordings]
    here, tables = vary(recordings), merge([read_tables(folder, OF_NO_TREE) for folder in folders])
    parts: list[float] = []
    assert read_merged(folders, parts.append) == tables
    assert len(parts) > 2
    assert parts == sorted(set(parts))
    assert parts[-1] == 1
    with mapped_by(Pickled()):
        assert read_merged(folders) == tables
        assert repr(vary(recordings)) == repr(here)


def test_a_worker_that_does_not_see_the_recordings_says_so(tmp_path):
    with pytest.raises(StoreError, match=r"0001 is not there on .* does not see the folder"):
        call_trees._read_together([tmp_path / "0001"], host="another")


def test_an_error_is_that_of_one_process():
    error = pickle.loads(pickle.dumps(DataError("what", "why", "next")))
    assert (error.what, error.why, error.next_command) == ("what", "why", "next")


@pytest.mark.parametrize("address", ["local:0", "local:x"])
def test_a_number_of_workers_is_a_number(address):
    with pytest.raises(UsageError), on_cluster(address):
        pass


def mortal(function, marker):
    """The function, which kills the worker that is the first to call it."""
    here = os.getpid()

    def killing(*arguments, **options):
        if os.getpid() != here and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)

    return killing


@pytest.mark.slow
@pytest.mark.usefixtures("small_parts")
def test_a_cluster_that_loses_workers_gives_the_same(tmp_path, recordings, monkeypatch):
    def learn_all():
        return trend(*matrix()), annotate([evidence(i) for i in range(5)])

    def map_all(function, items):
        return list(map(function, items))

    def mined():
        return mine_all().file

    def varied():
        return vary(recordings)

    results = {function: repr(function()) for function in (learn_all, mined, varied)}
    with on_cluster("local:2"):
        assert in_parts(mortal(sorted, tmp_path / "sorted"), [3, 1, 2, 0], 2) == [1, 3, 0, 2]
        assert (tmp_path / "sorted").exists(), "a worker was lost"
        with warnings.catch_warnings(action="error"):
            assert in_parts(partial(map_all, np.arange(2_000_000).__getitem__), [3, 1, 2, 0], 2) == [3, 1, 2, 0], (
                "16 MB are sent"
            )
        assert repr(learn_all()) == results[learn_all]
        for module, name, function in (
            (mining, "_mine_each", mined),
            (call_trees, "_read_together", varied),
            (call_trees, "merge", varied),
            (pages, "_explain_each", varied),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(module, name, mortal(getattr(module, name), tmp_path / name))
                assert repr(function()) == results[function]
            assert (tmp_path / name).exists(), "a worker was lost"
