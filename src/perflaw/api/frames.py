"""Tables of recordings as columns, and as tables of pandas, polars and Arrow where these are installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from perflaw.errors import UsageError


class Frame:
    """A table: named columns of one length. Nothing is copied until another form is asked for."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns = dict(columns)
        """Column by name."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> Sequence[Any]:
        return self.columns[name]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Rows, each with its values by column."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def __repr__(self) -> str:
        return f"<{len(self)} rows of {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        from perflaw.report.tables import html_table

        return html_table(list(self.columns), list(zip(*self.columns.values(), strict=True)))

    def to_pandas(self) -> Any:
        """A DataFrame of pandas; UsageError where pandas is not installed."""
        return _library("pandas").DataFrame(self.columns)

    def to_polars(self) -> Any:
        """A DataFrame of polars; UsageError where polars is not installed."""
        return _library("polars").DataFrame(self.columns, strict=False)

    def to_arrow(self) -> Any:
        """A table of Arrow; UsageError where pyarrow is not installed."""
        return _library("pyarrow").table(self.columns)


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(f"{name} cannot be imported", str(error), f"pip install {name}") from error
