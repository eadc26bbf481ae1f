"""The law learner: how does a response depend on features? Arrays in, laws out; no files, no printing."""

from perflaw.learn.series.learner import learn
from perflaw.learn.series.learnt import Learnt
from perflaw.learn.series.series import Options, Series

__all__ = ["Learnt", "Options", "Series", "learn"]
