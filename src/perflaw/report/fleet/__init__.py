"""The state of a fleet as a table and as a page."""
