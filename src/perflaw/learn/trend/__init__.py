"""The trend learner: places in the code whose cost grows badly with the workload, from counts over runs."""

from perflaw.learn.trend.data import TrendOptions
from perflaw.learn.trend.trend import trend

__all__ = ["TrendOptions", "trend"]
