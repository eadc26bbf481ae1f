"""What people expect of a command line: hints for mistyped words, completion, and defaults of a project."""

import json
import os
import subprocess
import sys

import pytest

from perflaw.__main__ import start
from perflaw.cli.configuration import KEYS, defaults
from perflaw.cli.main import VERBS
from perflaw.errors import UsageError


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["anotate"], "Did you mean annotate"),
        (["recrod", "--", "app.py"], "Did you mean record"),
        (["qqq"], "perflaw --help lists all"),
        (["annotate", "--experimnt", "x"], "--experiment"),
    ],
)
def test_a_mistyped_word_is_answered_with_what_is_like_it(perflaw, tmp_path, words, hint):
    assert hint in perflaw(*words, cwd=tmp_path, status=2).stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_each_shell_is_printed(perflaw, tmp_path, shell):
    assert f"_PERFLAW_COMPLETE={shell}_complete" in perflaw("completion", shell, cwd=tmp_path).stdout


@pytest.mark.parametrize(("line", "known"), [("an", "annotate"), ("annotate --exp", "--experiment")])
def test_verbs_and_options_are_completed(line, known):
    words = f"perflaw {line}"
    wanted = {"_PERFLAW_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    code = "from perflaw.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | wanted, capture_output=True, text=True)
    assert f"plain,{known}" in done.stdout.splitlines()


def test_an_interrupt_while_the_command_line_is_loading_shows_no_traceback(monkeypatch):
    class Loading:
        @property
        def main(self):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "perflaw.cli.main", Loading())
    with pytest.raises(SystemExit) as ended:
        start()
    assert ended.value.code == 130


def written(folder, text):
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_a_project_has_defaults(tmp_path):
    within = tmp_path / "a" / "b"
    within.mkdir(parents=True)
    written(tmp_path, '[tool.perflaw]\nexperiment = "nightly"\nselect = ["app.*"]\nmetrics = ["cpu"]\nbudget = "3x"\n')
    found = defaults(VERBS, within)
    assert found["record"] == {"experiment": "nightly", "select": ["app.*"], "metric": ["cpu"], "budget": "3x"}
    assert found["annotate"] == {"experiment": "nightly"}
    assert defaults(VERBS, written(within, '[tool.other]\nx = "perflaw"\n')) == {}


def test_options_take_the_place_of_defaults(perflaw, shifted, tmp_path):
    (tmp_path / ".perflaw").symlink_to(shifted / ".perflaw")
    written(tmp_path, '[tool.perflaw]\nexperiment = "one"\n')
    runs = json.loads(perflaw("runs", "--json", cwd=tmp_path).stdout)["runs"]
    assert len(runs) == 1
    assert len(json.loads(perflaw("runs", "-e", "far", "--json", cwd=tmp_path).stdout)["runs"]) == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[tool.perflaw]\nselct = ["a"]\n', "did you mean select?"),
        ('[tool.perflaw]\nselect = "a"\n', "a list of texts is expected"),
        ("[tool.perflaw]\nselect = [1]\n", "a list of texts is expected"),
        ("[tool.perflaw]\nexperiment = 3\n", "a text is expected"),
        ("[tool.perflaw]\nexperiment\n", "cannot be read"),
    ],
)
def test_a_wrong_table_is_told(tmp_path, text, told):
    with pytest.raises(UsageError, match=told.replace("?", r"\?")):
        defaults(VERBS, written(tmp_path, text))


def test_each_key_is_an_option_of_record():
    from perflaw.cli.record import command

    names = {parameter.name for parameter in command.params}
    assert {"metric" if key == "metrics" else key for key in KEYS} <= names
