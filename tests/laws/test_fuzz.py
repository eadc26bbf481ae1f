"""Whatever the text, reading it gives laws or an error with a place, and nothing else."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.laws.errors import LawSyntaxError
from perflaw.laws.printing import show
from perflaw.laws.reading import parse, parse_distribution, parse_expression
from perflaw.laws.tree import LawFile
from tests.conftest import examples
from tests.laws import nouns
from tests.laws.test_examples import SORT

WORDS = r"""
f .time( n ) { } [ ] ( ; , Norm( Exp( 1 0.5 us e9 + - * / ^ ** < > = == != ! && || ` " ' \ # . -> ::
s= true inf {0.2} {0.8} µ operator() <lambda> {lambda(int)#1} [us] 🦊
"""
PIECES = [*WORDS.split(), " ", "\n", "uint s = ", "\x00", "\ufeff", "\u2028"]
"""What laws are made of, and what they are not."""


def held(text):
    """Read it in all ways; what can be read can be printed and read again."""
    lines = text.split("\n")
    for read in (parse, parse_expression, parse_distribution):
        try:
            found = read(text)
        except LawSyntaxError as error:
            assert 1 <= error.line <= len(lines)
            assert 1 <= error.column <= len(lines[error.line - 1]) + 1
            assert error.expected
            continue
        assert read(show(found)) == found


@given(st.text(max_size=60))
@settings(max_examples=examples(300), deadline=None)
def test_any_text(text):
    held(text)


@given(st.binary(max_size=60))
@settings(max_examples=examples(100), deadline=None)
def test_any_bytes(data):
    held(data.decode("latin-1"))


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@settings(max_examples=examples(500), deadline=None)
def test_pieces_of_laws_in_any_order(text):
    held(text)


@given(nouns.files.filter(lambda one: one.blocks), st.integers(0, 2**32))
@settings(max_examples=examples(40), deadline=None)
def test_damaged_laws(file, seed):
    assert isinstance(file, LawFile)
    held(damaged(show(file), random.Random(seed)))


@pytest.mark.parametrize("seed", range(40))
def test_damage_to_the_law_of_the_paper(seed):
    held(damaged(SORT, random.Random(seed)))


def damaged(text, rng):
    """The text with pieces taken out, put in, doubled or moved."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.randint(0, 6))
        text = text[:at] + rng.choice(["", rng.choice(PIECES), text[at:end] * 2, text[end:at:-1]]) + text[end:]
    return text
