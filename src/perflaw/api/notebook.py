"""Single nouns in a notebook: what is taken out of an answer is shown as its row of the answer's table, with its picture.

Nouns know nothing of tables, and a noun alone does not know the words of its row. So an answer says which of its nouns
somebody took, and IPython is told how to show that type. The laws and predictions inside such a noun are looked for when a
notebook shows one. Without IPython nothing happens.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from perflaw.report.drawing import Plot


class Tabular(Protocol):
    """The part of an answer that says how one of its nouns is shown."""

    @property
    def nouns(self) -> Sequence[Any]:
        """The nouns."""

    @property
    def headings(self) -> Sequence[str]:
        """Headings of the table."""

    @property
    def rows(self) -> Sequence[Sequence[object]]:
        """Its rows, one for each noun."""

    @property
    def draw(self) -> Callable[[int], Plot]:
        """Draws the noun at a place."""

    @property
    def show_part(self) -> Callable[[Any, object], str | None] | None:
        """HTML of a noun inside one of the nouns, None if it is not inside it."""


KEPT: Final = 256
"""Most nouns whose rows are kept, the newest ones."""
_taken: OrderedDict[int, tuple[Tabular, int]] = OrderedDict()
"""Identity of a noun → the answer that it was taken from, which keeps it alive, and its place there."""


def show_alone(answer: Tabular, place: int) -> None:
    """The noun at a place (from 0) of an answer is taken out of it: from now on a notebook shows it by its row."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return
    noun = answer.nouns[place]
    _taken[id(noun)] = answer, place
    _taken.move_to_end(id(noun))
    if len(_taken) > KEPT:
        _taken.popitem(last=False)
    kinds = [type(noun)]
    if answer.show_part:
        from perflaw.report.annotation_parts import PARTS

        kinds += PARTS
    for kind in kinds:
        shell.display_formatter.formatters["text/html"].for_type(kind, _html)


def _html(noun: object) -> str | None:
    """The row and the picture of a noun, or what its answer shows of a noun inside one that was taken.

    None, for which IPython shows its text, where the noun is of no answer.
    """
    from perflaw.report.tables import html_table

    answer, place = _taken.get(id(noun), (None, 0))
    if answer is not None and answer.nouns[place] is noun:
        return html_table(answer.headings, [answer.rows[place]]) + answer.draw(place)._repr_svg_()
    for answer, place in reversed(_taken.values()):
        if answer.show_part and (shown := answer.show_part(answer.nouns[place], noun)) is not None:
            return shown
    return None
