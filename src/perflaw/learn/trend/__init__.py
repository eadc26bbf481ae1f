"""The trend learner: which places in the code scale badly with the workload? Arrays in, clusters and laws out."""

from perflaw.learn.trend.inputs import TrendOptions
from perflaw.learn.trend.trend import trend

__all__ = ["TrendOptions", "trend"]
