"""What looks like a secret on a command line is kept nowhere; what people name things stays as it is."""

from __future__ import annotations

import json
import string
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.record.secrets import MASK, masked

SECRET = "hunter2x"
KINDS = {
    "-p": ("-p", SECRET),
    "--password": ("--password", SECRET),
    "--api-key=": (f"--api-key={SECRET}",),
    "variable": (f"DB_PASSWORD={SECRET}",),
    "header": ("-H", f"Authorization: {SECRET}"),
    "bearer": ("-H", f"Authorization: Bearer {SECRET}"),
    "header=": (f"--header=X-Api-Key:{SECRET}",),
    "cookie": ("-H", f"Cookie: session={SECRET}"),
    "query": (f"https://host/path?n=5&access_token={SECRET}&m=6",),
    "url": (f"postgresql://me:{SECRET}@host/db",),
    "json": (f'{{"user": "me", "password": "{SECRET}"}}',),
    "yaml": (f"client_secret: {SECRET}",),
    "code": ("-c", f"password = '{SECRET}'; run()"),
}


@pytest.mark.parametrize("arguments", KINDS.values(), ids=KINDS)
def test_a_secret_is_masked_by_its_name(arguments):
    assert SECRET not in " ".join(masked(arguments))
    assert MASK in " ".join(masked(arguments))


FORMS = (
    "AKIAIOSFODNN7EXAMPLE", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "xoxb-17653672481-19874698323",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x", "-----BEGIN PRIVATE KEY-----\nMIIE",
)  # fmt: skip


@pytest.mark.parametrize("text", FORMS)
def test_a_key_is_masked_by_its_form(text):
    assert masked([f"--use={text}", text]) == (f"--use={MASK}", MASK)


@pytest.mark.parametrize("letters", [string.ascii_letters + string.digits, string.hexdigits.lower()[:16]])
def test_random_words_are_masked(letters):
    chance = Random(6)
    words = ["".join(chance.choice(letters) for _ in range(40)) for _ in range(1000)]
    assert sum(word in " ".join(masked([word])) for word in words) < 50


PLAIN = (
    "--port", "8080", "-p", "8080", "report-2024-final_version.csv", "/home/me/projects/x86_64-linux-gnu/build_12/app",
    "test_runs_stand_side_by_side_2", "TestTheLongNameOfThisClass1", "n=100000000000000000000", "1,2,3,4,5,6,7,8,9,10,11",
    "--start=2026-11-23T19:34:46", "examples/sqlite/page-sizes.yaml", "3.14159265358979323846", "libperflaw_core.so.1",
)  # fmt: skip


def test_what_people_name_things_stays():
    assert masked(PLAIN) == PLAIN


def test_plugins_of_pytest_are_no_passwords():
    words = ("/env/bin/pytest", "-p", "no:xdist", "-p", "my_plugin", "tests")
    for started in ((), ("/env/bin/python3",)):
        assert masked((*started, *words)) == (*started, *words)
    assert masked(("mysql", "pytest", "-p", "hunter2")) == ("mysql", "pytest", "-p", MASK)


@given(st.lists(st.text(max_size=40), max_size=5))
def test_any_arguments_are_masked_once(arguments):
    once = masked(arguments)
    assert len(once) == len(arguments)
    assert [word for word in masked(once) if MASK not in word] == [word for word in once if MASK not in word]


def test_nothing_of_a_recording_has_the_secret(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("def f(n): return n\nf(1)\n")
    perflaw("record", "--vary", f"token={SECRET}", "--", "app.py", "-p", SECRET, "--size", 7, "{token}")
    perflaw("record", "--no-arguments", "--", "app.py", "unmasked-word", "--size", 7)
    kept = b"".join(path.read_bytes() for path in Path(tmp_path / ".perflaw").rglob("*") if path.is_file())
    assert SECRET.encode() not in kept
    assert b"unmasked-word" not in kept
    first, second = json.loads(perflaw("runs", "--json").stdout)["runs"]
    assert first["features"]["size"] == 7
    assert first["command"][-5:-1] == ["-p", MASK, "--size", "7"]
    assert (second["features"], len(second["command"])) == ({}, 1)
    assert second["configuration"] == {"arguments": "not kept"}
