"""All knobs of a trial: applied in order, read back, and compared with the settings that were requested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from perflaw.errors import PerflawError, TargetError
from perflaw.explore.expressions import Expression
from perflaw.explore.injectors.context import Context, RestoringInjector
from perflaw.explore.injectors.registry import find, name_of
from perflaw.explore.target.process import text_of
from perflaw.explore.values import host, read_back, same
from perflaw.types.studies import Configuration, Knob, Value

Phase = Literal["before", "running", "after"]
"""``before`` the target starts, while its server is ``running``, ``after`` the program or the workload has ended."""


def apply_all(knobs: Sequence[Knob], configuration: Configuration, context: Context) -> None:
    """Apply every knob in the study's order, and fill the context; TargetError names a knob that could not be applied."""
    context.variables = {**host(), **configuration}
    try:
        for knob in knobs:
            for how in knob.apply:
                injector = find(how, context.folder)
                try:
                    injector.apply(how, injected(how, configuration[knob.name], context), context)
                except Exception as error:  # a person's injector may raise anything; the trial is invalid then
                    remedy = error.next_command if isinstance(error, PerflawError) else "perflaw --debug explore STUDY"
                    what = f"{knob.name} could not be applied by {name_of(how)}"
                    raise TargetError(what, _error_text(error), remedy) from error
    finally:
        context.close()


def verify_all(knobs: Sequence[Knob], configuration: Configuration, context: Context, phase: Phase) -> str:
    """Read back what can be read in this phase; return why the trial is no data point, empty while it may be one.

    Settings that were read back are added to ``context.verified``, those that processes were only started with to
    ``context.unverified``. After the last phase (``after``) every knob is in one of them, or the trial is no data point.
    """
    try:
        for knob in knobs:
            if knob.name in context.verified or knob.name in context.unverified:
                continue
            try:
                why = _verify(knob, configuration[knob.name], context, phase)
            except Exception as error:  # a person's injector may raise anything; the trial is invalid then
                why = f"{knob.name} could not be verified: {_error_text(error)}"
            if why:
                return why
        return ""
    finally:
        context.close()


def _verify(knob: Knob, setting: Value, context: Context, phase: Phase) -> str:
    """Read one knob back, if it can be read in this phase; return why the trial is no data point."""
    how = verification_of(knob, context.folder)
    if how is None:  # the agent's own load, or a knob that the commands of the target name
        (context.verified if knob.name in context.trusted else context.unverified)[knob.name] = setting
        return ""
    injector = find(how, context.folder)
    # Processes and results exist only once something runs, or has run.
    readable = {"process": phase != "before", "result": phase == "after"}
    if not readable.get(getattr(injector, "when", "any"), True):
        return ""
    found = injector.verify(how, context)
    if found is None:
        return f"{knob.name} could not be verified: {name_of(how)} does not report it" if phase == "after" else ""
    wanted = expected(knob, how, setting, context)
    if not same(wanted, found, knob.unit if wanted == setting else None):
        rounded = read_back(wanted, found, knob.unit, knob.tolerance) if wanted == setting and knob.ranged else None
        if rounded is not None:
            context.verified[knob.name] = round(rounded) if knob.kind == "int" else rounded
            return ""
        hint = getattr(injector, "hint", lambda how: "")(how)
        difference = f"{text_of(wanted)} was requested, the target has {text_of(found)}"
        return f"{knob.name} did not take effect: {difference}{hint}"
    proved = knob.verify is not None or not getattr(injector, "shows_launch", False)
    (context.verified if proved else context.unverified)[knob.name] = setting
    return ""


def verification_of(knob: Knob, folder: str) -> Mapping[str, Any] | None:
    """Return how a knob is read back: as it says, or by its first injector that can; None where it stands in commands alone."""
    if knob.verify is not None:
        return knob.verify
    for reads_back in ("verifies_itself", "shows_launch"):
        for how in knob.apply:
            if getattr(find(how, folder), reads_back, False):
                return how
    return None


def injected(how: Mapping[str, Any], setting: Value, context: Context) -> Value:
    """Return the value that an injection brings to the target: its ``expr`` is computed, its ``map`` is looked up."""
    value = Expression(str(how["expr"])).value(context.variables) if "expr" in how else setting
    if "map" in how:
        known = {str(key).lower(): mapped for key, mapped in how["map"].items()}
        if text_of(value).lower() not in known:
            missing = text_of(value)
            raise TargetError(f"map has no entry for {missing}", f"it has {', '.join(known)}", f"{missing}: … in map")
        value = known[text_of(value).lower()]
    return value


def expected(knob: Knob, how: Mapping[str, Any], setting: Value, context: Context) -> Value:
    """Return what the target should report: by the verification's own ``expr`` or ``map``, else what was injected there."""
    if "expr" in how or "map" in how:
        return injected(how, setting, context)
    name = name_of(how)
    injection = next((each for each in knob.apply if name_of(each) == name and each[name] == how[name]), None)
    return injected(injection, setting, context) if injection else setting


# ---- What injections overwrite: files, kernel settings.


def remember_all(knobs: Sequence[Knob], context: Context) -> list[Any]:
    """Return what injections will overwrite, as JSON; to be kept before the first trial."""
    return [injector.remember(how, context) for how, injector in _overwriting(knobs, context)]


def restore_all(knobs: Sequence[Knob], remembered: Sequence[Any], context: Context) -> list[str]:
    """Restore what injections overwrote, in reverse order; return in words what could not be restored."""
    failed = []
    for (how, injector), content in reversed(list(zip(_overwriting(knobs, context), remembered, strict=True))):
        try:
            injector.put_back(how, content, context)
        except Exception as error:  # the others are still to be restored
            failed.append(f"{name_of(how)} {how[name_of(how)]}: {_error_text(error)}")
    return failed


def _overwriting(knobs: Sequence[Knob], context: Context) -> list[tuple[Mapping[str, Any], RestoringInjector]]:
    """Return the injections that overwrite something they can restore, one for each place, with their injectors."""
    found: dict[str, tuple[Mapping[str, Any], RestoringInjector]] = {}
    for knob in knobs:
        for how in knob.apply:
            injector = find(how, context.folder)
            if hasattr(injector, "remember"):
                found.setdefault(f"{name_of(how)} {how[name_of(how)]}", (how, cast(RestoringInjector, injector)))
    return list(found.values())


def _error_text(error: Exception) -> str:
    return error.reason if isinstance(error, PerflawError) else f"{type(error).__name__}: {error}"
