"""The report as one HTML page: its data, its charts, its assets."""
