"""Variance as table, screen, document, graphs and view of the page."""
