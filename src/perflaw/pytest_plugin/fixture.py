"""What tests get as ``perflaw``."""

from __future__ import annotations

from perflaw.pytest_plugin.scales import Scaling, ScalingError, ScalingWarning, assert_scales

__all__ = ["Perflaw", "Scaling", "ScalingError", "ScalingWarning"]


class Perflaw:
    """Assertions about how code grows."""

    assert_scales = staticmethod(assert_scales)
