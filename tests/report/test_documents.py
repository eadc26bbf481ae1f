"""The encoder of JSON documents: what it makes of a noun's fields, and what it refuses."""

import json
import math
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pytest

from perflaw.types import Metric
from perflaw.types.documents import MEASURED, OMITTED, document, dumps, encoded, stated


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Part:
    value: float
    kind: str = field(default="leaf", metadata=stated(type=""))


@dataclass(frozen=True, slots=True)
class Whole:
    DOCUMENTED = ("size",)
    metric: Metric = field(metadata=MEASURED)
    parts: tuple[Part, ...]
    by_name: dict[str, Part] = field(metadata=stated(values="value"))
    secret: int = field(default=1, metadata=OMITTED)
    colour: Colour = Colour.RED

    @property
    def size(self) -> int:
        return len(self.parts)


def test_fields_stand_under_their_names_or_those_stated_beside_them() -> None:
    whole = Whole(Metric("time", "ns"), (Part(1.5),), {"a": Part(math.inf)})
    assert document(whole) == {
        "metric": "time",
        "unit": "ns",
        "parts": [{"value": 1.5, "type": "leaf"}],
        "values": {"a": None},
        "colour": "red",
        "size": 1,
    }


def test_numbers_of_numpy_are_numbers_and_what_is_not_finite_is_null() -> None:
    values = {"array": np.array([[1.0, np.nan]]), "scalar": np.int64(3), "flag": np.bool_(True), "nothing": -math.inf}
    assert json.loads(dumps(values)) == {"array": [[1.0, None]], "scalar": 3, "flag": True, "nothing": None}


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="no JSON for object"):
        encoded({"odd": object()})
