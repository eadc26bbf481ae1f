"""perflaw: learns the laws of a program's performance from its runs."""

from perflaw.decorator import law

__all__ = ["__version__", "law"]

__version__ = "0.1.0"
