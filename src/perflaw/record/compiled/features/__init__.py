"""Features of compiled functions: what their arguments are when they begin, compiled from their types and locations."""
