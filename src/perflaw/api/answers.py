"""What the verbs answer to programs: the nouns, as a sequence, with the table that the command line prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from perflaw.api.notebook import show_alone
from perflaw.types.documents import Document

if TYPE_CHECKING:
    from perflaw.report.drawing import Plot

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Sequence[T], Generic[T]):
    """Nouns in the order in which the command line ranks them."""

    nouns: Sequence[T]
    """The nouns: annotations, clusters, patterns, specifications, verdicts or forecasts."""
    document: Document
    """The document that the verb prints with ``--json``."""
    text: str
    """The table that the verb prints."""
    headings: Sequence[str]
    """Headings of the table in a notebook."""
    rows: Sequence[Sequence[object]]
    """Its rows."""
    draw: Callable[[int], Plot]
    """Draws the noun at a place."""
    explains: bool = False
    """The text explains one noun, which a table of all of them would not: notebooks show the text."""
    show_part: Callable[[T, object], str | None] | None = None
    """HTML of a noun inside one of the nouns, None if it is not inside; None where nothing inside is shown alone."""

    def __len__(self) -> int:
        return len(self.nouns)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, int):
            show_alone(self, range(len(self.nouns))[place])
        return self.nouns[place]

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        if self.explains:
            return f"<pre>{escape(self.text)}</pre>"
        from perflaw.report.tables import html_table

        return html_table(self.headings, self.rows)

    def plot(self, place: int = 0) -> Plot:
        """A picture of the noun at a place, the first by default; IndexError where there is none."""
        if not self.nouns:
            raise IndexError("the answer is empty: there is nothing to draw")
        return self.draw(range(len(self.nouns))[place])
