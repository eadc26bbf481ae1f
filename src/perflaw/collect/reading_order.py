"""The order in which threads' events are read, where it matters: the twin of native/order.h, which says why."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from perflaw.collect.layout import ENTER, RESUME, TURN
from perflaw.collect.tree_builder import Event


class ReadingOrder:
    """Events that have arrived and wait for their turn, by thread."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[Event]] = {}
        self.turns: dict[int, int] = {}
        """The turn that the last event read of a thread belongs to."""
        self._asked: set[int] = set()
        """Threads whose next event resumes a frame that nobody has seen: it waits until the others were read once more."""

    def add(self, thread: int, events: Iterable[Event]) -> None:
        """Events have arrived."""
        self.waiting.setdefault(thread, []).extend(events)

    def ready(self, suspended: Container[int]) -> Iterator[tuple[int, list[Event]]]:
        """The events whose turn has come, in pieces; feed each before the next, which ``suspended`` must know of."""
        asked, self._asked = self._asked, set()
        found = True
        while found:
            found = False
            for thread, events in self.waiting.items():
                count = self._length(thread, events, suspended, asked)
                if count:
                    found = True
                    piece, events[:count] = events[:count], []
                    self.turns[thread] = next(
                        (one[1] for one in reversed(piece) if one[5] == TURN), self.turns.get(thread, 0)
                    )
                    asked.discard(thread)
                    yield thread, piece

    def __bool__(self) -> bool:
        return any(self.waiting.values())

    def _length(self, thread: int, events: list[Event], suspended: Container[int], asked: set[int]) -> int:
        """How many of the events may be read."""
        others = [self._turn_of(at, other[0]) for at, other in self.waiting.items() if other and at != thread]
        earliest, turn = min(others, default=None), self.turns.get(thread, 0)
        for place, (_, frame, _, _, _, kind) in enumerate(events):
            if kind == TURN:
                turn = frame
            if not (kind == RESUME or (kind == ENTER and frame in suspended)):
                continue
            if earliest is not None and earliest < turn:
                return place
            if kind == RESUME and frame not in suspended and (place or thread not in asked):
                if not place:
                    self._asked.add(thread)
                return place
        return len(events)

    def _turn_of(self, thread: int, event: Event) -> int:
        return event[1] if event[5] == TURN else self.turns.get(thread, 0)
