"""From recordings to specifications, for ``mine`` and ``check``: read, mined, merged run by run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perflaw.api.reading import find_component, read_recordings
from perflaw.errors import StoreError, UsageError
from perflaw.notices import progress
from perflaw.parts import are_here, in_parts, step_of, untold
from perflaw.types.specifications import MergeStep, MinedSpec, SpecFile, SpecRun

if TYPE_CHECKING:
    from perflaw.api.kept_specs import KeptSpecs
    from perflaw.check.spec_calls import SpecOptions
    from perflaw.check.spec_judge import NewProgram
    from perflaw.learn.paths import MiningOptions
    from perflaw.learn.paths.stable import Span
    from perflaw.store.columns import Table
    from perflaw.store.experiment import Recording
    from perflaw.types import Observed, PathSpec, Run, SpecVerdict


MINED: Final = 0.72
"""Part of mining that is done when all functions are mined: where their groups lie in single runs is left."""
PART: Final = 8
"""Functions that are mined by one task of a cluster."""
CALLED: Final = ("name", "file", "line", "calls")
"""Columns that say which functions were recorded, where they are, and how often they were called."""
FunctionMetric = tuple[str, str]
"""Name of a function, and of the metric of its calls."""


@dataclass(frozen=True, slots=True)
class MiningRequest:
    """What the command line asks to be mined."""

    experiment: str
    """Name of the experiment."""
    metric: str
    """``time`` or ``cpu``."""
    runs: tuple[str, ...]
    """Ids of the runs; all runs if empty."""
    names: tuple[str, ...]
    """Functions, or the ends of their names; all functions if empty."""
    options: MiningOptions
    """Options of the learner."""
    now_ns: int
    """The present time, ns since 1970; the utility of further observations depends on it."""


@dataclass(frozen=True, slots=True)
class MinedSpecs:
    """Specifications, and how they came about."""

    file: SpecFile
    """The specifications and the runs they were mined from."""
    recordings: tuple[Recording, ...] = ()
    """The recordings they were mined from; empty if files were read."""
    steps: tuple[MergeStep, ...] = ()
    """The merge steps, in their order; empty without ``--merge``."""
    observed: tuple[Observed, ...] = ()
    """What the recordings observed of the functions; empty if files were read."""

    def reviewable(self) -> SpecFile:
        """The specifications alone: of functions of which anything is specified, without call paths and single runs."""
        from perflaw.check.spec_location import reviewable

        evidence = {one.component: one for one in self.observed}
        observed = [evidence[one.spec.component] for one in self.file.specs] if evidence else []
        specs = reviewable(self.file.specs, observed)
        some = tuple(
            one for one in specs if one.spec.groups and (one.spec.borders or any(g.durations for g in one.spec.groups))
        )
        return replace(self.file, specs=some)


def mine_specs(request: MiningRequest) -> MinedSpecs:
    """Specifications of all chosen functions, the most expensive function first."""
    recordings, everything = _read(request)
    kept = _kept(request, everything)
    observed = _with_like_callers(everything, request.options, kept)
    mined = specs_of_observed(observed, request.options, request.now_ns, kept)
    kept.keep()
    return replace(mined, file=replace(mined.file, runs=_spec_runs(recordings)), recordings=tuple(recordings))


def known_specs(request: MiningRequest) -> list[PathSpec]:
    """What :func:`mine_specs` gives, without where the durations of groups lie in single runs."""
    _, everything = _read(request)
    kept = _kept(request, everything)
    observed = _with_like_callers(everything, request.options, kept)
    specs = [spec for spec, _ in _mine_all(observed, request.options, request.now_ns, kept, untold)]
    kept.keep()
    return specs


def merge_specs(request: MiningRequest, files: Sequence[str]) -> MinedSpecs:
    """Specifications of each file, or mined from each run of the experiment, merged one after the other."""
    from perflaw.check.spec_location import locate
    from perflaw.learn.paths.mine import mine
    from perflaw.learn.paths.selection import with_like_callers

    recordings: list[Recording] = []
    observed: list[Observed] = []
    if files:
        models = [(name, read_specs(name)) for name in files]
        for name, file in models:
            if any(one.spec.groups and not one.spec.paths for one in file.specs):
                why = "it holds specifications without the call paths that merging needs"
                raise UsageError(f"{name} cannot be merged", why, "perflaw mine --export evidence > FILE.yaml")
    else:
        recordings, observed = _read(request)
        models = []
        for recording in recordings:
            run = recording.run.id
            of_run = [
                replace(each, observations=tuple(item for item in each.observations if item.run == run))
                for each in observed
            ]
            mined = [(each, mine(each, request.options, request.now_ns)) for each in of_run if each.observations]
            if specs := [_with_evidence(spec, each) for each, spec in mined]:
                models.append((run, SpecFile(_rank(specs), _spec_runs([recording]))))
    if len(models) < 2:
        raise UsageError("--merge needs two runs", "there is only one", "perflaw record --collect paths -- …")
    merged, steps = models[0][1], []
    for name, file in models[1:]:
        merged, step = _merge_step(merged, name, file)
        steps.append(step)
    runs = tuple(dict.fromkeys(run for _, file in models for run in file.runs))
    specs = list(merged.specs)
    if observed:
        by_component = {each.component: each for each in observed}
        evidence = [with_like_callers(by_component[each.spec.component], request.options) for each in specs]
        specs = locate([_with_evidence(each.spec, one) for each, one in zip(specs, evidence, strict=True)], evidence)
    return MinedSpecs(SpecFile(_rank(specs, observed), runs), tuple(recordings), tuple(steps), tuple(observed))


def is_specification(name: str) -> bool:
    """Whether an argument names a file of specifications."""
    return name.endswith((".yaml", ".yml"))


def read_specs(path: str) -> SpecFile:
    """Read specifications from a YAML file; a PerflawError says what is wrong and where."""
    from perflaw.specs.files import parse_specs

    remedy = "perflaw mine --export yaml > FILE.yaml  (writes such a file)"
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: cannot be read", error.strerror or str(error), remedy) from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{path}: is not a text file", f"byte {error.start} is not UTF-8", remedy) from error
    return parse_specs(text, path)


def specs_of_observed(
    observed: Sequence[Observed], options: MiningOptions, now_ns: int, kept: KeptSpecs | None = None
) -> MinedSpecs:
    """Specifications of functions from what was observed of them, the most expensive function first.

    Those that are ``kept`` are not mined again, and the others are added there.
    """
    from perflaw.check.spec_location import locate

    with progress(f"mining {len(observed)} functions") as show:
        mined = _mine_all(observed, options, now_ns, kept, step_of(show, 0.0, MINED))
        with_evidence = [_with_evidence(spec, each) for spec, each in mined]
        specs = locate(with_evidence, observed, step_of(show, MINED, 1.0))
    return MinedSpecs(SpecFile(_rank(specs, observed)), observed=tuple(observed))


def _mine_all(
    observed: Sequence[Observed],
    options: MiningOptions,
    now_ns: int,
    kept: KeptSpecs | None,
    show: Callable[[float], None],
) -> list[tuple[PathSpec, Observed]]:
    """Specifications of functions in their order, each with what was observed; ``show`` is told the part that is done."""
    from perflaw.learn.paths.mine import effort
    from perflaw.learn.paths.stable import utility_after

    unknown = [each for each in observed if kept is None or each.component not in kept]
    efforts = [effort(each) for each in unknown]
    whole, done = sum(efforts) or 1.0, 0

    def tell(number: int) -> None:
        show(sum(efforts[:number]) / whole)

    def tell_next() -> None:
        nonlocal done
        done += 1
        tell(done)

    within = tell_next if are_here() else None  # other processes have no progress bar
    with kept.mining() if kept else nullcontext():
        mined = in_parts(partial(_mine_each, options=options, tell=within), unknown, PART, tell)
    found = {spec.component: (spec, span) for spec, span in mined}
    if kept:
        for spec, span in mined:
            kept.add(spec, span)
        found = {each.component: (kept[each.component].spec, kept[each.component].span) for each in observed}
    specs = []
    for each in observed:
        spec, span = found[each.component]
        specs.append((replace(spec, share=each.share, utility=utility_after(span, now_ns)), each))
    return specs


def judge_recordings(
    file: SpecFile, recordings: Sequence[Recording], options: SpecOptions
) -> tuple[list[SpecVerdict], Mapping[FunctionMetric, Observed]]:
    """A verdict for every group, and what the recordings observed, by function and metric."""
    from perflaw.check.spec_judge import judge_specs
    from perflaw.store.paths import read_observed
    from perflaw.store.tables import read_each

    observed: dict[FunctionMetric, Observed] = {}
    for metric, names in specified_functions(file).items():
        observed.update({(each.component, metric): each for each in read_observed(recordings, names, metric)})
    components = read_each([recording.folder for recording in recordings], "components", CALLED)
    program = recorded_program([one.run for one in recordings], components)
    return judge_specs(file.specs, observed, options, program), observed


def specified_functions(file: SpecFile) -> dict[str, set[str]]:
    """Metric → functions of which it is specified."""
    functions: dict[str, set[str]] = {}
    for mined in file.specs:
        functions.setdefault(mined.spec.metric, set()).add(mined.spec.component)
    return functions


def recorded_program(runs: Sequence[Run], components: Iterable[Table]) -> NewProgram:
    """What runs say of the functions of the program, from the columns ``CALLED`` of each one's components; the newest last."""
    from perflaw.check.spec_judge import NewProgram
    from perflaw.types import Component

    places: dict[str, Component] = {}
    calls: dict[str, int] = {}
    for table in components:
        for name, path, line, number in table:
            places[str(name)] = Component(str(name), str(path), int(line))
            calls[str(name)] = calls.get(str(name), 0) + int(number)
    return NewProgram(places, calls, any(run.lost.unselected_functions for run in runs))


