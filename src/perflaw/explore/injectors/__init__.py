"""Injectors: how a setting gets into the target, and how the target is asked what it has (SPEX, §3.2)."""
