"""Programs in, recordings out: one module a source; ``core`` chooses the tracer and says why."""
