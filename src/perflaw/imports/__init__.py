"""Traces that other tools recorded, as recordings: read to the records of our tracers, then through the same core."""
