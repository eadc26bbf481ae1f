"""Special functions and tails of distributions: those of ``scipy.special``, without importing the whole package.

The package imports NumPy's tools for tests and Fortran for the sake of other array libraries, which takes longer than to
learn the laws of a small recording. Its extension module has the same functions on its own.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_PACKAGE = "scipy.special"


def _functions() -> ModuleType:
    """The extension module of ``scipy.special``, or the package where it is imported already or is built otherwise."""
    if _PACKAGE in sys.modules:
        return sys.modules[_PACKAGE]
    scipy = find_spec("scipy")
    alone = ModuleType(_PACKAGE)
    alone.__path__ = [f"{folder}/special" for folder in (scipy and scipy.submodule_search_locations) or ()]
    sys.modules[_PACKAGE] = alone
    try:
        module = import_module(f"{_PACKAGE}._ufuncs")
    except ImportError:
        module = alone
    finally:
        # Whoever imports the package later gets it whole.
        del sys.modules[_PACKAGE]
    return module if hasattr(module, "stdtrit") and hasattr(module, "_zeta") else import_module(_PACKAGE)


_source: Any = _functions()
betainc, betaincinv = _source.betainc, _source.betaincinv
chdtrc, chdtri, fdtrc = _source.chdtrc, _source.chdtri, _source.fdtrc
expit, gammaln, xlog1py, xlogy = _source.expit, _source.gammaln, _source.xlog1py, _source.xlogy
ndtr, ndtri, stdtr, stdtrit = _source.ndtr, _source.ndtri, _source.stdtr, _source.stdtrit
digamma = _source.psi
_zeta = _source._zeta if hasattr(_source, "_zeta") else _source.zeta


def trigamma(x: Any) -> Any:
    """The derivative of the digamma function at positive x: the zeta function of Hurwitz at 2 and x.

    >>> round(float(trigamma(1.0)), 6), round(float(digamma(1.0)), 6)
    (1.644934, -0.577216)
    """
    return _zeta(2.0, x)
