"""Configuration files: templates, lines, the paper's XML; put back as they were."""

import json

import pytest

from perflaw.errors import TargetError
from perflaw.explore.injectors.applying import apply_all, remember_all, restore_all, verify_all
from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.files import fill_template, line_value, set_line
from tests.explore.injecting import knob


def test_files_from_a_template(tmp_path):
    (tmp_path / "app.conf.in").write_text("# {keep}\ncache = {{x // 1KiB}}\npool={{max(x, 4)}}\n")
    one = knob(
        apply={"file": "app.conf", "template": "app.conf.in", "as": "conf"}, verify={"file": "app.conf", "key": "pool"}
    )
    context = Context(str(tmp_path))
    remembered = json.loads(json.dumps(remember_all([one], context)))
    apply_all([one], {"x": 8192}, context)
    assert (tmp_path / "app.conf").read_text() == "# {keep}\ncache = 8\npool=8192\n"
    assert context.files == {"conf": str(tmp_path / "app.conf")}
    assert verify_all([one], {"x": 8192}, context, "before") == ""
    assert restore_all([one], remembered, context) == [] and not (tmp_path / "app.conf").exists()
    (tmp_path / "app.conf.in").write_text("a\n{{unknown}}\n")
    with pytest.raises(TargetError, match=r"app.conf.in:2: \{\{unknown\}\}"):
        apply_all([one], {"x": 1}, context)


def test_lines_of_a_file(tmp_path):
    (tmp_path / "redis.conf").write_text("# maxmemory 1\nport 7000\nmaxmemory 100\n")
    both = [
        knob("x", apply={"file": "redis.conf", "key": "maxmemory"}, verify={"file": "redis.conf", "key": "maxmemory"}),
        knob("y", apply={"file": "redis.conf", "key": "hz"}, verify={"file": "redis.conf", "key": "hz"}),
    ]
    context = Context(str(tmp_path))
    remembered = remember_all(both, context)
    apply_all(both, {"x": 5, "y": 7}, context)
    assert (tmp_path / "redis.conf").read_text() == "# maxmemory 1\nport 7000\nmaxmemory 5\nhz 7\n"
    assert verify_all(both, {"x": 5, "y": 7}, context, "before") == "" and context.verified == {"x": 5, "y": 7}
    restore_all(both, remembered, context)
    assert (tmp_path / "redis.conf").read_text() == "# maxmemory 1\nport 7000\nmaxmemory 100\n"


def test_lines_keep_their_way_of_writing():
    assert set_line("a = 1\nab = 2\n", "a", "3") == "a = 3\nab = 2\n"
    assert set_line("worker_processes  4;\n", "worker_processes", "8") == "worker_processes  8;\n"
    assert set_line("", "a", "1") == "a = 1\n" and set_line("b: 1", "a", "2") == "b: 1\na: 2\n"
    assert line_value("a = '1'\n#a = 2\n", "a") == "1" and line_value("b = 1", "a") is None
    assert fill_template("{{ x }} {{}} {y} {{\n}}", {"x": True}, "t") == "true {{}} {y} {{\n}}"


def test_the_paper_s_xml(tmp_path):
    text = '<configuration>\n  <!-- k -->\n  <parameter name="x" value="1" unit="B"/>\n  <parameter value=\'a\' name=\'y\'/>\n'
    text += "</configuration>\n"
    (tmp_path / "template.xml").write_text(text)
    both = [
        knob(
            name,
            apply={"file": "c.xml", "template": "template.xml", "parameter": name},
            verify={"file": "c.xml", "parameter": name},
        )
        for name in "xy"
    ]
    context = Context(str(tmp_path))
    apply_all(both, {"x": 5, "y": 6}, context)
    assert (tmp_path / "c.xml").read_text() == text.replace('"1"', '"5"').replace("'a'", '"6"')
    assert verify_all(both, {"x": 5, "y": 6}, context, "before") == ""
    with pytest.raises(TargetError, match="no such parameter"):
        apply_all([knob("z", apply={"file": "c.xml", "template": "template.xml", "parameter": "z"})], {"z": 1}, context)
