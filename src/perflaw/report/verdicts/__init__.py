"""Verdicts of ``check`` and ``diff`` as text, for code-scanning services and on the page."""
