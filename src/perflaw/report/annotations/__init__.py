"""Annotations and verdicts on them as tables, law files and documents."""
