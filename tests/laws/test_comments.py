"""Comments are kept where they were said: before a block, before a statement, beside it, at the end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.laws.printing import show
from perflaw.laws.reading import parse
from tests.conftest import examples
from tests.laws import nouns

EVERYWHERE = """\
# before the block
f.time(n) [us] {
  # of the block
  uint s = n;  # beside a binding
  # before a law
  # and once more
  [s > 3] Norm(50*s, 2);  # beside a law
  [s <= 3] { {0.5} Norm(1, 2); {0.5} Norm(3, 1) };  # beside a mixture
  # at the end
}

# before the next
g.time(n) {
  {0.2} Norm(1, 2);  # fast
  # the others
  {0.8} Norm(5, 2);
}

# behind everything
"""


def test_print_of_parse_is_the_text():
    assert show(parse(EVERYWHERE)) == EVERYWHERE


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("f.time(n) {\n  Norm(50*n, # steep\n 2); }", "  Norm(50*n, 2);  # steep"),
        ("f.time(n) { Norm(1, 2)  # last\n}", "  Norm(1, 2);  # last"),
        ("f.time(n) { Norm(1, 2)\n  # below\n}", "  Norm(1, 2);\n  # below"),
        (
            "f.time(n) {\n[n > 1] Norm(1, 2); # one\nint s = n; # two\n}",
            "  int s = n;  # two\n  [n > 1] Norm(1, 2);  # one",
        ),
        ("f.time(n) { [n > 1] { {0.5} Norm(1, 2); # a\n {0.5} Exp(1) } # b\n }", "{0.5} Exp(1) };  # a b"),
    ],
)
def test_a_comment_moves_to_where_its_statement_ends(text, printed):
    assert printed in show(parse(text))


def test_comments_do_not_make_another_law():
    assert parse("f.time(n) { Norm(1, 2);  # why\n}") == parse("f.time(n) { Norm(1, 2) }")


@given(nouns.blocks, st.lists(nouns.comments, max_size=12), st.randoms())
@settings(max_examples=examples(80), deadline=None)
def test_no_comment_is_lost_wherever_it_stands(block, comments, random):
    lines = show(block).split("\n")
    for number, text in enumerate(comments):
        place = random.randrange(len(lines) + 1)
        if random.random() < 0.5 or place == len(lines) or "#" in lines[place] or "`" in lines[place]:
            lines.insert(place, f"# {number}:{text}")
        else:
            lines[place] += f" # {number}:{text}"
    printed = show(parse("\n".join(lines)))
    assert show(parse(printed)) == printed
    for number, text in enumerate(comments):
        assert f"{number}:{text}" in printed
