"""The paper's XML as a study: the plain form is documented, every mistake is told with its line."""

import pytest

from perflaw.errors import UsageError
from perflaw.explore.injectors.files import parameter_value, set_parameter
from perflaw.explore.study_file import read_study

TEXT = """<?xml version="1.0"?>
<configuration name="sqlite">
  <target run="./load {args} --db {database}" result="json: stdout"/>
  <parameter name="database" value="trips.db"/>
  <parameter name="page_size" values="1KiB, 4KiB, 16KiB" value="4KiB" apply-arg="--page={}" verify-path="page_size"/>
  <parameter name="threads" min="1" max="8" apply="--threads={}"/>
  <parameter name="ratio" min="0.5" max="8" apply="--ratio={}"/>
  <parameter name="mode" values="wal,delete" apply-env="MODE"/>
  <parameter name="sync" type="bool" value="true" apply="--sync" workload="true"/>
  <constraint>threads &lt; 8 or page_size &gt; 1KiB</constraint>
  <metric name="throughput" path="queries" goal="max"/>
  <exploration policy="grid" trials_per_config="3" trials="100" margin="5 %"/>
</configuration>
"""


def read(tmp_path, text):
    (tmp_path / "study.xml").write_text(text)
    return read_study(tmp_path / "study.xml")


def test_it_is_understood(tmp_path):
    study = read(tmp_path, TEXT)
    assert study.name == "sqlite" and study.policy == "grid" and study.repetitions == 3
    assert study.budget.trials == 100 and study.budget.margin == 0.05
    assert study.target.run == "./load {args} --db trips.db" and study.target.result == {"json": "stdout"}
    assert {knob.name: knob.kind for knob in study.knobs} == {
        "page_size": "ordinal",
        "threads": "int",
        "ratio": "float",
        "mode": "categorical",
        "sync": "bool",
    }
    page, threads, _, mode, sync = study.knobs
    assert page.values == (1024, 4096, 16384) and page.default == 4096 and page.verify == {"path": "page_size"}
    assert (threads.low, threads.high, threads.apply) == (1, 8, ({"arg": "--threads={}"},))
    assert mode.apply == ({"env": "MODE"},) and sync.workload and sync.default is True
    assert study.constraints == ("threads < 8 or page_size > 1KiB",)
    assert study.metrics[0].source == {"path": "queries"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            '<parameter name="threads"',
            '<paramter name="threads"',
            "study.xml:6: <paramter>: unknown here; did you mean `parameter`",
        ),
        ("<configuration", "<settings", "study.xml:2: <settings>: unknown here"),
        ('name="threads"', "", "study.xml:6.*name is missing"),
        ('name="threads"', 'name="ratio"', "study.xml:7.*'ratio' occurs twice"),
        ('min="1" max="8"', 'min="1"', "min and max stand"),
        ('min="1"', 'min="9"', "study.xml:6: knobs.threads.range: its low end 9"),
        ("trials_per_config", "trials_per_conf", "did you mean `trials_per_config`"),
        ("verify-path", "verify-pth", "did you mean `verify-path`"),
        ('goal="max"', "", "no metric has a goal"),
        ("</configuration>", "", "study.xml:14: not XML"),
        ("&lt;", "<", "study.xml:10: not XML"),
        ("<target", "<parameter name='a' value='1'><constraint/></parameter><target", "within another element"),
        ('<?xml version="1.0"?>', '<!DOCTYPE a [<!ENTITY b "bbbb">]>', "entities are not read"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path, old, new, told):
    text = TEXT.replace(old, new, 1)
    if new == "<settings":
        text = text.replace("</configuration>", "</settings>")
    with pytest.raises(UsageError, match=told):
        read(tmp_path, text)


def test_values_are_quoted_for_xml():
    text = "<configuration><parameter name='a&amp;b' value='1'/></configuration>"
    changed = set_parameter(text, "a&b", '<"2">')
    assert parameter_value(changed, "a&b") == '<"2">' and "<parameter" in changed
    assert parameter_value(text, "none") is None
