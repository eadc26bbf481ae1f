"""The ground truth of Freud's validation (§5) on the fake clock: scopes, conditions, families, accuracy."""

import json
from pathlib import Path

import pytest

from perflaw.store.evidence import gather
from perflaw.store.experiment import open_experiment
from tests.conftest import PROGRAMS, first, run_perflaw
from tests.learn.annotation_data import r2

LEAST_R2 = 0.9866
"""The paper's smallest cross-validated R²."""

LINEAR = {
    "linear_int": "t",
    "linear_pointer": "box.value",
    "linear_float": "x",
    "string_length": "s.len",
    "struct_field": "pair.used",
    "Private.private_field": "self._Private__amount",
    "This.field_of_this": "self.amount",
    "struct_by_value": "width",
    "of_global": "globals.size",
    "vector_size": "vector.len",
    "array_sum": "array.sum",
    "virtual_getter": "shape.width",
}
SCOPES = {
    **{name: {"": ("linear", (feature,))} for name, feature in LINEAR.items()},
    "quadratic": {"": ("quadratic", ("t",))},
    "n_log_n": {"": ("nlogn", ("n",))},
    "product": {"": ("product", ("a", "b"))},
    "two_branches": {"a <= 10": ("linear", ("c",)), "a > 10": ("quadratic", ("b",))},
    "one_feature": {"a < 10": ("linear", ("a",)), "a >= 10": ("linear", ("a",))},
    "of_enum": {
        "mode._value_ == 0": ("constant", ()),
        "mode._value_ == 1": ("linear", ("a",)),
        "mode._value_ == 2": ("quadratic", ("a",)),
    },
    "virtual_method": {
        'shape.type == "Falling"': ("linear", ("f",)),
        'shape.type == "Rising"': ("linear", ("f",)),
    },
}
COEFFICIENTS = {"linear_int": 250, "string_length": 100, "struct_field": 150, "This.field_of_this": 87, "of_global": 70}


def evidence_of(folder):
    """Evidence by function."""
    found = gather(open_experiment("default", folder).recordings())
    return {one.component.name.removeprefix("truth."): one for one in found}


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    """Documents and evidence of two experiments of the program: what laws are learnt from, and what they meet later."""
    out = []
    for name, seeds in (("learnt", "1,2,3,4"), ("fresh", "11,12")):
        folder = tmp_path_factory.mktemp(name)
        record = ["record", "--clock", "fake", "--vary", f"seed={seeds}", "--", PROGRAMS / "truth.py", "{seed}", "110"]
        for arguments in (record, ["annotate", "--json"]):
            done = run_perflaw(folder, *arguments)
        document = {one["component"].removeprefix("truth."): one for one in json.loads(done.stdout)["annotations"]}
        out.append((document, evidence_of(Path(folder))))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("name", first(1, SCOPES))
def test_scopes_families_and_features(truth, name):
    (document, _), _ = truth
    scopes = document[name]["scopes"]
    told = {scope["condition"]: (scope["law"]["family"], tuple(scope["law"]["features"])) for scope in scopes}
    assert {condition: (family, tuple(sorted(features))) for condition, (family, features) in told.items()} == SCOPES[
        name
    ]
    assert all(scope["probability"] == 1.0 for scope in scopes)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_coefficients(truth, name):
    (document, _), _ = truth
    [scope] = document[name]["scopes"]
    assert scope["law"]["coefficient"] == pytest.approx(COEFFICIENTS[name] * 1000, rel=0.001)


def test_noise_about_a_quadratic_law(truth):
    (document, _), _ = truth
    [scope] = document["quadratic_noisy"]["scopes"]
    assert scope["law"]["slope"]["t"] == pytest.approx(2.0, abs=0.06)


def test_mixtures(truth):
    (document, _), _ = truth
    modes = document["three_modes"]["scopes"]
    assert sorted(round(scope["law"]["coefficient"] / 1000) for scope in modes) == [300, 600, 900]
    assert sorted(scope["probability"] for scope in modes) == pytest.approx([0.3, 0.3, 0.4], abs=0.06)
    law, *rest = document["mixed"]["scopes"]
    assert (law["law"]["family"], law["law"]["features"]) == ("linear", ["a"])
    assert law["probability"] == pytest.approx(0.5, abs=0.06)
    assert [scope["probability"] for scope in rest] == pytest.approx([0.25] * 2, abs=0.06)


@pytest.mark.parametrize("name", [*SCOPES, "quadratic_noisy"])
def test_accuracy_on_fresh_recordings(truth, name):
    (document, _), (_, fresh) = truth
    explained, covered = r2(document[name]["scopes"], fresh[name])
    assert explained >= LEAST_R2
    assert covered == 1.0


@pytest.mark.parametrize("name", [*SCOPES, "quadratic_noisy"])
def test_laws_of_other_recordings_are_the_same(truth, name):
    """Fewer records and other seeds: the same scopes, which explain the first recordings as well (§5, robustness)."""
    (_, evidence), (document, _) = truth
    assert r2(document[name]["scopes"], evidence[name])[0] >= 0.98


def test_a_count_of_elements_is_a_law_of_the_branch_that_counts_them(tmp_path):
    """``100·(number of elements < 7)``: no feature of the argument says it, the recorded outcome does."""
    chosen = ["--collect", "branches", "--select", "truth.few_elements", "--clock", "fake"]
    record = ["record", *chosen, "--vary", "seed=1,2", "--", PROGRAMS / "truth.py", "{seed}", "110"]
    for arguments in (record, ["annotate", "--json"]):
        done = run_perflaw(tmp_path, *arguments)
    [annotation] = json.loads(done.stdout)["annotations"]
    [scope] = annotation["scopes"]
    source = (PROGRAMS / "truth.py").read_text().split("\n")
    line = next(number for number, text in enumerate(source, 1) if "value < 7" in text)
    assert (scope["condition"], scope["law"]["features"]) == ("", [f"branch.L{line}.taken"])
    [slope] = scope["law"]["slope"].values()
    assert slope == pytest.approx(1.0, abs=0.01)
    assert scope["law"]["predictions"][0]["mean"] == pytest.approx(
        100_000 * scope["law"]["predictions"][0]["features"][f"branch.L{line}.taken"], rel=0.01
    )