def _read(request: MiningRequest) -> tuple[list[Recording], list[Observed]]:
    """The recordings, and what they observed of the chosen functions; samples of a running program know its shares better."""
    from perflaw.mine.journal import sampled_shares
    from perflaw.store.experiment import open_experiment
    from perflaw.store.paths import read_observed

    recordings = read_recordings(request.experiment, request.runs)
    shares = sampled_shares(open_experiment(request.experiment).folder)
    with progress("reading call paths") as show:
        read = read_observed(recordings, None, request.metric, show)
    observed = [replace(one, share=shares.get(one.component, one.share)) for one in read]
    if not request.names:
        return recordings, observed
    known = {each.component: each for each in observed}
    chosen = dict.fromkeys(find_component(name, known, "mine") for name in request.names)
    return recordings, [known[name] for name in chosen]


def _kept(request: MiningRequest, observed: Sequence[Observed]) -> KeptSpecs:
    """What is kept of functions that were mined before."""
    from perflaw.api.kept_specs import KeptSpecs
    from perflaw.store.experiment import open_experiment

    place = open_experiment(request.experiment).folder.resolve()
    return KeptSpecs((str(place), request.metric, request.runs, request.names, request.options), observed)


def _with_like_callers(
    observed: Sequence[Observed], options: MiningOptions, kept: KeptSpecs | None = None
) -> list[Observed]:
    """What was observed with callers that compare, which takes a model for each selection of callers.

    What is ``kept`` of a function says which callers these are; of others it is added there.
    """
    from perflaw.learn.paths.mine import effort
    from perflaw.learn.paths.selection import of_pool, selections_that_compare

    is_known = [kept is not None and each.component in kept for each in observed]
    selections = [len({one.selected for one in each.observations}) for each in observed]
    efforts = [
        effort(each) * number if number > 1 and not known else 0.0
        for each, number, known in zip(observed, selections, is_known, strict=True)
    ]
    done, whole, found = 0.0, sum(efforts) or 1.0, []
    with progress(f"comparing the callers that were recorded with {len(observed)} functions") as show:
        for each, part, known in zip(observed, efforts, is_known, strict=True):
            if kept and known:
                pool = kept[each.component].pool
            else:
                with kept.mining() if kept else nullcontext():
                    pool = selections_that_compare(each, options)
                if kept:
                    kept.add_pool(each.component, pool)
            found.append(of_pool(each, pool))
            done += part
            show(done / whole)
    return found


