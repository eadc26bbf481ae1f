"""Programs in PHP under the real Xdebug: exact call trees, features by type, memory; and what Xdebug's traces may be."""

import json
import os
import subprocess
import sys

import pytest

from perflaw.record.php.trace import items
from perflaw.store.experiment import open_experiment
from tests.conftest import assert_identities, run_perflaw

APP = r"""<?php
namespace Shop;

class Basket {
    public $owner = 'me';
    public $count = 0;
    public function add(int $n, string $text, array $rows, ?Basket $other = null): int {
        $this->count += $n;
        return \strlen($text) + \count($rows);
    }
    public static function make(): static { return new static(); }
}
function fall(int $depth) { if ($depth == 0) throw new \Exception('down'); fall($depth - 1); }
function steps(int $n) { for ($i = 0; $i < $n; $i++) yield $i; }
function hold(int $size) { return \str_repeat('x', $size); }

$basket = Basket::make();
foreach ([1, 2, 3] as $n) {
    $basket->add($n, str_repeat("a\t'é\\", $n), range(1, $n), $basket);
}
try { fall(4); } catch (\Exception $error) { }
foreach (steps(3) as $step) { usort($list, fn ($a, $b) => $a <=> $b) ?? 0; }
"""
APP = APP.replace("foreach (steps(3) as $step) {", "$list = [3, 1, 2];\nforeach (steps(3) as $step) {").replace(
    " ?? 0", ""
)


CALLS = {
    "Exception->__construct": 1,
    "Shop\\Basket->add": 3,
    "Shop\\Basket::make": 1,
    "Shop\\fall": 5,
    "Shop\\steps": 5,  # a generator: each time that it goes on
    "Shop\\{closure:app.php:23}": 7,
    "range": 3,
    "str_repeat": 3,
    "usort": 3,
    "{main}": 1,
}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("app")
    (folder / "app.php").write_text(APP)
    return folder, run_perflaw(folder, "record", "--", "php", "app.php")


def newest(folder, experiment="default"):
    tables = open_experiment(experiment, folder).recordings()[-1].tables()
    assert_identities(tables)
    return tables


def features(tables, name):
    """The features of each sampled call of a function, in the order of their ends."""
    names = {row[0]: row[1] for row in tables["components"]}
    rows = {row[1]: {} for row in tables["invocations"] if names[row[2]] == name}
    for _, sequence, feature, value, text in tables["features"]:
        if sequence in rows:
            rows[sequence][feature] = value if text is None else text
    return [rows[sequence] for sequence in sorted(rows)]


def test_every_call_is_counted_with_place_and_parameters(app):
    folder, done = app
    assert "nothing lost" in done.stderr
    components = {row[1]: row for row in newest(folder)["components"]}
    assert {name: row[7] for name, row in components.items()} == CALLS
    add = components["Shop\\Basket->add"]
    assert (add[2].endswith("app.php"), add[3], add[4:7]) == (True, 7, ("php", "own", "n,text,rows,other"))
    assert components["range"][5] == "library"


def test_arguments_are_features_by_their_type(app):
    tables = newest(app[0])
    assert features(tables, "Shop\\Basket->add") == [
        {
            **{"n": n, "text.len": 6 * n, "rows.len": n},
            **{"other.type": "Shop\\Basket", "other.owner.len": 2, "other.count": counted},
        }
        for n, counted in ((1, 0), (2, 1), (3, 3))
    ]
    assert {tuple(one) for one in features(tables, "usort")} == {("array.len", "callback.type")}
    assert [one["depth"] for one in features(tables, "Shop\\fall")] == [0, 1, 2, 3, 4]


def test_calls_have_their_places_and_the_growth_of_the_memory(perflaw, tmp_path):
    (tmp_path / "app.php").write_text(
        "<?php\nfunction hold($size) { return str_repeat('x', $size); }\n$all = [];\n"
        "for ($i = 0; $i < 30; $i++) { $all[] = hold(10000 * (1 + $i % 6)); }\n$all[] = hold(100000);\n"
    )
    perflaw("record", "--", "php", "app.php")
    law = json.loads(perflaw("annotate", "--metric", "allocated_bytes", "--json").stdout)["annotations"]
    [hold] = [one for one in law if one["component"] == "hold"]
    assert hold["features"] == ["size"]
    assert hold["scopes"][0]["law"]["family"] == "linear"
    tables = newest(tmp_path)
    assert sorted(row[4] for row in tables["calltree"]) == [0, 0, 2, 2, 4, 5]


