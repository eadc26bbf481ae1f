"""All knobs of a trial: applied in order, read back, and compared with what was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from perflaw.errors import PerflawError, TargetError
from perflaw.explore.expressions import Expression
from perflaw.explore.injectors.context import Context
from perflaw.explore.injectors.process import mentioned
from perflaw.explore.injectors.registry import find, name_of
from perflaw.explore.target.commands import text_of
from perflaw.explore.values import host, same
from perflaw.types.studies import Configuration, Knob, Value

Phase = Literal["before", "running", "after"]
"""``before`` a one-shot program runs, while a server is ``running``, ``after`` the program or the workload has ended."""


def apply_all(knobs: Sequence[Knob], configuration: Configuration, context: Context) -> None:
    """Apply every knob in the study's order; TargetError names the knob that could not be.

    Fills the context's variables, arguments, environment and files.
    """
    context.variables = {**host(), **configuration}
    try:
        for knob in knobs:
            for how in knob.apply:
                _apply(knob, how, configuration[knob.name], context)
    finally:
        context.close()


def _apply(knob: Knob, how: Mapping[str, Any], setting: Value, context: Context) -> None:
    injector = find(how, context.folder)
    try:
        injector.apply(how, injected(how, setting, context), context)
    except Exception as error:  # injectors of other people raise what they like; the trial is invalid then
        raise TargetError(f"{knob.name} could not be applied by {name_of(how)}", _words(error)) from error


def verify_all(knobs: Sequence[Knob], configuration: Configuration, context: Context, phase: Phase) -> str:
    """Read back what can be in this phase; why the trial is no data point, empty while it may be one.

    Settings that were read back are kept in ``context.verified``. After the last phase (``after``) every knob must have been.
    """
    try:
        left = (knob for knob in knobs if knob.name not in context.verified)
        return next((why for knob in left if (why := _tried(knob, configuration[knob.name], context, phase))), "")
    finally:
        context.close()


def _tried(knob: Knob, setting: Value, context: Context, phase: Phase) -> str:
    try:
        return _verified(knob, setting, context, phase)
    except Exception as error:  # as above
        return f"{knob.name} could not be verified: {_words(error)}"


def _verified(knob: Knob, setting: Value, context: Context, phase: Phase) -> str:
    how = verifying(knob, context.folder)
    if how is None:
        return _by_command(knob, setting, context, phase)
    injector = find(how, context.folder)
    if not _readable(getattr(injector, "when", "any"), phase):
        return ""
    told = injector.verify(how, context)
    if told is None:
        return f"{knob.name} could not be verified: {name_of(how)} does not tell it" if phase == "after" else ""
    wanted = expected(knob, how, setting, context)
    if not same(wanted, told, knob.unit if wanted == setting else None):
        hint = getattr(injector, "hint", lambda how: "")(how)
        return f"{knob.name} did not take effect: asked for {text_of(wanted)}, the target has {text_of(told)}{hint}"
    context.verified[knob.name] = setting
    return ""


def _readable(when: str, phase: Phase) -> bool:
    """Processes and results are there only once something runs, or has run."""
    return {"any": True, "process": phase != "before", "result": phase == "after"}.get(when, True)


def _by_command(knob: Knob, setting: Value, context: Context, phase: Phase) -> str:
    """A knob that only stands in commands, or is the agent's own load."""
    if knob.name in context.trusted or mentioned(text_of(setting), context):
        context.verified[knob.name] = setting
        return ""
    return f"{knob.name} could not be verified: no command held it" if phase == "after" else ""


def verifying(knob: Knob, folder: str) -> Mapping[str, Any] | None:
    """As a knob says, else by the first of its injectors that can; None where it only stands in commands."""
    if knob.verify is not None:
        return knob.verify
    return next((how for how in knob.apply if getattr(find(how, folder), "verifies_itself", False)), None)


def injected(how: Mapping[str, Any], setting: Value, context: Context) -> Value:
    """What an injection brings to the target for a setting: its ``expr`` computed, its ``map`` looked up."""
    value = Expression(str(how["expr"])).value(context.variables) if "expr" in how else setting
    if "map" in how:
        known = {str(key).lower(): one for key, one in how["map"].items()}
        if text_of(value).lower() not in known:
            raise TargetError(f"map has no entry for {text_of(value)}", f"it has {', '.join(known)}")
        value = known[text_of(value).lower()]
    return value


def expected(knob: Knob, how: Mapping[str, Any], setting: Value, context: Context) -> Value:
    """What the target should tell: by the verify's own ``expr`` or ``map``, else what was injected into the same place."""
    if "expr" in how or "map" in how:
        return injected(how, setting, context)
    name = name_of(how)
    alike = [one for one in knob.apply if name_of(one) == name and one[name] == how[name]]
    return injected(alike[0], setting, context) if alike else setting


def remember_all(knobs: Sequence[Knob], context: Context) -> list[Any]:
    """What injections will overwrite (files, kernel settings), as JSON: to be kept before the first trial."""
    return [
        find(how, context.folder).remember(how, context)  # type: ignore[attr-defined] # asked for in the condition
        for how in _changing(knobs, context)
    ]


def put_back_all(knobs: Sequence[Knob], remembered: Sequence[Any], context: Context) -> list[str]:
    """Undo them, in reverse; what could not be undone, in words."""
    failed = []
    for how, one in reversed(list(zip(_changing(knobs, context), remembered, strict=True))):
        try:
            find(how, context.folder).put_back(how, one, context)  # type: ignore[attr-defined] # as above
        except Exception as error:  # the others are still to be undone
            failed.append(f"{name_of(how)} {how[name_of(how)]}: {_words(error)}")
    return failed


def _changing(knobs: Sequence[Knob], context: Context) -> list[Mapping[str, Any]]:
    """Injections that can be undone, one for each place."""
    found: dict[str, Mapping[str, Any]] = {}
    for knob in knobs:
        for how in knob.apply:
            if hasattr(find(how, context.folder), "remember"):
                found.setdefault(f"{name_of(how)} {how[name_of(how)]}", how)
    return list(found.values())


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, PerflawError) else f"{type(error).__name__}: {error}"
