"""The agent: a process of its own that configures, runs and restores a target (SPEX, §3.2)."""
