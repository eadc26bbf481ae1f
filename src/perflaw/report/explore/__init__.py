"""Studies as table, document and page."""