def _mine_each(
    observed: Sequence[Observed], options: MiningOptions, tell: Callable[[], None] | None = None
) -> list[tuple[PathSpec, Span | None]]:
    """Specifications of some functions, and of which time their utility is to be told; ``tell`` is called after each."""
    from perflaw.learn.paths.mine import mine_with_span

    specs = []
    for each in observed:
        specs.append(mine_with_span(each, options))
        if tell:
            tell()
    return specs


def _with_evidence(spec: PathSpec, observed: Observed) -> MinedSpec:
    """The specification together with what single runs showed, and with the durations of its groups."""
    from perflaw.check.spec_calls import histograms_of, tallies_of

    ends = [(each.start_ns, each.end_ns) for each in observed.observations] or [(0, 0)]
    span = (min(start for start, _ in ends), max(end for _, end in ends))
    return MinedSpec(spec, tallies_of(spec, observed), histograms_of(spec, observed), span)


def _rank(specs: Sequence[MinedSpec], observed: Sequence[Observed] = ()) -> tuple[MinedSpec, ...]:
    """Functions of which something is specified first, by their own time and that of functions too short to be specified."""
    from perflaw.learn.paths.borders import TOO_SHORT
    from perflaw.learn.paths.durations import mean_duration, total

    def specified(mined: MinedSpec) -> bool:
        return bool(mined.spec.borders) or any(group.durations for group in mined.spec.groups)

    own = {each.spec.component: each.spec.share or 0.0 for each in specs}
    callers = {each.spec.component for each in specs if specified(each)}
    short = {each.spec.component for each in specs if any(note.startswith(TOO_SHORT) for note in each.spec.notes)}
    for one in observed:
        if one.component not in short:
            continue
        # The time of a short function is that of the nearest callers of which something is specified.
        time: dict[str, float] = {}
        for observation in one.observations:
            for place, histogram in observation.paths.items():
                caller = next((name for name in reversed(one.paths[place][:-1]) if name in callers), "")
                time[caller] = time.get(caller, 0.0) + total(histogram) * mean_duration(histogram)
        whole = sum(time.values())
        for caller, part in time.items():
            if caller and whole:
                own[caller] += (one.share or 0.0) * part / whole

    def rank(mined: MinedSpec) -> tuple[object, ...]:
        return not specified(mined), -own[mined.spec.component], -mined.spec.points, mined.spec.component

    return tuple(sorted(specs, key=rank))


