"""Metrics of probes: records of the target become readings, metrics and runs."""

import subprocess
from pathlib import Path

import pytest

from tests.explore.tiny import KNOB, explore, write

INCLUDE = Path(__file__).parents[2] / "native" / "include"
PROGRAM = """
#include <perflaw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
PERFLAW_PROBE(7, "query", "");
PERFLAW_PROBE(8, "size", "B");
int main(int count, char **words) {
    int size = count > 1 ? atoi(strchr(words[1], '=') + 1) : 1;
    for (int i = 0; i < 300; i++) {
        TPT_PROBE_BEGIN(7, 1);
        usleep(1000);
        TPT_PROBE_END(7);
        SNAPSHOT_PROBE(8, 1, size);
    }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probed")
    (folder / "prog.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "-I", INCLUDE, "prog.c", "-o", "prog", "-pthread"], cwd=folder, check=True)
    return folder / "prog"


def test_records_of_probes_become_metrics(tmp_path, program):
    metrics = "metrics: {rate: {probe: query, rate: count, goal: max}, bytes: {probe: size, mean: v0}}\n"
    text = f'target: {{run: "{program} {{args}}"}}\n' + KNOB + metrics + "policy: grid\ntrials: 2\n"
    trials = explore(write(tmp_path, text))
    assert [trial.reason for trial in trials if not trial.valid] == []
    assert [trial.metrics["bytes"] for trial in trials] == [trial.configuration["size"] for trial in trials]
    # Each execution takes a millisecond and more; how much more is the machine's affair.
    assert all(10 < trial.metrics["rate"] < 1000 for trial in trials)


def test_a_probe_that_is_not_there_is_named(tmp_path, program):
    metrics = "metrics: {rate: {probe: other, rate: count, goal: max}}\n"
    text = f'target: {{run: "{program} {{args}}"}}\n' + KNOB + metrics + "policy: grid\ntrials: 1\n"
    (trial,) = explore(write(tmp_path, text))
    assert not trial.valid and "no probe 'other'; there are query, size" in trial.reason
