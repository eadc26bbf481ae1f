"""While a generator or coroutine is suspended others run: that time is theirs, and a program's costs hold it once."""

from perflaw.store.profiles import read_profile
from perflaw.store.program import read_program
from perflaw.types.recordings import TIME, WAITING

PROGRAM = """
import asyncio
def work(n): return sum(range(n))
def items():
    for n in range(300): yield n
async def fetch():
    await asyncio.sleep(0.05)
for n in items(): work(n)
async def main(): await asyncio.gather(*(fetch() for _ in range(50)))
asyncio.run(main())
"""


def test_suspended_time_is_in_no_function_and_counts_once(recorded, tmp_path):
    (tmp_path / "app.py").write_text(PROGRAM)
    recordings = recorded("--", "app.py")
    costs, profile = read_program(recordings, TIME), read_profile(recordings)
    assert WAITING not in {one.name for one in costs.components}
    within = sum(cost for one, cost in zip(costs.components, costs.own[0], strict=True) if one.file)
    whole = profile.function_total[TIME.name].max()
    assert within <= whole
