"""Parts of reading and learning on the workers of a Dask cluster: those of a scheduler, or processes of this machine.

Dask repeats what a lost worker had; the parts and their order do not depend on the workers (`parts.py`), so the result is
that of one process. A scheduler's workers run what its clients send: it has to be one that you trust. They read
recordings at the paths of their client, in a folder that all of them see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from importlib.metadata import version
from logging import CRITICAL
from typing import Any, Final
from warnings import catch_warnings, filterwarnings

import perflaw
from perflaw.errors import UsageError
from perflaw.parts import mapped_by

_CONNECT_S: Final = 10.0
"""Time that a scheduler has to answer."""
_OF_WORKERS: Final = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 28,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25,
    "distributed.nanny.pre-spawn-environ.MALLOC_ARENA_MAX": 1,
    "distributed.worker.profile.enabled": False,
}
"""Settings of workers on this machine. Dask has them give memory back as soon as 64 kB are free. Learning, which makes arrays
all the time, would get it from the kernel page by page again, and take 1.3 to 1.6 times as long."""


def on_cluster(address: str | None) -> AbstractContextManager[None]:
    """While entered, parts are done by a cluster: None for none, ``local`` or ``local:WORKERS``, or a scheduler's address."""
    return _connected(address) if address else nullcontext()


@contextmanager
def _connected(address: str) -> Iterator[None]:
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise UsageError(f"--cluster {address}", str(error), "pip install 'perflaw[cluster]'") from error
    kind, _, count = address.partition(":")
    options: dict[str, Any] = {"address": address, "timeout": _CONNECT_S}
    if kind == "local":
        if count and not (count.isdecimal() and int(count)):
            raise UsageError(f"--cluster {address}", "the number of workers is missing", "--cluster local:4")
        workers = {"n_workers": int(count)} if count else {}
        options = {
            "processes": True,
            "threads_per_worker": 1,
            "dashboard_address": None,
            "silence_logs": CRITICAL,
            **workers,
        }
    try:
        with import_module("dask").config.set(_OF_WORKERS):
            client = distributed.Client(**options)
    except (OSError, ValueError) as error:
        why = str(error) or "it does not answer"
        raise UsageError(f"--cluster {address}", why, "dask scheduler, dask worker ADDRESS") from error
    with client:
        for worker, found in client.run(_versions).items():
            if found != _versions():
                why = f"{worker} has {', '.join(found)} and this machine {', '.join(_versions())}"
                raise UsageError(f"--cluster {address}", why, "the same packages on all workers")

        def run(function: Callable[[Sequence[Any]], list[Any]], parts: list[Sequence[Any]]) -> Iterator[list[Any]]:
            # The function, which may hold a whole call tree, is sent to each worker once. As the result of a task it is
            # there again if the worker that had it is lost.
            with catch_warnings():
                filterwarnings("ignore", "Sending large graph")  # parts have to get there, however large they are
                shared = client.submit(_unchanged, function, pure=False)
                futures = client.map(_apply, [shared] * len(parts), parts, pure=False)
            for future in futures:
                yield future.result()

        with mapped_by(run):
            yield


def _unchanged(function: Callable[[Sequence[Any]], list[Any]]) -> Callable[[Sequence[Any]], list[Any]]:
    return function


def _apply(function: Callable[[Sequence[Any]], list[Any]], part: Sequence[Any]) -> list[Any]:
    return function(part)


def _versions() -> tuple[str, str]:
    """The packages on which the last bit of a result depends."""
    return f"perflaw {version(perflaw.__name__)}", f"numpy {version('numpy')}"
