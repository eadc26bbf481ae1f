"""Specifications as YAML: what is written comes back, and what a person breaks is told with its line."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.errors import DataError
from perflaw.specs.call_paths import expression_text, parse_expression, parse_path, path_text
from perflaw.specs.files import border_text, parse_specs, spec_yaml
from perflaw.types import PathGroup, PathSpec
from perflaw.types.specifications import MinedSpec, SpecFile
from tests.conftest import examples
from tests.report import specs_factory

NAMES = st.text(min_size=1, max_size=12).filter(lambda name: name.strip() and not name.startswith(r"\->"))
EDGES = st.tuples(NAMES, NAMES)
TERMS = st.lists(st.tuples(EDGES, st.booleans()), max_size=3).map(tuple)


@given(st.lists(TERMS, min_size=1, max_size=3).map(tuple))
def test_expressions_come_back(expression):
    assert parse_expression(expression_text(expression)) == expression


@given(st.lists(st.sampled_from(["a", "operator->", "f -> g", "x::y -> z", "λ", "'", '"']), min_size=1, max_size=5))
def test_paths_come_back(names):
    assert parse_path(path_text(names)) == tuple(names)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the end where an edge"),
        ('"a -> b" "c -> d"', "'and' or 'or' was expected"),
        ('"a -> b', "not closed"),
        ("e1", "an edge in quotes"),
        ('"a"', "1 functions"),
        ('"a -> b" and', "the end"),
        ("not always", "an edge in quotes"),
    ],
)
def test_broken_expressions_are_told(text, told):
    with pytest.raises(DataError, match=told):
        parse_expression(text)


def plain(file):
    """Without what the file does not keep: durations and spans."""
    return replace(file, specs=tuple(replace(one, histograms=(), span_ns=(0, 0)) for one in file.specs), source="")


def close(one, other):
    """Equal but for digits beyond those that are written."""
    if isinstance(one, float):
        return one == pytest.approx(other, rel=1e-5, abs=1e-6)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(close, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return all(close(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__)
    return one == other


def test_every_odd_thing_comes_back():
    file = specs_factory.specs()
    back = parse_specs(spec_yaml(file), "f.yaml")
    assert close(plain(back), plain(file))
    assert spec_yaml(back) == spec_yaml(file)


@st.composite
def files(draw):
    """A specification of one function with any names and numbers."""
    clusters = draw(st.integers(1, 4))
    borders = sorted(
        draw(
            st.lists(
                st.floats(1e-3, 1e15), min_size=clusters - 1, max_size=clusters - 1, unique_by=lambda x: f"{x:.8g}"
            )
        )
    )
    name = draw(NAMES)
    paths = draw(
        st.lists(st.lists(NAMES, max_size=3).map(lambda some: (*some, name)), min_size=1, max_size=6, unique=True)
    )
    counts = [draw(st.lists(st.integers(0, 10**9), min_size=clusters, max_size=clusters).map(tuple)) for _ in paths]
    split = draw(st.integers(0, len(paths)))
    calls = tuple(map(sum, zip(*counts[:split], strict=True))) if split else (1,) * clusters
    shares = tuple(n / sum(calls) for n in calls) if sum(calls) else (1.0, *[0.0] * (clusters - 1))
    expression = draw(st.lists(TERMS, min_size=1, max_size=2).map(tuple))
    group = PathGroup("g", tuple(range(split)), shares, calls, float(sum(calls)), expression)
    atoms = tuple(dict.fromkeys(edge for term in expression for edge, _ in term))
    return PathSpec(
        name, "time", "ns", tuple(borders), (0.5,) * (clusters - 1), (group,), tuple(paths), tuple(counts),
        tuple(range(split, len(paths))), True, 3, sum(map(sum, counts)) or sum(calls), 0.5, atoms=atoms,
    )  # fmt: skip


@settings(max_examples=examples(60), deadline=None)
@given(files())
def test_any_specification_comes_back(spec):
    file = SpecFile((MinedSpec(spec),))
    assert close(plain(parse_specs(spec_yaml(file), "f.yaml")), file)


BROKEN = [
    ("schema: perflaw.spec/1", "schema: perflaw.spec/2", "schema: 'perflaw.spec/1' was expected, not 'perflaw.spec/2'"),
    ("shares: [0.99, 0.01]", "shares: [0.99, 0.2]", ".shares: they add up to 1.19 and not to 1"),
    ("shares: [0.99, 0.01]", "shares: [1]", ".shares: 1 for 1 border: there must be 2"),
    ("shares: [0.99, 0.01]", "shares: [1.5, -0.5]", ".shares[0]: a number between 0 and 1 was expected, not 1.5"),
    ("shares: [0.99, 0.01]", "shares: [0.99, much]", ".shares[1]: a number was expected, not 'much'"),
    ("shares: [0.99, 0.01]", "shares: 0.99", ".shares: a list was expected"),
    ("shares: [0.99, 0.01]", "share: [0.99, 0.01]", ".share: unknown key; did you mean `shares`?"),
    ("borders: [70 ms]", "borders: [70 kg]", ".borders[0]: '70 kg' is not a time such as 70 ms"),
    ("borders: [70 ms]", "borders: [70 ms, 60 ms]", ".borders[1]: borders must increase"),
    ("listener -> proc_mutex_sysv_acquire\"", "listener\"", "when: call edge 'listener'"),
    ("metric: time", "metric: weight", ".metric: 'weight' is neither time nor cpu"),
    ("standing: inseparable", "standing: lost", "'lost' is neither inseparable nor quarantined"),
    ("stable: true", "stable: perhaps", "true or false was expected"),
    ("calls: [1980, 20]", "calls: [1980, -20]", "a whole number of at least 0 was expected, not -20"),
    ("semop', calls: [495, 5]", "other', calls: [495, 5]", "it does not end with semop"),
]  # fmt: skip
BROKEN_ON_ANOTHER_LINE = [
    ("schema: perflaw.spec/1", "skema: perflaw.spec/1", "schema: 'perflaw.spec/1' was expected, not nothing"),
    ("    shares: [0.99, 0.01]\n", "", "functions[0].groups[0]: key 'shares' is missing"),
    ("platforms: [0]", "platforms: [7]", "there is no platform 7"),
    ("calls: [1980, 20]", "calls: [1980, 20]\n    calls: [1980, 20]", "the key occurs twice"),
    ("functions:", "functions: {a: b", ": not YAML"),
    ("observations: 5", "observations: 5\n  colour: red", ".colour: unknown key; known: function"),
]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    BROKEN + BROKEN_ON_ANOTHER_LINE,
    ids=[new[:40] for _, new, _ in BROKEN + BROKEN_ON_ANOTHER_LINE],
)
def test_what_a_person_breaks_is_told_with_its_line(old, new, message):
    text = spec_yaml(specs_factory.specs())
    assert old in text
    with pytest.raises(DataError) as error:
        parse_specs(text.replace(old, new, 1), "f.yaml")
    assert message in str(error.value)
    line = str(text[: text.index(old)].count("\n") + 1) if (old, new, message) in BROKEN else r"\d+"
    assert re.match(rf"f\.yaml:{line}: ", str(error.value))


@pytest.mark.parametrize("text", ["", "# nothing\n", "- 1\n", "{", "a: &a [*a]\n", "\x00", "schema: perflaw.spec/1\n"])
def test_other_files_are_refused(text):
    with pytest.raises(DataError):
        parse_specs(text, "f.yaml")


def test_rounded_shares_are_taken_and_edited_ones_are_believed():
    text = spec_yaml(specs_factory.specs())
    rounded = parse_specs(text.replace("shares: [0.41, 0.59]", "shares: [0.333, 0.666]"), "f.yaml")
    group = rounded.specs[0].spec.groups[1]
    assert group.distribution == pytest.approx((1 / 3, 2 / 3), abs=1e-3)
    assert sum(group.distribution) == pytest.approx(1.0)
    edited = parse_specs(text.replace("shares: [0.99, 0.01]", "shares: [0.9, 0.1]"), "f.yaml")
    assert edited.specs[0].tallies == ()  # what the runs showed is not what a person says


@settings(max_examples=examples(40), deadline=None)
@given(st.floats(1e-3, 1e17))
def test_borders_keep_their_digits(border):
    text = spec_yaml(specs_factory.specs()).replace("[70 ms]", f"[{border_text(border)}]")
    assert parse_specs(text, "f.yaml").specs[0].spec.borders[0] == pytest.approx(border, rel=1e-8)