def _spec_runs(recordings: Sequence[Recording]) -> tuple[SpecRun, ...]:
    """The runs as a file of specifications names them, so that ``check`` can refuse them."""
    return tuple(SpecRun(each.run.id, each.run.started) for each in recordings)


def _merge_step(merged: SpecFile, name: str, file: SpecFile) -> tuple[SpecFile, MergeStep]:
    """Merge one more model; a function that only one side knows is kept as it is.

    Functions of which only one side has borders, or the callers that tell call paths apart, are not compared.
    """
    from perflaw.learn.paths.merge import consistency, is_comparable, merge

    left = {(each.spec.component, each.spec.metric): each for each in merged.specs}
    right = {(each.spec.component, each.spec.metric): each for each in file.specs}
    common = [key for key in left if key in right]
    one_sided = {
        key
        for key in common
        if bool(left[key].spec.borders) != bool(right[key].spec.borders)
        or not is_comparable(left[key].spec, right[key].spec)
    }
    specs = []
    for key in common:
        spans = [each.span_ns for each in (left[key], right[key]) if each.span_ns != (0, 0)] or [(0, 0)]
        span = (min(start for start, _ in spans), max(end for _, end in spans))
        specs.append(MinedSpec(merge([left[key].spec, right[key].spec]), span_ns=span))
    specs += [each for key, each in [*left.items(), *right.items()] if key not in common]
    return replace(merged, specs=tuple(specs)), MergeStep(
        name,
        tuple(consistency(left[key].spec, right[key].spec) for key in common if key not in one_sided),
        tuple(sorted({component for component, _ in left.keys() ^ right.keys()})),
        tuple(sorted(component for component, _ in one_sided)),
    )
