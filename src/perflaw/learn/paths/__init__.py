"""Specifications of what durations a function shows on which call paths; arrays in, models out, no files."""
