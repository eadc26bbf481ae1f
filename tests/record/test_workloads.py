"""Workload files: what they mean, what is refused and where, and how they go together with the command line."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.documents import DocumentSource, toml_document
from perflaw.errors import PerflawError, StoreError, UsageError
from perflaw.record.plan import OutputPattern
from perflaw.record.run_features import file_features
from perflaw.record.workload_file import RunOptions, plan_workloads, read_workloads

FULL = """\
command = "sort.py --size {n}"
repeat = 2
timeout = 60
features = { threads = 4 }

[vary]
n = [100, 1000]

[outputs.compares]
pattern = 'compares: (\\d+)'

[[workload]]
name = "random"
args = "random"

[[workload]]
name = "a file"
command = ["other.py", "{n}", "two words"]
repeat = 1
timeout = 2.5
stdin = "in-{kind}.txt"
features = { threads = 1, bytes = 5e6 }
vary = { kind = ["x", "y"], n = [7] }
"""


@pytest.fixture
def plan(tmp_path):
    def make(text, **asked):
        path = tmp_path / "w.toml"
        path.write_text(text)
        return plan_workloads(read_workloads(path), RunOptions(**asked))

    return make


def test_everything_a_file_can_say(plan):
    made = plan(FULL)
    assert made.outputs == (OutputPattern("compares", r"compares: (\d+)"),)
    first, second, x, y, *again = made.runs
    assert first.command == ("sort.py", "--size", "100", "random")
    assert first.template == ("sort.py", "--size", "{n}", "random")
    assert (first.varied, first.declared, first.timeout) == ({"n": "100"}, {"threads": 4.0}, 60.0)
    assert x.command == ("other.py", "7", "two words")
    assert (x.stdin, y.stdin) == (Path("in-x.txt"), Path("in-y.txt"))
    assert (x.declared, x.timeout) == ({"threads": 1.0, "bytes": 5e6}, 2.5)
    assert x.label == "a file n=7 kind=x"
    assert again == [first, second], "rounds; what is repeated less often is left out of the later ones"


def test_the_command_line_comes_first(plan):
    made = plan(FULL, command=("new.py", "{n}"), vary={"n": ("5",)}, repeat=1, features={"threads": 8.0}, timeout=9.0)
    first, x, _ = made.runs
    assert first.command == ("new.py", "5", "random")
    assert x.command[0] == "other.py", "a workload's own command stays"
    assert all((one.timeout, one.declared["threads"]) == (9.0, 8.0) for one in made.runs)


def test_a_file_of_no_workloads_is_one(plan):
    [one] = plan("command = 'app.py 5'\n").runs
    assert (one.command, one.label) == (("app.py", "5"), "")
    assert len(plan("repeat = 3\n", command=("app.py",)).runs) == 3


def test_numbers_stand_in_commands_as_programs_read_them(plan):
    text = "command = ['app.py', 5, '{n}']\nvary.n = [1e6, 0.5, 12345678901234567890, '1e6', 1e300]"
    words = [one.command[1:] for one in plan(text).runs]
    assert words == [("5", n) for n in ("1000000", "0.5", "12345678901234567890", "1e6", "1e+300")]


def test_a_name_varied_for_all_needs_to_stand_in_some_workload_alone(plan):
    text = "vary.n = [1, 2]\n[[workload]]\ncommand = 'a.py {n}'\n[[workload]]\ncommand = 'b.py'\n"
    assert [one.command for one in plan(text).runs] == [("a.py", "1"), ("a.py", "2"), ("b.py",)]


WRONG = [
    ("command = 'a'\nrepeet = 3", "w.toml:2: repeet: unknown key; did you mean `repeat`?"),
    ("command = 5", ":1: command: a command line, or a list of its words, was expected, not 5"),
    ("command = 'a \"b'", "cannot be split into words (No closing quotation)"),
    ("command = []", ":1: command: a command line"),
    ("command = ['a', true]", ":1: command[1]: a text or a number was expected, not true"),
    ("command = 'a'\nrepeat = 0", ":2: repeat: a whole number of at least 1 was expected, not 0"),
    ("command = 'a'\nrepeat = true", ":2: repeat: a whole number of at least 1 was expected, not true"),
    ("command = 'a'\nrepeat = 2.0", ":2: repeat: a whole number of at least 1 was expected, not 2.0"),
    ("command = 'a'\ntimeout = -1", ":2: timeout: a number of seconds above 0 was expected, not -1"),
    ("command = 'a'\ntimeout = inf", ":2: timeout: a finite number was expected, not inf"),
    ("command = 'a'\ntimeout = '5'", ":2: timeout: a number was expected, not '5'"),
    ("command = 'a'\nstdin = 5", ":2: stdin: a text was expected, not 5"),
    ("command = 'a'\nstdin = ''", ":2: stdin"),
    ("command = 'a'\nfeatures = 5", ":2: features: a mapping was expected, not 5"),
    ("command = 'a'\n[features]\nx = 1\ny = 'z'", ":4: features.y: a number was expected, not 'z'"),
    ("command = 'a'\nfeatures = { x = nan }", ":2: features.x: a finite number was expected, not nan"),
    ("command = 'a'\n[features]\n'x y' = 1", ":3: features.x y: a name begins with a letter"),
    ("command = 'a {n}'\n\nvary = { n = 5 }", ":3: vary.n: a list was expected, not 5"),
    ("command = 'a {n}'\n[vary]\nn = []", ":3: vary.n: at least one item"),
    ("command = 'a {n}'\n[vary]\nn = [1, [2]]", ":3: vary.n[1]: a text or a number was expected, not a list"),
    ("command = 'a'\n[vary]\nn = [1]", ":3: vary.n: no effect: {n} occurs nowhere"),
    ("command = 'a'\n[[workload]]\n[workload.vary]\nn = [1]", ":4: workload[0].vary.n: no effect"),
    ("command = 'a'\nworkload = 5", ":2: workload: a list was expected, not 5"),
    ("command = 'a'\n[workload]\nname = 'x'", ":2: workload: a list was expected, not a mapping"),
    ("command = 'a'\n[[workload]]\nname = 'x'\n[[workload]]\nname = 'x'", ":5: workload[1].name: an earlier"),
    ("command = 'a'\n[[workload]]\nname = 5", ":3: workload[0].name: a text was expected, not 5"),
    ("command = 'a'\n[[workload]]\noutputs = {}", ":3: workload[0].outputs: unknown key"),
    ("[[workload]]\ncommand = 'a'\nargs = 'b'", ":3: workload[0].args: args follow the common command"),
    ("[[workload]]\nname = 'x'", "x: no command"),
    ("repeat = 2", "no command"),
    ("command = 'a'\n[outputs]\nx = 'y'", ":3: outputs.x: a mapping was expected, not 'y'"),
    ("command = 'a'\n[outputs.x]\nregex = 'y'", ":3: outputs.x.regex: unknown key; known: pattern"),
    ("command = 'a'\n[outputs.x]", ":2: outputs.x: key 'pattern' is missing"),
    ("command = 'a'\n[outputs.x]\npattern = '('", ":3: outputs.x.pattern: '(' is not a regular expression"),
    ("command = 'a {n}'\nfeatures = { n = 1 }\n[vary]\nn = [1]", "the feature would have two values"),
    ("command = 'a'\ncommand = 'b'", "line 2"),
    ("command = ", "line 1"),
    ("\ufeffcommand = 5", ":1: command: a command line"),
]


@pytest.mark.parametrize(("text", "told"), WRONG, ids=[told for _, told in WRONG])
def test_what_is_wrong_is_told_with_its_place(plan, text, told):
    with pytest.raises(UsageError) as error:
        plan(text)
    assert told in str(error.value)
    assert "w.toml" in str(error.value) or "--vary" in str(error.value)
    assert error.value.next_command
    assert "\n" not in str(error.value)


def test_what_the_command_line_varies_has_to_stand_somewhere(plan):
    with pytest.raises(UsageError, match="--vary m=… has no effect"):
        plan(FULL, vary={"m": ("1",)})


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(StoreError, match="no such file"):
        read_workloads(tmp_path / "missing.toml")
    (tmp_path / "latin.toml").write_bytes(b"command = '\xe4'")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_workloads(tmp_path / "latin.toml")


def test_lines_of_dotted_and_quoted_keys_and_nested_tables():
    text = "a.b = 1 # c = 2\n['x y'.z]\n'k k' = 1\n[[t]]\n[t.u]\nv = 1\n[[t]]\n[t.u]\nv = 2"
    top = toml_document(text, DocumentSource("w.toml"))

    def line(*key):
        node = top
        for name in key:
            node = node.child(name)
        return node.line

    assert line("a", "b") == 1
    assert line("x y", "z", "k k") == 3
    assert (line("t", 0, "u", "v"), line("t", 1, "u", "v")) == (6, 9)
    assert line("t", 1, "u", "w") == 8, "a key that is missing has the line of its table"
    assert line("nothing") is None


VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(-5, 5), st.floats(), st.text(max_size=5)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abn", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["command", "args", "name", "repeat", "timeout", "stdin", "features", "vary", "workload", "outputs", "x"]
)


def toml(value):
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(char):08x}" for char in value) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
    return str(value)


@given(st.dictionaries(KEYS, VALUES), st.lists(st.dictionaries(KEYS, VALUES), max_size=2))
def test_any_values_are_understood_or_refused_by_one_line(tmp_path_factory, top, workloads):
    text = "".join(f"{key} = {toml(value)}\n" for key, value in top.items() if key != "workload" or not workloads)
    text += "".join(
        "[[workload]]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in one.items()) for one in workloads
    )
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(text)
    try:
        runs = plan_workloads(read_workloads(path), RunOptions()).runs
    except PerflawError as error:
        assert "\n" not in str(error)
    else:
        assert all(one.command for one in runs)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 3))
def test_every_workload_is_made_as_often_as_it_says_in_rounds(tmp_path_factory, repeats, values):
    path = tmp_path_factory.getbasetemp() / "rounds.toml"
    text = f"command = 'app.py {{n}}'\nvary.n = {list(range(values))}\n"
    path.write_text(text + "".join(f"[[workload]]\nname = '{i}'\nrepeat = {r}\n" for i, r in enumerate(repeats)))
    labels = [one.label for one in plan_workloads(read_workloads(path), RunOptions()).runs]
    for place, repeat in enumerate(repeats):
        for value in range(values):
            assert labels.count(f"{place} n={value}") == repeat
    first = sum(values for _ in repeats)
    assert len(set(labels[:first])) == first, "the first round has everything once"


def test_texts_have_lines_and_binary_files_have_none(tmp_path):
    """A video has newlines by chance; a text may be in any usual encoding."""
    contents = {
        "text": "ä\nb\n".encode(),
        "latin": "ä\nb\n".encode("latin-1"),
        "video": bytes(range(256)),
        "empty": b"",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    lines = {name: file_features(tmp_path / name).get("lines") for name in contents}
    assert lines == {"text": 2, "latin": 2, "video": None, "empty": 0}
