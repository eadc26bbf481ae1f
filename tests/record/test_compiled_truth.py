"""The ground truth of Freud's validation (§5) in C++: built with ``-O2 -g`` alone, injected, on the fake clock."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from unittest import mock

import pytest

from perflaw.store.evidence import gather
from perflaw.store.experiment import open_experiment
from perflaw.types import Evidence
from tests.conftest import run_perflaw
from tests.learn.annotation_data import r2
from tests.learn.test_annotations_truth import SCOPES as OF_PYTHON
from tests.record.test_hooks import built

LEAST_R2 = 0.98
FEATURES = {"box.value": "count", "self._Private__amount": "this.amount", "self.amount": "this.amount", "width": "extent.width",
            "globals.size": "size"}  # fmt: skip
"""Names of arguments that differ from those in truth.py; of other functions only one has a ``width``."""
Scopes = dict[str, dict[str, tuple[str, tuple[str, ...]]]]
SCOPES: Scopes = {
    name.replace(".", "::"): {
        condition.replace("mode._value_", "mode"): (family, tuple(FEATURES.get(one, one) for one in features))
        for condition, (family, features) in scopes.items()
    }
    for name, scopes in OF_PYTHON.items()
}
Recorded = tuple[dict[str, list[dict]], dict[str, Evidence]]


def recorded(folder: Path, program: Path, seeds: str, *, is_doubled: bool = False) -> Recorded:
    """Laws and evidence by function."""
    with mock.patch.dict(os.environ, {"TRUTH_DOUBLED": "1"} if is_doubled else {}):
        said = run_perflaw(
            folder, "record", "--clock", "fake", "--vary", f"seed={seeds}", "--", program, "{seed}", 110
        ).stderr
    assert "recorded by injected code" in said
    document = json.loads(run_perflaw(folder, "annotate", "--metric", "time", "--json").stdout)
    laws = {one["component"]: one["scopes"] for one in document["annotations"]}
    evidence = gather(open_experiment("default", folder).recordings())
    return laws, {one.component.name: one for one in evidence}


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recorded, Recorded]:
    """As it is, and where every cost is recorded once more."""
    program = built(tmp_path_factory.mktemp("program"), "truth.cc", "-O2")
    normal = recorded(tmp_path_factory.mktemp("normal"), program, "1,2,3")
    return normal, recorded(tmp_path_factory.mktemp("doubled"), program, "11,12,13", is_doubled=True)


def told(laws: dict[str, list[dict]]) -> Scopes:
    return {
        name: {one["condition"]: (one["law"]["family"], tuple(sorted(one["law"]["features"]))) for one in laws[name]}
        for name in SCOPES
    }


@pytest.mark.slow
def test_families_features_and_conditions(truth: tuple[Recorded, Recorded]) -> None:
    (laws, _), (doubled, _) = truth
    assert told(laws) == SCOPES
    assert told(doubled) == SCOPES


@pytest.mark.slow
def test_laws_explain_what_is_recorded_otherwise(truth: tuple[Recorded, Recorded]) -> None:
    """Other seeds and doubled instrumentation, both ways."""
    (laws, evidence), (doubled, others) = truth
    for name in [*SCOPES, "quadratic_noisy"]:
        for scopes, made in ((laws[name], others[name]), (doubled[name], evidence[name])):
            explained, covered = r2(scopes, made)
            assert explained >= LEAST_R2, name
            assert covered == 1.0, name


@pytest.mark.slow
def test_mixtures(truth: tuple[Recorded, Recorded]) -> None:
    for laws, _ in truth:
        modes = [round(scope["law"]["coefficient"] / 1000) for scope in laws["three_modes"]]
        assert sorted(modes) == [300, 600, 900]
        first, *rest = laws["mixed"]
        assert (first["law"]["family"], first["law"]["features"], len(rest)) == ("linear", ["a"], 2)


CLONES = """
extern __attribute__((weak)) void perflaw_advance(long long ns);
struct box { int colour, width; };
static volatile int kept;
static __attribute__((noinline)) void narrow(const struct box *box) {
    kept = box->width;
    if (perflaw_advance) perflaw_advance(3000 + 40ll * box->width);
}
int main(void) {
    unsigned state = 1;
    for (int at = 0; at < 200; at++) {
        struct box box = {at, (int)((state = state * 1664525u + 1013904223u) >> 20)};
        narrow(&box);
    }
    return 0;
}
"""


@pytest.mark.parametrize("flags", ["-O2", "-O2 -flto"])
def test_a_clone_is_told_by_what_it_is_called_with(flags: str, tmp_path: Path) -> None:
    """gcc passes the field alone, of which DWARF knows no name: it has that of its register, and the box no feature."""
    (tmp_path / "clones.c").write_text(CLONES)
    subprocess.run(["gcc", *flags.split(), "-g", "clones.c", "-o", "clones"], cwd=tmp_path, check=True)
    names = subprocess.run(["nm", "clones"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "narrow.isra" in names
    run_perflaw(tmp_path, "record", "--clock", "fake", "--", tmp_path / "clones")
    document = json.loads(run_perflaw(tmp_path, "annotate", "--metric", "time", "--json").stdout)
    [[scope]] = [one["scopes"] for one in document["annotations"] if one["component"] == "narrow"]
    assert (scope["law"]["family"], scope["law"]["features"]) == ("linear", ["arg1"])
