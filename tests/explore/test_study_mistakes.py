"""What every mistake in a study file is told, with its place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.documents import yaml_document
from perflaw.errors import UsageError
from perflaw.explore.study_file import read_study, study_of, study_source
from tests.explore.studies import SHORT, read

BAD = [
    (
        "type: int, range: [1, 4]",
        "type: integer, range: [1, 4]",
        r":4: knobs.n.type: unknown knob type 'integer'; did you mean `int`",
    ),
    ("range: [1, 4]", "range: [4, 1]", r":4: knobs.n.range: its low end 4 is above its high end 1"),
    ("range: [1, 4]", "range: [4, 4]", r":4: knobs.n.range: it is empty"),
    ("range: [1, 4]", "range: [1]", r"two ends"),
    ("range: [1, 4]", "range: [1, x]", r"a number .* was expected, not 'x'"),
    ("range: [1, 4]", "range: [1.5, 4]", r"not a whole number"),
    ("range: [1, 4]", "range: [10ms, 4KiB]", r"is in B, but the knob's unit is s"),
    ("range: [1, 4]", "range: [1, 4KiB], unit: s", r"4KiB is in B, but the knob's unit is s"),
    ("range: [1, 4]", "range: [0, 4], scale: log2", r"logarithmic scale needs a range above 0"),
    ("range: [1, 4]", "range: [1, 4], scale: log3", r"unknown scale 'log3'; did you mean `log2`"),
    ("range: [1, 4]", "range: [1, 4], default: 9", r":4: knobs.n.default: the default 9 is outside the range 1 to 4"),
    ("range: [1, 4]", "range: [1, 4], values: [1]", r"a knob of type int has a range"),
    ("range: [1, 4]", "range: [1, 4], defualt: 1", r":4: knobs.n.defualt: unknown key; did you mean `default`"),
    ("range: [1, 4]", "range: [1, 4], range: [1, 2]", r"the key occurs twice"),
    ("type: int, range: [1, 4],", "range: [1, 4],", r":4: knobs.n: its type is missing"),
    ("type: int, range: [1, 4],", "type: int,", r"its range is missing"),
    ("values: [10, 5]", "values: [10, 5, 10]", r":5: knobs.size.values: 10 occurs twice"),
    ("values: [10, 5]", "values: [1KiB, 1024]", r"1024 occurs twice"),
    ("values: [10, 5]", "values: [10]", r"at least two values"),
    ("values: [10, 5]", "values: []", r"at least two values"),
    ("values: [10, 5]", "values: [10, 5], default: 7", r"not one of the values"),
    ("type: ordinal, values: [10, 5]", "type: bool, values: [10, 5]", r"a bool knob is false or true"),
    ("  n:", "  n-x:", r"cannot be a knob's name"),
    ("  n:", "  min:", r"has a meaning of its own"),
    ("  n:", "  lambda:", r"has a meaning of its own"),
    ("  n:", "  ok:", r"a metric and a knob have the same name"),
    ("apply: {arg:", "apply: {agr:", r":4: knobs.n: unknown injector 'agr': did you mean `arg`"),
    ("apply: {arg:", "apply: {path:", r"path can only verify"),
    ('apply: {arg: "-n {}"}', 'apply: {command: "set {}"}', r":4: knobs.n: verify is missing"),
    ('apply: {arg: "-n {}"}', "apply: {}", r"it names no injector"),
    ('apply: {arg: "-n {}"}', 'apply: {arg: "-n {}", expr: "m+1"}', r"names m, which is no knob"),
    ('apply: {arg: "-n {}"}', 'apply: {arg: "-n {}", expr: "n.x"}', r"character 1"),
    ('apply: {arg: "-n {}"}', 'apply: {env: N, txt: "a{}"}', r"env has no option 'txt'; did you mean `text`"),
    ('apply: {arg: "-n {}"}', "apply: {file: a.conf}", r"file: it needs a template, a key or a parameter"),
    ('apply: {arg: "-n {}"}', "apply: {pragma: page_size}", r"pragma needs to know where SQL goes"),
    ("./prog {args}", "./prog", r":4: knobs.n: its argument is not used: no command of the target contains {args}"),
    ('apply: {arg: "-n {}"}', 'apply: {arg: "-n {}", map: 4}', r"map takes keys"),
    ('apply: {arg: "-n {}"}', 'apply: {arg: "-n {}", when: never}', r"unknown when 'never'"),
    (', apply: {arg: "-n {}"}', "", r"nothing applies it"),
    ("wall: true, goal: min", "wall: true", r"no metric has a goal"),
    ("wall: true, goal: min", "wall: true, goal: least", r":6: metrics.seconds.goal: unknown goal 'least'"),
    ("wall: true, goal: min", "wal: true, goal: min", r"metrics.seconds.wal: unknown key; did you mean `wall`"),
    ("wall: true, goal: min", "wall: true, cpu: true, goal: min", r"there are several"),
    ("wall: true, goal: min", "goal: min", r"there is none"),
    ("peak: memory", "peak: memroy", r"unknown metric source 'memroy'; did you mean `memory`"),
    ("path: a.b", 'regex: "(("', r"is not a regular expression"),
    ("path: a.b", "probe: q", r"needs one of rate"),
    ("path: a.b", "probe: q, rate: fast", r"unknown rate 'fast'"),
    ("path: a.b", "probe: q, rate: count, mean: x", r"needs one of rate"),
    ("metrics:", "metric:", r":6: metric: unknown key; did you mean `metrics`"),
    ("metrics: {", "trials: many\nmetrics: {", r":6: trials: a number .* was expected, not 'many'"),
    ("metrics: {", "trials: 0\nmetrics: {", r"trials: 0 is not between 1"),
    ("metrics: {", "trials: 1.5\nmetrics: {", r"a whole number"),
    ("metrics: {", "trials: 10ms\nmetrics: {", r"10ms is in s, but a plain number was expected"),
    ("metrics: {", "margin: 5\nmetrics: {", r"no share between 0 and 1"),
    ("metrics: {", "minutes: 4KiB\nmetrics: {", r"is in B"),
    ("metrics: {", "repetitions: -1\nmetrics: {", r"repetitions: -1"),
    ("metrics: {", "early_stop: maybe\nmetrics: {", r"true or false"),
    ("metrics: {", "load: {cpus: 1}\nmetrics: {", r"did you mean `cpu`"),
    ("metrics: {", "load: {memory: 1s}\nmetrics: {", r"is in s, but B was expected"),
    ("metrics: {", "restore: {snapshot: [a], on: [end]}\nmetrics: {", r"unknown time 'end'"),
    ("metrics: {", "policy: {start: 1}\nmetrics: {", r"its name is missing"),
    ("metrics: {", 'name: "../x"\nmetrics: {', r"cannot name a folder"),
    (
        "metrics: {",
        'constraints: ["n > m"]\nmetrics: {',
        r":6: constraints\[0\]: 'n > m' names m, which is no knob; known: n, size",
    ),
    ("metrics: {", 'constraints: ["n >"]\nmetrics: {', r"it cannot be read"),
    (
        "metrics: {",
        'constraints: ["n > 4"]\nmetrics: {',
        r"nothing satisfies 'n > 4' \(all 8 combinations were tried\)",
    ),
    ("metrics: {", 'constraints: ["n > 2", "n < 2"]\nmetrics: {', r"nothing satisfies all 2 constraints together"),
    ("target: {run:", "target: {start: x, run:", r"either run .* or start"),
    ("result: {json: stdout}", "workload: x", r"only a server"),
    ("result: {json: stdout}", "result: {xml: stdout}", r"target.result.xml: unknown key"),
    ("result: {json: stdout}", "ready: {tcp: x}", r"no port"),
    ("result: {json: stdout}", "ready: {tcp: 1, file: x}", r"one of tcp, http, file, output"),
    ("result: {json: stdout}", "stop: SIGTREM", r"unknown signal SIGTREM; did you mean"),
    ("result: {json: stdout}", "timeout: 4KiB", r"is in B, but s was expected"),
    ("result: {json: stdout}", "remote: db1", r"no host:port"),
]


@pytest.mark.parametrize(("old", "new", "told"), BAD, ids=[f"{at}" for at in range(len(BAD))])
def test_mistakes_are_told_with_their_place(tmp_path, old, new, told):
    assert old in SHORT
    with pytest.raises(UsageError, match=told) as caught:
        read(tmp_path, SHORT.replace(old, new, 1))
    assert "study.yaml:" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "nothing in it"),
        ("# only\n", "nothing in it"),
        ("[1, 2]", "a mapping was expected, not a list"),
        ("just words", "a mapping was expected, not 'just words'"),
        ("a: [", "bad.yaml:1: not YAML"),
        ("x:\n\ty: 1", "not YAML"),
        ("target: x\nknobs: {}\nmetrics: {}", "a study needs a knob"),
        ("target: x\nknobs: [a]\nmetrics: {}", "knobs: a mapping was expected"),
        ("knobs: {}\nmetrics: {}", "key 'target' is missing"),
        ("? [a]\n: 1", "plain words"),
        ("a: !!python/name:os.system x", "not allowed"),
        ("a: &x [*x]", "refers to itself|not YAML"),
        ("target: !x 1", "tag"),
        ("a: 1\nb: 2\na: 3", "bad.yaml:3: a: the key occurs twice"),
        ("\x00", "not YAML"),
    ],
)
def test_what_is_no_study(tmp_path, text, told):
    with pytest.raises(UsageError, match=told):
        read(tmp_path, text, "bad.yaml")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    for name, told in [("none.yaml", "No such file"), (".", "folder"), ("binary.yaml", "UTF-8")]:
        with pytest.raises(UsageError, match=told):
            read_study(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1/0", r"s.py:1: it raised: ZeroDivisionError"),
        ("x = 1", "no study in it"),
        ("study = 4", "a mapping was expected, not 4"),
        ("a b", "SyntaxError"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("study = {'target': open}", "neither a text"),
    ],
)
def test_python_studies_that_are_none(tmp_path, text, told):
    with pytest.raises(UsageError, match=told):
        read(tmp_path, text, "s.py")


def test_aliases_do_not_blow_up():
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    with pytest.raises(UsageError, match="too large"):
        yaml_document(bomb, study_source("bomb.yaml"))


def test_defaults_that_break_a_constraint(tmp_path):
    text = SHORT.replace("range: [1, 4]", "range: [1, 4], default: 1").replace(
        "values: [10, 5]", "values: [10, 5], default: 5"
    )
    with pytest.raises(UsageError, match="the defaults are invalid: it breaks the constraint 'n > 1'"):
        read(tmp_path, text + 'constraints: ["n > 1"]\n')


def test_a_scaled_unit_and_a_quantity_do_not_mix(tmp_path):
    text = SHORT.replace("range: [1, 4]", "range: [1, 4], unit: ms") + 'constraints: ["n > 2ms"]\n'
    with pytest.raises(UsageError, match="mixes n, which is in ms"):
        read(tmp_path, text)


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text):
    try:
        study_of(yaml_document(text, study_source("any.yaml")), "any")
    except UsageError as error:
        assert "any.yaml" in str(error)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "target",
                        "knobs",
                        "metrics",
                        "n",
                        "type",
                        "int",
                        "range",
                        "run",
                        "apply",
                        "arg",
                        "goal",
                        "wall",
                        "policy",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_no_shape_breaks_the_reader(document):
    whole = {"target": document, "knobs": document, "metrics": document, "policy": document}
    for one in (document, whole):
        try:
            study_of(yaml_document(json.dumps(one), study_source("any.yaml")), "any")
        except UsageError as error:
            assert "any.yaml" in str(error)
