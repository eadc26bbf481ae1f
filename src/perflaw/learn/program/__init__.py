"""The cost model of a program: exact counts times unit costs, summed over the call tree."""

from perflaw.learn.program.laws import RunLaws, forecast_program
from perflaw.learn.program.model import CostModel, learn_program

__all__ = ["CostModel", "RunLaws", "forecast_program", "learn_program"]
