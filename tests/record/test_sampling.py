"""Reading of features keeps a budget: functions that are read often keep smaller samples, which are random even so."""

from statistics import mean

import pytest

from perflaw.store.schema import COLUMNS

pytestmark = pytest.mark.interpreter

UNIFORM_KEY = list(COLUMNS["invocations"]).index("uniform_key")
FUNCTIONS, CALLS, RARE = 300, 300, 5
PROGRAM = f"""
class Settings:
    def __init__(self):
        for number in range(12):
            setattr(self, f"value{{number}}", number)

text = "".join(f"def f{{at}}(i, a, b, c):\\n    pass\\n" for at in range({FUNCTIONS}))
exec(compile(text, "functions.py", "exec"))
functions = [globals()[f"f{{at}}"] for at in range({FUNCTIONS})]
one = Settings()

def rare(i, a):
    pass

for i in range({CALLS}):
    for function in functions:
        function(i, one, one, one)
    if i % {CALLS // RARE} == 0:
        rare(i, one)
"""
"""Reading three objects takes a multiple of an empty call."""


@pytest.mark.slow
def test_samples_that_became_smaller_are_random(recorded, tmp_path):
    (tmp_path / "app.py").write_text(PROGRAM)
    [recording] = recorded("--select", "*", "--", "app.py")
    tables = recording.tables()
    names = {row[0]: row[1].rsplit(".", 1)[-1] for row in tables["components"]}
    calls = {names[row[0]]: row[7] for row in tables["components"]}
    assert [calls[f"f{at}"] for at in range(FUNCTIONS)] == [CALLS] * FUNCTIONS
    values = {row[1]: row[3] for row in tables["features"] if row[2] == "i"}
    uniform: dict[str, list[float]] = {}
    for row in tables["invocations"]:
        if row[UNIFORM_KEY] >= 0 and row[1] in values:
            uniform.setdefault(names[row[2]], []).append(values[row[1]])
    assert sorted(uniform["rare"]) == list(range(0, CALLS, CALLS // RARE))
    samples = [uniform[f"f{at}"] for at in range(FUNCTIONS)]
    assert mean(map(len, samples)) < CALLS / 2
    assert min(map(len, samples)) >= 16
    # The mean over n samples of 0 … 299 has a standard deviation of 87/√n.
    everything = [value for sample in samples for value in sample]
    assert mean(everything) == pytest.approx((CALLS - 1) / 2, abs=5 * 87 / len(everything) ** 0.5)
