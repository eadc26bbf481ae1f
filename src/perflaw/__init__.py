"""perflaw: learns the laws of a program's performance from its runs."""

__version__ = "0.1.0"
