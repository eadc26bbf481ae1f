"""Specifications as table, document, exports, verdicts and view of the page."""
