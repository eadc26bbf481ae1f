"""Knobs for tests of injectors, applied and verified."""

from perflaw.explore.injectors.applying import apply_all, verify_all
from perflaw.explore.injectors.context import Context
from perflaw.types import Knob


def knob(name="x", kind="int", *, apply=(), verify=None, **more):
    apply = (apply,) if isinstance(apply, dict) else tuple(apply)
    ranged = {"low": 0, "high": 10**9} if kind in ("int", "float") else {}
    return Knob(name, kind, apply=apply, verify=verify, **{**ranged, **more})


def tried(tmp_path, one, setting, **context):
    """Apply and verify on what does not run: why not, and the context."""
    context = Context(str(tmp_path), **context)
    apply_all([one], {one.name: setting}, context)
    return verify_all([one], {one.name: setting}, context, "after"), context
