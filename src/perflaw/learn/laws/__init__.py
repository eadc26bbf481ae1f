"""The law learner: how does a response depend on features? Arrays in, laws out; no files, no printing."""

from perflaw.learn.laws.learner import learn
from perflaw.learn.laws.learnt import Learnt
from perflaw.learn.laws.series import Options, Series

__all__ = ["Learnt", "Options", "Series", "learn"]
