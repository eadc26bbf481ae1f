"""Trends as table, document and view of the page."""
