"""What docs/study-files.md shows: its studies are read, its injector works and is as short as promised."""

import re
from pathlib import Path

import pytest

from perflaw.errors import UsageError
from perflaw.explore.injectors.applying import apply_all, verify_all
from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.registry import INJECTORS
from perflaw.explore.knobs import KEYS as KNOB_KEYS
from perflaw.explore.space import Space
from perflaw.explore.study_file import KEYS, SOURCES, read_study
from perflaw.explore.study_file import READING_TARGET_KEYS as TARGET_KEYS
from tests.pages import File, read_page

PAGE = (Path(__file__).parents[2] / "docs" / "study-files.md").read_text()


@pytest.fixture
def files(tmp_path):
    for step in read_page(PAGE):
        if isinstance(step, File):
            (tmp_path / step.name).write_text(step.text)
    return tmp_path


def test_the_studies_are_read(files):
    study = read_study(files / "study.yaml")
    assert Space(study.knobs, study.constraints).size == 8 + 8 + 8 + 2
    assert read_study(files / "sizes.py").budget.trials == 20
    xml = read_study(files / "spex.xml")
    assert (
        xml.target.run == "python serve.py {args}"
        and Space(xml.knobs, xml.constraints).size == 23
        and xml.repetitions == 2
    )


def test_the_injector_is_short_and_works(files):
    assert len((files / "settings.py").read_text().strip().splitlines()) <= 20
    study = read_study(files / "own.yaml")
    context = Context(str(files))
    apply_all(study.knobs, {"pool": 6}, context)
    context.document = {"pool": 6}
    assert verify_all(study.knobs, {"pool": 6}, context, "after") == ""
    assert (files / "settings.json").read_text() == '{"pool": 6}'


def test_the_expressions_of_the_page_are_accepted(files):
    text = (files / "study.yaml").read_text()
    (files / "study.yaml").write_text(
        text.replace('"threads*block <= 128KiB"', '"threads*block < 0.5*host.mem", "threads > 9"')
    )
    with pytest.raises(UsageError, match="nothing satisfies 'threads > 9'"):
        read_study(files / "study.yaml")


@pytest.mark.parametrize("word", sorted({*KEYS, *KNOB_KEYS, *TARGET_KEYS, *SOURCES, *INJECTORS}))
def test_every_key_is_on_the_page(word):
    assert re.search(rf"`[^`]*\b{word}\b[^`]*`", PAGE), word
