"""perflaw: learns the laws of a program's performance from its runs."""

from perflaw.decorator import law
from perflaw.listening import listen

__all__ = ["__version__", "law", "listen"]

__version__ = "0.1.0"
