"""Time that a recording tells of PHP programs, without what tracing costs, against runs without Xdebug.

    python benchmarks/php.py [--rounds 7]

Each program runs plain and recorded in turn, and the medians are compared: the time of the whole program as the
recording has it, and how long the program took to end. The parser is Debian's php-parser; "callbacks" sorts by a
function of a line, the hardest case: tracing it takes fifty times as long as the call. Bar: told within 25 % of plain.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = {
    "parser": """<?php
require '/usr/share/php/PhpParser/autoload.php';
$parser = (new PhpParser\\ParserFactory)->create(PhpParser\\ParserFactory::PREFER_PHP7);
for ($n = 1; $n <= 60; $n += 2) {
    $parser->parse('<?php ' . str_repeat("function f(\\$x) { return \\$x + 1; }\\n", $n));
}
""",
    "callbacks": """<?php
mt_srand(1);
for ($n = 0; $n < 20; $n++) {
    $list = array_map(fn () => mt_rand(), range(1, 1000));
    usort($list, fn ($a, $b) => $a <=> $b);
}
""",
    "loops": """<?php
function total(array $list) { $sum = 0; foreach ($list as $one) { $sum += $one * $one % 7; } return $sum; }
for ($n = 0; $n < 200; $n++) {
    total(range(1, 5000));
}
""",
}
TIMED = "<?php $begin = hrtime(true); require $argv[1]; fwrite(STDERR, 'took ' . (hrtime(true) - $begin));"
BAR = 0.25


def plain_ns(program: Path) -> int:
    """Time that a program takes, without the start of the interpreter."""
    words, env = ["php", str(program.with_name("timed.php")), str(program)], {**os.environ, "XDEBUG_MODE": "off"}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
    return int(done.stderr.split()[-1])


def recorded_ns(program: Path) -> tuple[int, float]:
    """Time of the program's main code as recorded, and seconds until the recording ended."""
    words, begun = [sys.executable, "-m", "perflaw"], time.perf_counter()
    subprocess.run([*words, "record", "--", "php", program.name], cwd=program.parent, check=True, capture_output=True)
    took_s = time.perf_counter() - begun
    newest = sorted(path.name for path in (program.parent / ".perflaw/default/runs").iterdir())[-1]
    done = subprocess.run(
        [*words, "annotate", "--json", newest], cwd=program.parent, capture_output=True, text=True, check=True
    )
    [main] = [one for one in json.loads(done.stdout)["annotations"] if one["component"] == "{main}"]
    return main["total"], took_s


def main() -> int:
    """Print a line a program; 1 where the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds, missed = parser.parse_args().rounds, False
    for name, text in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "app.php"
            program.write_text(text)
            program.with_name("timed.php").write_text(TIMED)
            pairs = [(plain_ns(program), *recorded_ns(program)) for _ in range(rounds)]
        plain, told, took_s = (statistics.median(column) for column in zip(*pairs, strict=True))
        missed |= abs(told / plain - 1) > BAR
        print(
            f"{name:10} plain {plain / 1e6:6.1f} ms, told {told / 1e6:6.1f} ms ({told / plain:.2f}), ended after {took_s:.1f} s"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
