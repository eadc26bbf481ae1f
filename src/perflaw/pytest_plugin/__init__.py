"""The pytest plugin; ``plugin`` is its entry point, everything else is imported when it is asked for."""
