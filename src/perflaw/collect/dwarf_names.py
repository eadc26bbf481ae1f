"""Names of functions from tables of symbols, for files without debug information."""

from __future__ import annotations

from collections.abc import Iterable


class Names:
    """Functions by their address."""

    def __init__(self, symbols: Iterable[tuple[int, str]]) -> None:
        self._names: dict[int, str] = {}
        for address, name in symbols:  # several names of one function: the shortest, then the first in order
            known = self._names.get(address)
            if known is None or (len(name), name) < (len(known), known):
                self._names[address] = name

    def at(self, address: int) -> str:
        """The name of the function that begins there, demangled and without parameters; empty where it has none."""
        return without_parameters(demangled(self._names.get(address, "")))


def demangled(symbol: str) -> str:
    """A symbol of C++ as it was written; any other as it is."""
    if not symbol.startswith("_Z"):
        return symbol
    import cxxfilt

    try:
        return str(cxxfilt.demangle(symbol))
    except cxxfilt.Error:
        return symbol


def without_parameters(name: str) -> str:
    """A demangled name up to its list of parameters, and without what it returns.

    >>> without_parameters("int ns::sum<int>(int, int) const")
    'ns::sum<int>'
    >>> without_parameters("(anonymous namespace)::S::operator()(int)")
    '(anonymous namespace)::S::operator()'
    """
    begin = end = depth = 0
    while end < len(name):
        rest = name[end:]
        skipped = next((word for word in _WHOLE if rest.startswith(word)), "")
        if skipped:
            end += len(skipped)
            continue
        if rest[0] == "(" and depth == 0:
            return name[begin:end]
        if rest[0] == " " and depth == 0:
            begin = end + 1
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(rest[0], 0)
        end += 1
    return name[begin:]


_WHOLE = (
    *("(anonymous namespace)", "operator()", "operator->", "operator<<", "operator<=", "operator<"),
    *("operator>>", "operator>=", "operator>", "operator "),
)
"""What holds brackets or spaces and is one word."""
