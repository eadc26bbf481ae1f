"""The journal of a study: ``study.db`` (SQLite, WAL). Each step is one transaction, so a kill at any point loses no trial.

A trial is written when it is planned, and again as a whole when it has ended. A trial that was planned and has not ended is run
again under its number. The state of a policy is written together with the proposal that it led to.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from perflaw.errors import StoreError
from perflaw.types.studies import Conditions, Trial

VERSION: Final = 1
"""Version of the journal's tables."""
_TABLES: Final = """
CREATE TABLE study (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE trials (number INTEGER PRIMARY KEY, state TEXT NOT NULL, attempts INTEGER NOT NULL, trial TEXT NOT NULL);
CREATE TABLE made (place INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER NOT NULL, trial TEXT NOT NULL);
"""


class Journal:
    """An open journal. The ``state`` of a trial is planned, done, or again (it has ended but is to be repeated)."""

    def __init__(self, path: Path) -> None:
        """Open the journal or make it; StoreError where it cannot be read or has another version."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = path
        try:
            self._database = sqlite3.connect(path, isolation_level=None, timeout=10)
            try:
                self._database.execute("PRAGMA journal_mode=WAL")
                self._database.execute("PRAGMA synchronous=FULL")
                version = self._database.execute("PRAGMA user_version").fetchone()[0]
                if version == 0:
                    with self.step():
                        self._database.execute(f"PRAGMA user_version={VERSION}")
                        for statement in filter(None, map(str.strip, _TABLES.split(";"))):
                            self._database.execute(statement)
                elif version != VERSION:
                    why = f"it has version {version}, this perflaw writes version {VERSION}"
                    raise StoreError(f"{path}: a journal of another version", why, "perflaw explore STUDY -e NEW_NAME")
            except BaseException:
                self._database.close()
                raise
        except sqlite3.Error as error:
            raise StoreError(f"{path}: cannot be read", str(error), "perflaw explore STUDY -e NEW_NAME") from error
        path.chmod(0o600)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Write everything within the block together, or nothing of it."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def close(self) -> None:
        """Close the journal."""
        self._database.close()

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value of the study, such as ``digest``, ``seed``, ``policy``."""
        row = self._database.execute("SELECT value FROM study WHERE name = ?", (name,)).fetchone()
        return json.loads(row[0]) if row else default

    def put(self, **values: Any) -> None:
        """Write values of the study."""
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        self._database.executemany("INSERT OR REPLACE INTO study VALUES (?, ?)", rows)

    def trials(self) -> list[Trial]:
        """Return all trials in the order of their numbers, with those that are only planned."""
        rows = self._database.execute("SELECT trial FROM trials ORDER BY number").fetchall()
        return [trial_of(json.loads(text)) for (text,) in rows]

    def to_run(self) -> dict[int, int]:
        """Return how often each trial that is to be run was begun, by its number."""
        rows = self._database.execute("SELECT number, attempts FROM trials WHERE state != 'done' ORDER BY number")
        return dict(rows.fetchall())

    def again(self) -> set[int]:
        """Return the numbers of trials that have ended and are to be repeated."""
        return {row[0] for row in self._database.execute("SELECT number FROM trials WHERE state = 'again'")}

    def plan(self, trials: Sequence[Trial]) -> None:
        """Write trials that are to be run."""
        rows = [(trial.number, json.dumps(asdict(trial))) for trial in trials]
        self._database.executemany("INSERT INTO trials VALUES (?, 'planned', 0, ?)", rows)

    def clear(self) -> None:
        """Forget everything that was planned; within a step, and before any trial was made."""
        for table in ("trials", "study"):
            self._database.execute(f"DELETE FROM {table}")

    def set_aside(self, trial: Trial) -> None:
        """Write a trial that is not to be made, or made again, since the study has no such configuration any more."""
        self.change(trial)
        self._database.execute("UPDATE trials SET state = 'done' WHERE number = ?", (trial.number,))

    def begin(self, number: int) -> None:
        """Write that a trial is begun."""
        ended = "SELECT count(*) FROM made WHERE made.number = trials.number"
        self._database.execute(f"UPDATE trials SET attempts = ({ended}) + 1 WHERE number = ?", (number,))

    def write(self, trial: Trial, again: bool = False) -> None:
        """Write a trial that has ended; ``again``: it is to be repeated."""
        row = ("again" if again else "done", json.dumps(asdict(trial)), trial.number)
        self._database.execute("UPDATE trials SET state = ?, trial = ? WHERE number = ?", row)
        self._database.execute("INSERT INTO made (number, trial) VALUES (?, ?)", (trial.number, row[1]))

    def change(self, trial: Trial) -> None:
        """Replace a trial that has ended, without changing its state."""
        row = (json.dumps(asdict(trial)), trial.number)
        self._database.execute("UPDATE trials SET trial = ? WHERE number = ?", row)

    def order(self) -> dict[int, int]:
        """Return the place of each trial in the order of making, by its number; the last place of a repeated trial."""
        return dict(self._database.execute("SELECT number, max(place) FROM made GROUP BY number").fetchall())

    def made(self) -> int:
        """Return how many trials came to their end, repetitions of disturbed ones included."""
        return int(self._database.execute("SELECT count(*) FROM made").fetchone()[0])

    def attempts(self, number: int) -> int:
        """Return how often a trial came to its end."""
        return int(self._database.execute("SELECT count(*) FROM made WHERE number = ?", (number,)).fetchone()[0])

    def repeated(self) -> int:
        """Return how many trials were, or are to be, made again because other programs disturbed them."""
        count = self._database.execute("SELECT count(*) - count(DISTINCT number) FROM made").fetchone()[0]
        return int(count) + len(self.again())


def trial_of(document: Mapping[str, Any]) -> Trial:
    """Return the trial of its JSON document."""
    return Trial(**{**document, "conditions": Conditions(**document["conditions"])})
