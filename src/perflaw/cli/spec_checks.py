"""Recordings held against a file of specifications, for ``check`` of recordings and of running programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perflaw.check.spec_calls import SpecOptions
    from perflaw.store.experiment import Recording
    from perflaw.types import Observed, SpecVerdict
    from perflaw.types.specifications import SpecFile


def judge_recordings(
    file: SpecFile, recordings: Sequence[Recording], options: SpecOptions
) -> tuple[list[SpecVerdict], Mapping[tuple[str, str], Observed]]:
    """A verdict for every group, and what the recordings observed, by function and metric."""
    from perflaw.check.spec_judge import NewProgram, judge_specs
    from perflaw.store.paths import read_observed
    from perflaw.store.tables import read_table
    from perflaw.types import Component

    observed: dict[tuple[str, str], Observed] = {}
    for metric in dict.fromkeys(mined.spec.metric for mined in file.specs):
        names = {mined.spec.component for mined in file.specs if mined.spec.metric == metric}
        observed.update({(each.component, metric): each for each in read_observed(recordings, names, metric)})
    places: dict[str, Component] = {}
    calls: dict[str, int] = {}
    for recording in recordings:  # the newest last
        for name, path, line, number in read_table(recording.folder, "components", ("name", "file", "line", "calls")):
            places[str(name)] = Component(str(name), str(path), int(line))
            calls[str(name)] = calls.get(str(name), 0) + int(number)
    selected = any(each.run.lost.unselected_functions for each in recordings)
    return judge_specs(file.specs, observed, options, NewProgram(places, calls, selected)), observed
