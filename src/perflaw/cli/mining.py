"""From recordings to specifications, for ``mine`` and ``check``: read, mined, merged run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perflaw.errors import StoreError, UsageError
from perflaw.types.specifications import MergeStep, MinedSpec, SpecFile, SpecRun

if TYPE_CHECKING:
    from perflaw.learn.paths.options import MiningOptions
    from perflaw.store.experiment import Recording
    from perflaw.types import Observed, PathSpec


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for."""

    experiment: str
    """Name of the experiment."""
    metric: str
    """``time`` or ``cpu``."""
    runs: tuple[str, ...]
    """Ids of runs; all where there are none."""
    names: tuple[str, ...]
    """Functions, or the ends of their names; all where there are none."""
    options: MiningOptions
    """Of the learner."""
    now_ns: int
    """Now, ns since 1970: what utility is told for."""


@dataclass(frozen=True, slots=True)
class Mined:
    """Specifications, and how they came about."""

    file: SpecFile
    """What was found."""
    recordings: tuple[Recording, ...] = ()
    """What it was found in; empty where files were read."""
    steps: tuple[MergeStep, ...] = ()
    """What was merged one after the other; empty without ``--merge``."""


def mined(asked: Asked) -> Mined:
    """Specifications of all chosen functions, the dearest first."""
    recordings, observed = read(asked)
    specs = [_mined(one, asked) for one in observed]
    return Mined(SpecFile(_ranked(specs), runs_of(recordings)), tuple(recordings))


def merged(asked: Asked, files: Sequence[str]) -> Mined:
    """Every file, or every run of the experiment, mined on its own and merged one after the other."""
    observed: list[Observed]
    recordings: list[Recording]
    recordings, observed = ([], []) if files else read(asked)
    models = _of_files(files) if files else _of_runs(asked, recordings, observed)
    if len(models) < 2:
        raise UsageError("--merge", "there is one run: nothing to merge", "perflaw record --collect paths -- …")
    whole, steps = models[0][1], []
    for name, file in models[1:]:
        whole, step = _merged_pair(whole, name, file)
        steps.append(step)
    runs = tuple(dict.fromkeys(run for _, file in models for run in file.runs))
    seen = {one.component: one for one in observed}
    specs = [_with_evidence(one.spec, seen[one.spec.component]) if seen else one for one in whole.specs]
    return Mined(SpecFile(_ranked(specs), runs), tuple(recordings), tuple(steps))


def read(asked: Asked) -> tuple[list[Recording], list[Observed]]:
    """The recordings, and what was observed of the chosen functions in them."""
    from perflaw.store.experiment import open_experiment
    from perflaw.store.paths import read_observed

    recordings = open_experiment(asked.experiment).recordings(asked.runs)
    observed = read_observed(recordings, None, asked.metric)
    if not asked.names:
        return recordings, observed
    known = {one.component: one for one in observed}
    return recordings, [known[name] for name in dict.fromkeys(named(name, list(known)) for name in asked.names)]


def named(name: str, known: Sequence[str]) -> str:
    """The function of that name, or whose name ends so; UsageError where there is none or several."""
    if name in known:
        return name
    ending = sorted(one for one in known if one.endswith((f".{name}", f"::{name}")))
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise UsageError(f"component {name!r}", f"it may be {', '.join(ending[:8])}", f"perflaw mine {ending[0]}")
    close = ", ".join(sorted(one for one in known if name.lower() in one.lower())[:8])
    why = f"call paths were collected of {close or ', '.join(sorted(known)[:8]) or 'no function'}"
    raise UsageError(f"no component {name!r}", why, "perflaw mine (lists all)")


def runs_of(recordings: Sequence[Recording]) -> tuple[SpecRun, ...]:
    """The runs by which ``check`` knows what a specification was mined from."""
    return tuple(SpecRun(one.run.id, one.run.started) for one in recordings)


def read_specs(path: str) -> SpecFile:
    """Specifications of a YAML file; a PerflawError says what is wrong where."""
    from perflaw.specs.files import parse_specs

    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be read", error.strerror or str(error), "perflaw mine --export yaml"
        ) from error
    except UnicodeDecodeError as error:
        raise StoreError(
            f"{path}: is no text", f"byte {error.start} is not UTF-8", "perflaw mine --export yaml"
        ) from error
    return parse_specs(text, path)


def _mined(observed: Observed, asked: Asked) -> MinedSpec:
    from perflaw.learn.paths.mine import mine

    return _with_evidence(mine(observed, asked.options, asked.now_ns), observed)


def _with_evidence(spec: PathSpec, observed: Observed) -> MinedSpec:
    """The specification with what single runs showed of it, and its groups' durations."""
    from perflaw.check.spec_tallies import histograms_of, tallies_of

    ends = [(one.start_ns, one.end_ns) for one in observed.observations] or [(0, 0)]
    span = (min(start for start, _ in ends), max(end for _, end in ends))
    return MinedSpec(spec, tallies_of(spec, observed), histograms_of(spec, observed), span)


def _ranked(specs: Sequence[MinedSpec]) -> tuple[MinedSpec, ...]:
    return tuple(sorted(specs, key=lambda one: (-(one.spec.share or 0.0), -one.spec.points, one.spec.component)))


def _of_files(files: Sequence[str]) -> list[tuple[str, SpecFile]]:
    return [(name, read_specs(name)) for name in files]


def _of_runs(asked: Asked, recordings: Sequence[Recording], observed: Sequence[Observed]) -> list[tuple[str, SpecFile]]:
    """The model of every run on its own."""
    models = []
    for one in recordings:
        parts = [_of_run(some, one.run.id) for some in observed]
        specs = [_mined(part, asked) for part in parts if part.observations]
        if specs:
            models.append((one.run.id, SpecFile(_ranked(specs), runs_of([one]))))
    return models


def _of_run(observed: Observed, run: str) -> Observed:
    """What one run showed of a function."""
    return replace(observed, observations=tuple(one for one in observed.observations if one.run == run))


def _merged_pair(whole: SpecFile, name: str, file: SpecFile) -> tuple[SpecFile, MergeStep]:
    """One more model merged into what there is; functions that only one side has are kept as they are."""
    from perflaw.learn.paths.compare import consistency

    mine = {(one.spec.component, one.spec.metric): one for one in whole.specs}
    others = {(one.spec.component, one.spec.metric): one for one in file.specs}
    both = [key for key in mine if key in others]
    unsettled = {key for key in both if bool(mine[key].spec.borders) != bool(others[key].spec.borders)}
    found = tuple(consistency(mine[key].spec, others[key].spec) for key in both if key not in unsettled)
    specs = [_put_together(mine[key], others[key]) for key in both]
    specs += [one for key, one in [*mine.items(), *others.items()] if key not in both]
    missing = tuple(sorted({key[0] for key in mine.keys() ^ others.keys()}))
    return replace(whole, specs=tuple(specs)), MergeStep(
        name, found, missing, tuple(sorted(name for name, _ in unsettled))
    )


def _put_together(one: MinedSpec, other: MinedSpec) -> MinedSpec:
    """Two models of one function as one."""
    from perflaw.learn.paths.merge import merge

    spans = [mined.span_ns for mined in (one, other) if mined.span_ns != (0, 0)] or [(0, 0)]
    return MinedSpec(
        merge([one.spec, other.spec]), span_ns=(min(start for start, _ in spans), max(end for _, end in spans))
    )
