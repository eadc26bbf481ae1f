"""How the recorded pytest knows that it is recorded."""

INNER = "PERFLAW_PYTEST_RECORDED"
"""Variable that marks it; gone before the first test."""
