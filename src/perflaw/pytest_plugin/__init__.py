"""The pytest plugin; ``plugin`` is its entry point, and everything else is imported on demand."""

RECORDED_VARIABLE = "PERFLAW_PYTEST_RECORDED"
"""Environment variable that tells pytest that it is being recorded; removed before the first test."""
