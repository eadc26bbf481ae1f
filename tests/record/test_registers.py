"""Arguments of functions without debug information are read from registers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perflaw.store.experiment import open_experiment
from perflaw.store.tables import read_table
from tests.conftest import Run

PROGRAM = """
#include <stdint.h>
#include <stdlib.h>

struct list { struct list *next; };

__attribute__((noinline)) long work(const char *text, int32_t shift, struct list *list, uint64_t times, char last)
{
    long sum = shift;
    while (list) list = list->next;
    for (uint64_t at = 0; at < times; at++) sum += text[at] ^ shift;
    return sum + last;
}

/* Nothing says whether it is given an address: small values are numbers. */
__attribute__((noinline)) void *keep(void *what) { __asm__ volatile("nop\\nnop\\nnop" : : "r"(what)); return what; }

int main(void)
{
    char text[64] = "text";
    long sum = 0;
    for (int at = 0; at < 40; at++) {
        sum += work(text, -at, NULL, at, 'a');
        sum += keep(text) != text;
        sum += keep((void *)(intptr_t)(at - 5)) == text;
    }
    return sum == 1;
}
"""


@pytest.mark.parametrize("flags", [(), ("-no-pie", "-fno-pie")], ids=["pie", "no-pie"])
def test_numbers_are_features_and_addresses_are_not(perflaw: Run, tmp_path: Path, flags: tuple[str, ...]) -> None:
    (tmp_path / "app.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O2", *flags, "-o", "app", "app.c"], cwd=tmp_path, check=True)
    perflaw("record", "--clock", "fake", "--", "./app")
    [recording] = open_experiment("default", tmp_path).recordings()
    names = {component: name for component, name, *_ in read_table(recording.folder, "components")}
    function = {
        row[0]: names[row[2]] for row in read_table(recording.folder, "invocations", ("sequence", "node", "component"))
    }
    read: dict[str, dict[str, list[float]]] = {}
    for sequence, feature, value in read_table(recording.folder, "features", ("sequence", "feature", "value")):
        read.setdefault(function[sequence], {}).setdefault(feature, []).append(value)
    assert read["work"].keys() == {"arg2", "arg4", "arg5"}
    assert set(read["work"]["arg2"]) <= {float(-at) for at in range(40)}  # gcc may copy it with the whole register
    assert sorted(read["work"]["arg4"]) == sorted(float(at) for at in range(40))
    assert set(read["work"]["arg5"]) == {97.0}
    assert sorted(read["keep"]["arg1"]) == sorted(float(at - 5) for at in range(40))
