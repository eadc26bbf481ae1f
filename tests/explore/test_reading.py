"""Study files: what is understood."""

import pytest

from perflaw.errors import UsageError
from perflaw.types import Budget
from tests.explore.studies import FULL, SHORT, read


def test_the_specified_study_is_understood(tmp_path):
    study = read(tmp_path, FULL)
    page, cache, threads = study.knobs
    assert study.name == "study" and study.policy == "law" and study.folder == str(tmp_path)
    assert page.values == (1024, 4096, 16384, 65536) and page.default == 4096 and page.switch_cost == "rebuild"
    assert page.apply == ({"pragma": "page_size"}, {"sql": "VACUUM"}) and page.verify == {"pragma": "page_size"}
    assert (cache.low, cache.high, cache.scale, cache.unit) == (2**21, 2**33, "log2", "B")
    assert list(cache.apply[0]) == ["pragma", "expr"]  # the first key names the injector
    assert threads.apply == ({"arg": "--threads={}"},) and threads.verify is None
    assert study.target.ready == {"tcp": 7000} and study.target.workload == "./load --seconds 5"
    assert study.metrics[0].source == {"probe": "query", "rate": "count"} and study.metrics[0].goal == "max"
    assert study.budget == Budget(trials=60) and len(study.digest) == 64
    assert study.restore == {"snapshot": ["db"], "on": ["exit", "crash"]}


def test_short_forms(tmp_path):
    study = read(
        tmp_path,
        SHORT + "policy: {name: racing, start: 8, eta: 1e-1}\nminutes: 30\nmargin: 5 %\nload: {cpu: n, disk: 50MB/s}\n",
    )
    assert study.policy == "racing" and study.options == {"start": 8, "eta": 0.1}
    assert study.budget == Budget(None, 30, 0.05)
    assert study.load == {"cpu": "n", "disk": 50e6}
    assert [metric.source for metric in study.metrics] == [{"wall": True}, {"memory": True}, {"path": "a.b"}]
    assert [metric.unit for metric in study.metrics] == ["s", "B", ""]
    assert study.knobs[1].values == (5, 10) and study.knobs[1].workload
    plain = read(
        tmp_path,
        SHORT.replace('{run: "./prog {args} --size {size}", result: {json: stdout}}', '"./prog {args} {size}"'),
    )
    assert plain.target.run == "./prog {args} {size}"


def test_words_of_yaml_stay_words(tmp_path):
    study = read(
        tmp_path,
        SHORT.replace("values: [10, 5]", "values: [on, off, 010, null, 1e3]").replace("ordinal", "categorical"),
    )
    assert study.knobs[1].values == ("on", "off", "010", "null", "1e3")


def test_units_of_knobs(tmp_path):
    def knob(text):
        return read(tmp_path, SHORT.replace("{type: int, range: [1, 4],", "{" + text + ",")).knobs[0]

    assert (knob("type: int, range: [10, 2s], unit: ms").low, knob("type: int, range: [10, 2s], unit: ms").high) == (
        10,
        2000,
    )
    assert knob("type: float, range: [10ms, 1s]").unit == "s"
    assert knob("type: int, range: [10k, 1M]").high == 10**6
    assert knob("type: int, range: [1MiB, 4MiB], unit: KiB").low == 1024


@pytest.mark.parametrize("text", [FULL, SHORT])
def test_a_python_study_is_the_same(tmp_path, text):
    import yaml

    document = yaml.safe_load(text)
    if "restore" in document:
        document["restore"]["on"] = document["restore"].pop(True)  # YAML 1.1 reads `on` as true; ours does not
    one, other = read(tmp_path, text), read(tmp_path, f"study = {document!r}\n", "study.py")
    assert one.knobs == other.knobs and one.metrics == other.metrics and one.target == other.target
    assert one.restore == other.restore and one.budget == other.budget


def test_a_python_study_may_be_made_of_nouns(tmp_path):
    text = """
    from perflaw.types import Knob, Study, StudyMetric, Target
    knobs = (Knob("n", "int", low=1, high=4),)
    study = Study("mine", Target(run="./prog {n}"), knobs, (StudyMetric("s", {"wall": True}, "s", "min"),))
    """
    assert read(tmp_path, text, "study.py").name == "mine"
    with pytest.raises(UsageError, match="nothing applies it"):
        read(tmp_path, text.replace("{n}", ""), "study.py")
