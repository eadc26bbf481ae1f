"""Injection into unmodified programs: which functions can be patched, and the patches that the program applies."""
