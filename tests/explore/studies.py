"""Studies that several tests read."""

import textwrap

from perflaw.explore.study_file import read_study

FULL = """
target:   {start: "./server --config {conf} {args}", ready: {tcp: 7000}, stop: SIGTERM,
           workload: "./load --seconds 5", sql: a.db}
knobs:
  page_size: {type: ordinal, values: [1KiB, 4KiB, 16KiB, 64KiB], unit: B, default: 4KiB,
              apply: [{pragma: page_size}, {sql: VACUUM}], verify: {pragma: page_size}, switch_cost: rebuild}
  cache:     {type: int, range: [2MiB, 8GiB], scale: log2, apply: {pragma: cache_size, expr: "-cache//1024"},
              verify: {pragma: cache_size}}
  threads:   {type: int, range: [1, 8], apply: {arg: "--threads={}"}}
constraints: ["cache >= 2*page_size", "threads*cache < 0.5*host.mem"]
metrics:  {throughput: {probe: query, rate: count, goal: max}}
restore:  {snapshot: [db], on: [exit, crash]}
policy: law            # grid, random, sobol, lhs, one-at-a-time, racing, law, or an entry point
trials: 60             # or minutes: 30, or margin: 5 %
"""
SHORT = """
target: {run: "./prog {args} --size {size}", result: {json: stdout}}
knobs:
  n: {type: int, range: [1, 4], apply: {arg: "-n {}"}}
  size: {type: ordinal, values: [10, 5], workload: true}
metrics: {seconds: {wall: true, goal: min}, peak: memory, ok: {path: a.b}}
"""


def read(tmp_path, text, name="study.yaml"):
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    return read_study(path)