@pytest.mark.slow
def test_a_function_of_a_real_package_has_its_law(perflaw, tmp_path):
    """Debian's php-parser on PHP of growing length: one method of the lexer a token, so calls follow the length."""
    (tmp_path / "app.php").write_text(
        "<?php\nrequire '/usr/share/php/PhpParser/autoload.php';\n"
        "$parser = (new PhpParser\\ParserFactory)->create(PhpParser\\ParserFactory::PREFER_PHP7);\n"
        "for ($n = 1; $n <= 40; $n += 3) {\n"
        "    $tree = $parser->parse('<?php ' . str_repeat(\"function f(\\$x) { return \\$x + 1; }\\n\", $n));\n}\n"
    )
    perflaw("record", "--", "php", "app.php")
    found = json.loads(perflaw("annotate", "--metric", "events", "--json").stdout)["annotations"]
    [parse] = [one for one in found if one["component"] == "PhpParser\\ParserAbstract->parse"]
    assert (parse["features"], parse["scopes"][0]["law"]["family"]) == (["code.len"], "linear")


def test_a_program_is_the_same_as_ever(perflaw, tmp_path):
    (tmp_path / "app.php").write_text(
        "<?php\necho ini_get('precision'), ' ', implode(',', array_slice($argv, 1)), ' ', stream_get_contents(STDIN);\n"
        "fwrite(STDERR, 'aside');\nexit(3);\n"
    )
    words = ["php", "-d", "precision=5", "app.php", "a b", "2"]
    plain = subprocess.run(words, cwd=tmp_path, input="in", capture_output=True, text=True)
    done = run_perflaw(tmp_path, "record", "--", *words, input="in", status=3)
    assert done.stdout == plain.stdout == "5 a b,2 in"
    assert done.stderr.startswith(plain.stderr)
    assert "perflaw: times: Xdebug slows all code several times" in done.stderr
    assert run(tmp_path)["status"] == 3


def run(folder):
    return json.loads(sorted((folder / ".perflaw/default/runs").glob("*/run.json"))[0].read_text())


def test_programs_that_it_starts_are_its_children(perflaw, tmp_path):
    (tmp_path / "child.php").write_text("<?php\nfunction work($n) { return range(1, $n); }\nwork(5);\n")
    (tmp_path / "app.php").write_text("<?php\nfor ($i = 0; $i < 2; $i++) { exec('php child.php'); }\n")
    perflaw("record", "--", "php", "app.php")
    runs = [json.loads(path.read_text()) for path in sorted((tmp_path / ".perflaw/default/runs").glob("*/run.json"))]
    assert [bool(one["parent"]) for one in runs] == [False, True, True]
    assert [one["calls"] for one in runs] == [3, 3, 3]


def test_of_a_killed_program_what_was_written_is_kept(perflaw, tmp_path):
    (tmp_path / "app.php").write_text(
        "<?php\nfunction work($n) { return $n; }\nfor ($i = 0; $i < 20000; $i++) { work($i); }\n"
        "posix_kill(posix_getpid(), 9);\n"
    )
    done = perflaw("record", "--", "php", "app.php", status=137)
    assert "incomplete" in done.stderr
    [work] = [row for row in newest(tmp_path)["components"] if row[1] == "work"]
    assert 10_000 < work[7] <= 20_000


def test_select_leaves_functions_out(perflaw, tmp_path):
    (tmp_path / "app.php").write_text(APP)
    perflaw("record", "--select", "Shop*", "--exclude", "*fall", "--", "php", "app.php")
    names = {row[1] for row in newest(tmp_path)["components"]}
    assert names == {name for name in CALLS if name.startswith("Shop") and not name.endswith("fall")}


def test_php_without_xdebug_is_refused(perflaw, tmp_path):
    (tmp_path / "app.php").write_text("<?php\n")
    env = {**os.environ, "PHP_INI_SCAN_DIR": str(tmp_path)}
    refused = run_perflaw(tmp_path, "record", "--", "php", "app.php", status=2, env=env).stderr
    assert "PHP without Xdebug" in refused and "apt install php-cli php-xdebug" in refused
    assert "nothing was recorded" in perflaw("record", "--", "php", "-n", "app.php", status=2).stderr
    refused = perflaw("record", "--collect", "lines", "--", "php", "app.php", status=2).stderr
    assert "--collect lines" in refused


SETTINGS = [
    "xdebug.mode=trace",
    "xdebug.start_with_request=yes",
    "xdebug.trace_output_name=trace",
    "xdebug.output_dir=.",
]


