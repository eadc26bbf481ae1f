"""How Python programs are recorded: tracers, what enters the target, and what is read of it."""
