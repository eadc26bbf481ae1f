"""Injectors: how a setting is applied to the target, and how it is read back (SPEX, §3.2)."""
