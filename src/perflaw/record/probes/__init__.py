"""Records of probes: areas of shared memory drained by a process beside the target, made into metrics and tables."""
