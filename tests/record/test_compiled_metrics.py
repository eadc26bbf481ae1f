"""Metrics of compiled programs: what each function allocates, waits for, holds and makes the kernel do."""

import json
import os
import subprocess

import pytest

from perflaw.store.experiment import open_experiment
from tests.conftest import assert_identities, first, run_perflaw
from tests.record.test_compiled_branches import FLAGS
from tests.record.test_hooks import HOOKS, built, recorded

ALL = "memory,lock_wait,lock_hold,switches,faults"


@pytest.fixture(scope="module", params=first(1, ["clang -O2", "gcc -O0"]))
def costs(request, tmp_path_factory):
    """Cost of each function in each metric, by a recording with all of them."""
    compiler, level = request.param.split()
    folder = tmp_path_factory.mktemp("metered")
    program = built(folder, "metered.cc", level, HOOKS, compiler=compiler)
    assert "not measured" not in run_perflaw(folder, "record", "--metric", ALL, "--", program).stderr
    [recording] = open_experiment("default", folder).recordings()
    tables = recording.tables()
    assert_identities(tables)
    names = {row[0]: row[1] for row in tables["components"]}
    found: dict[str, dict[str, int]] = {}
    for component, metric, total, _ in tables["component_costs"]:
        found.setdefault(names[component], {})[metric] = total
    return found


def test_allocations_are_those_that_the_function_asks_for(costs):
    allocated = {name: (of["allocated_bytes"], of["allocated_blocks"]) for name, of in costs.items()}
    assert allocated["takes"] == (15_000, 5)
    assert allocated["grows"] == (75_000, 5)
    assert allocated["aligned"] == (9_600, 5)
    assert allocated["makes"] == (1_500, 5)
    assert allocated["waits"] == (0, 0)


def test_waiting_for_locks_and_conditions_and_holding_them(costs):
    # A pause of the machine may lengthen any of these; what is compared differs by 200 ms without one.
    assert 0.5 * costs["waits"]["time"] < costs["waits"]["lock_wait"] < 1.1 * costs["waits"]["time"]
    assert costs["holds"]["lock_hold"] >= 200e6 > costs["holds"]["lock_wait"]
    assert costs["waits"]["lock_hold"] < costs["waits"]["lock_wait"]
    assert costs["reads"]["lock_hold"] >= 20e6
    assert costs["awaits"]["lock_wait"] >= 200e6
    assert costs["awaits"]["lock_hold"] < 200e6, "the mutex of a condition is not held while it is waited for"


def test_what_the_kernel_counts(costs):
    assert 150 <= costs["touches"]["faults"] < 200
    assert costs["takes"]["faults"] < 50
    assert costs["sleeps"]["switches"] >= 25


@pytest.mark.parametrize(("flags", "collect"), first(1, [((HOOKS, "-O1"), ()), (("-O1", *FLAGS), ("branches",))]))
def test_what_the_recorder_waits_for_is_no_cpu_time_of_the_program(flags, collect, tmp_path):
    """Within the hooks: no CPU time is negative or longer than the call, and none of the program's own is lost."""
    program = built(tmp_path, "delayed.cc", "-std=c++17", "-rdynamic", *flags)
    (recording,) = recorded(tmp_path, program, select=("work", "catches"), collect=collect)
    tables = recording.tables()
    names = {row[0]: row[1] for row in tables["components"]}
    columns = (tables["invocations"][name].tolist() for name in ("component", "x", "x_cpu"))
    invocations = [(names[component], time, cpu) for component, time, cpu in zip(*columns, strict=True)]
    assert len(invocations) == 2 * 8
    assert all(0 <= cpu <= time for _, time, cpu in invocations), invocations
    assert all(cpu > 0.8 * 8e6 for name, _, cpu in invocations if name == "work"), invocations


@pytest.mark.slow
def test_a_law_of_what_a_function_allocates(tmp_path):
    (tmp_path / "app.c").write_text(
        "#include <stdlib.h>\n#include <string.h>\n"
        'void keep(long n) { for (long i = 0; i < n; i++) free(strdup("0123456789")); }\n'
        "int main(int count, char **words) { keep(atol(words[1])); return count < 2; }\n"
    )
    subprocess.run(["gcc", "-O1", "-g", HOOKS, "app.c", "-o", "app"], cwd=tmp_path, check=True)
    vary = "n=10,30,100,300,1000"
    run_perflaw(tmp_path, "record", "--metric", "allocated_bytes", "--vary", vary, "--", "./app", "{n}")
    done = run_perflaw(tmp_path, "annotate", "--metric", "allocated_bytes", "--json")
    [keep] = [one for one in json.loads(done.stdout)["annotations"] if one["component"] == "keep"]
    assert keep["run_law"]["mean"] == "11*n"


def test_a_metric_of_another_package(tmp_path):
    """The plug-in of docs/metrics.md, whose counter the program itself moves."""
    (tmp_path / "queries.c").write_text(
        "#include <stdint.h>\nstatic _Thread_local int64_t queries;\n"
        "void count_query(void) { queries++; }\nint64_t queries_total(void) { return queries; }\n"
    )
    (tmp_path / "app.c").write_text(
        "void count_query(void);\nvoid asks(int n) { while (n--) count_query(); }\nint main(void) { asks(7); asks(4); }\n"
    )
    package = tmp_path / "my_metrics-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: my-metrics\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[perflaw.metrics]\nqueries = my_metrics:queries\n")
    (tmp_path / "my_metrics.py").write_text(
        "from pathlib import Path\nfrom perflaw.record.metrics import MetricPlugin\n"
        "queries = MetricPlugin('queries', 'queries', str(Path(__file__).with_name('queries.so')), 'queries_total')\n"
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "queries.c", "-o", "queries.so"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-g", HOOKS, "app.c", "-o", "app", "./queries.so"], cwd=tmp_path, check=True)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run_perflaw(tmp_path, "record", "--metric", "queries", "--", "./app", env=env)
    [recording] = open_experiment("default", tmp_path).recordings()
    tables = recording.tables()
    names = {row[0]: row[1] for row in tables["components"]}
    assert {names[row[0]]: row[2] for row in tables["component_costs"] if row[1] == "queries"}["asks"] == 11