def test_the_doctor_knows_php(perflaw, tmp_path):
    assert "function traces of Xdebug 3." in perflaw("doctor").stdout
    env = {**os.environ, "PHP_INI_SCAN_DIR": str(tmp_path)}
    assert "Xdebug is missing" in run_perflaw(tmp_path, "doctor", env=env).stdout


def traced(folder, *settings):
    words = [word for setting in [*SETTINGS, *settings] for word in ("-d", setting)]
    subprocess.run(["php", *words, "app.php"], cwd=folder, check=True, capture_output=True)
    [path] = [path for path in folder.iterdir() if path.name.startswith("trace.")]
    return path


@pytest.mark.parametrize("packed", [0, 1])
def test_a_trace_is_imported(perflaw, tmp_path, packed):
    (tmp_path / "app.php").write_text(APP)
    trace = traced(tmp_path, "xdebug.trace_format=1", "xdebug.use_compression=0")
    if packed:
        subprocess.run(["gzip", trace], check=True)
        trace = trace.with_name(f"{trace.name}.gz")
    perflaw("import", trace.name)
    assert {row[1]: row[7] for row in newest(tmp_path)["components"]} == CALLS
    assert features(newest(tmp_path), "Shop\\fall")[0] == {"depth": 0}


@pytest.mark.parametrize("form", [0, 2])
def test_forms_for_people_are_refused(perflaw, tmp_path, form):
    (tmp_path / "app.php").write_text(APP)
    trace = traced(tmp_path, f"xdebug.trace_format={form}", "xdebug.use_compression=0")
    assert "xdebug.trace_format=1" in perflaw("import", trace.name, status=2).stderr


HEAD = "Version: 3.2.0\nFile format: 4\nTRACE START [2026-11-23 13:12:42.655777]\n"


def test_a_damaged_line_is_named_and_a_missing_end_is_told(perflaw, tmp_path):
    (tmp_path / "bad.xt").write_text(HEAD + "1\tx\t0\tsoon\t398080\t{main}\t1\t\t/app.php\t0\t0\n")
    assert "bad.xt:4: damaged" in perflaw("import", "bad.xt", status=2).stderr
    huge = f"1\t0\t0\t{'9' * 30}.0\t{'9' * 30}\t{{main}}\t1\t\t/app.php\t0\t0\n"
    (tmp_path / "huge.xt").write_text(HEAD.replace("2026", "9" * 9) + huge)
    assert "huge.xt:4: damaged" in perflaw("import", "huge.xt", status=2).stderr
    begun = "1\t0\t0\t0.000283\t398080\t{main}\t1\t\t/app.php\t0\t0\n2\t1\t0\t0.0003\t398080\tf\t1\t\t/app.php\t1\t2"
    (tmp_path / "cut.xt").write_text(HEAD + begun + "\t'aa'...\t[0 => 1, ...]\n2\t1\t1\t0.0004\t398080\n")
    said = perflaw("import", "cut.xt").stderr
    assert "the trace has no end" in said
    assert "2 strings and arrays were too long" in said
    assert features(newest(tmp_path), "f") == [{}]


@pytest.mark.slow
def test_the_memory_of_an_import_is_bounded(tmp_path):
    """A trace of ten times the length needs no more memory."""
    peaks = []
    for calls in (30_000, 300_000):
        with (tmp_path / "long.xt").open("w") as file:
            file.write(HEAD + "1\t0\t0\t0.000001\t100\t{main}\t1\t\t/app.php\t0\t0\n")
            for n in range(1, calls):
                at, end = 2 * n / 1e6, (2 * n + 1) / 1e6
                file.write(f"2\t{n}\t0\t{at:.6f}\t100\tf\t1\t\t/app.php\t{n % 50}\t1\t{n}\n2\t{n}\t1\t{end:.6f}\t100\n")
        words = [sys.executable, "-c", MEASURED, "import", "-e", f"e{calls}", "long.xt"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.split()[-1]))
    assert peaks[1] < 1.15 * peaks[0]


MEASURED = """
import resource, sys
from perflaw.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", ([], False)),
        (b"...", ([], True)),
        (
            b"0 => 'a\\', b', 1 => class P { public $x = [0 => 1] }",
            ([b"0 => 'a\\', b'", b"1 => class P { public $x = [0 => 1] }"], False),
        ),
        (b"public $a = 1; private $b = 'x; y'", ([b"public $a = 1", b"private $b = 'x; y'"], False)),
        (b"0 => 1, 1 => 2, ...", ([b"0 => 1", b"1 => 2"], True)),
    ],
)
def test_values_are_split_where_php_separates_them(text, found):
    assert items(text) == found
