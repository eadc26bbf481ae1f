"""Files put back, whatever is interrupted: every operation on the disk fails once, as a kill would, then it is done again."""

import os
from pathlib import Path

import pytest

from perflaw.explore.target import files as module
from perflaw.explore.target.files import Snapshot


class Killed(BaseException):
    """Nobody handles it, as nobody handles SIGKILL."""


def tree(folder):
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = (path.stat().st_mode & 0o777, path.read_bytes() if path.is_file() else None)
    return found


@pytest.fixture
def base(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # waiting for the disk proves nothing here
    base = tmp_path / "target"
    (base / "data" / "deep").mkdir(parents=True)
    (base / "db").write_bytes(b"1" * 5000)
    (base / "data" / "deep" / "a").write_text("a")
    (base / "data" / "link").symlink_to("deep/a")
    (base / "run.sh").write_text("#!/bin/sh\n")
    (base / "run.sh").chmod(0o755)
    return base


FILES = ["db", "data", "run.sh", "missing", "*.log"]


def spoil(base):
    (base / "db").write_bytes(b"2" * 9000)
    (base / "db-wal").write_text("half a transaction")
    (base / "data" / "deep" / "a").unlink()
    (base / "data" / "new").write_text("new")
    (base / "run.sh").unlink()
    (base / "missing").mkdir()
    (base / "missing" / "x").write_text("x")
    (base / "run.log").write_text("log")


def test_files_folders_links_and_modes_are_put_back(base, tmp_path):
    before, kept = tree(base), Snapshot(tmp_path / "state", base)
    kept.take(FILES)
    kept.change()
    spoil(base)
    assert kept.changed and kept.restore() > 0
    assert tree(base) == before and not kept.changed
    spoil(base)
    kept.take(FILES)  # the study goes on: what was there at its beginning counts
    kept.restore()
    assert tree(base) == before
    kept.drop()
    assert not kept.taken and tree(base) == before


def killing(monkeypatch, at):
    """Make the ``at``-th change of the disk the last one."""
    count = [0]

    def counted(real):
        def call(*args, **options):
            count[0] += 1
            if count[0] == at:
                raise Killed
            return real(*args, **options)

        return call

    for owner, name in ((os, "fsync"), (Path, "rename"), (Path, "replace"), (Path, "unlink"), (Path, "mkdir"),
                        (module.shutil, "rmtree"), (module, "copy")):  # fmt: skip
        real = (lambda _: None) if name == "fsync" else getattr(owner, name)
        monkeypatch.setattr(owner, name, counted(real))
    return count


@pytest.mark.parametrize("what", ["take", "restore"])
def test_a_kill_at_any_point_leaves_something_to_restore_from(base, tmp_path, what):
    before = tree(base)
    for at in range(1, 200, 2):
        kept = Snapshot(tmp_path / f"state-{what}-{at}", base)
        if what == "restore":
            kept.take(FILES)
            kept.change()
            spoil(base)
        with pytest.MonkeyPatch.context() as patch:
            killing(patch, at)
            try:
                kept.take(FILES) if what == "take" else kept.restore()
                survived = True
            except Killed:
                survived = False
        again = Snapshot(tmp_path / f"state-{what}-{at}", base)
        if what == "take":
            assert tree(base) == before
            again.take(FILES)
            spoil(base)
            again.change()
        assert survived or again.changed
        again.restore()
        assert tree(base) == before
        if survived and at > 5:
            return
    pytest.fail("there are more operations than that")
