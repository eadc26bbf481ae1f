"""The cost model of a program: exact counts times unit costs, summed over the call tree."""

from perflaw.learn.program.forecasts import forecast
from perflaw.learn.program.laws import RunLaws, forecast_program
from perflaw.learn.program.model import CostModel, learn_program
from perflaw.learn.program.sources import growth_sources, outlook

__all__ = ["CostModel", "RunLaws", "forecast", "forecast_program", "growth_sources", "learn_program", "outlook"]
