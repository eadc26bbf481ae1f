"""What the agent does with a target: its processes, outputs, conditions, files and the load beside it."""
