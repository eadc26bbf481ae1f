"""Parts of reading and learning on the workers of a Dask cluster: those of a scheduler, or processes of this machine.

Dask repeats what a lost worker had; the parts and their order do not depend on the workers (`parts.py`), so the result is
that of one process. A scheduler's workers run what its clients send: it has to be one that you trust. They read
recordings at the paths of their client, in a folder that all of them see.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from importlib.metadata import version
from logging import CRITICAL
from typing import Any, Final
from warnings import catch_warnings, filterwarnings

import perflaw
from perflaw.errors import UsageError
from perflaw.parts import Item, Mapper, Result, mapped_by, split

_CONNECT_S: Final = 10.0
"""Time that a scheduler has to answer."""
_OF_WORKERS: Final = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 28,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25,
    "distributed.nanny.pre-spawn-environ.MALLOC_ARENA_MAX": 1,
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}
"""Settings of workers on this machine. Dask has them give memory back as soon as 64 kB are free. Learning, which makes arrays
all the time, would get it from the kernel page by page again, and take 1.3 to 1.6 times as long. Dask also wakes each of
them, its supervisor and the client up some eighty times a second, to look at its own clock and at their memory."""


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

        with mapped_by(_Workers(client)):
            yield


class _Workers(Mapper):
    """The workers of a cluster.

    What is sent is pickled here, once: the scheduler passes the bytes on, where it would unpickle and pickle all else. As
    the results of tasks, functions are there again if the worker that had them is lost.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._pickled: Callable[[object], bytes] = import_module("distributed.protocol.pickle").dumps

    def results(
        self, function: Callable[[Sequence[Item]], list[Result]], parts: list[Sequence[Item]]
    ) -> Iterator[list[Result]]:
        """What the workers make of the parts, in their order."""
        messages = [pickle.dumps(part, protocol=5) for part in parts]
        for future in self._sent(_apply, [self._shared(function)] * len(parts), messages):
            yield pickle.loads(future.result())
            future.release()

    def merged(
        self,
        read: Callable[[Sequence[Item]], Result],
        merge: Callable[[Sequence[Result]], Result],
        items: Sequence[Item],
        size: int,
        tell: Callable[[float], None],
    ) -> Result:
        """The merged result, which alone comes here."""
        parts = [pickle.dumps(some, protocol=5) for some in split(items, size)]
        level = made = self._sent(_read, [self._shared(read)] * len(parts), parts)
        merging = self._shared(merge)
        while len(level) > 1:
            groups = split(level, size)
            level = self._sent(_merge, [merging] * len(groups), groups)
            made = [*made, *level]
        for done, future in enumerate(made, 1):
            import_module("distributed").wait(future)
            tell(done / len(made))
            if future is not level[0]:
                future.release()  # the workers keep it as long as it is to be merged
        result: Result = level[0].result()
        return result

    def _shared(self, function: Callable[..., object]) -> Any:
        """A function, which may hold much, as every worker gets it once."""
        [future] = self._sent(_unchanged, [self._pickled(function)])
        return future

    def _sent(self, function: Callable[..., object], *arguments: Sequence[object]) -> list[Any]:
        with catch_warnings():
            filterwarnings("ignore", "Sending large graph")  # parts have to get there, however large they are
            futures: list[Any] = self._client.map(function, *arguments, pure=False)
        return futures


def _unchanged(message: bytes) -> bytes:
    return message


def _apply(function: bytes, part: bytes) -> bytes:
    return pickle.dumps(_read(function, part), protocol=5)


def _read(function: bytes, part: bytes) -> Any:
    return _without_collections(_loaded(function), pickle.loads(part))


def _merge(function: bytes, results: list[Any]) -> Any:
    return _without_collections(_loaded(function), results)


def _without_collections(function: Callable[[Any], Any], part: Any) -> Any:
    """The function's result. Cycles are collected after it: that strikes a worker, whose modules are many, harder."""
    gc.disable()
    try:
        return function(part)
    finally:
        gc.enable()


_last: tuple[bytes, Callable[[Any], Any]] | None = None
"""The function that this worker had last, as it came and unpickled."""


def _loaded(message: bytes) -> Callable[[Any], Any]:
    global _last
    if _last is None or _last[0] is not message:
        _last = message, pickle.loads(message)
    return _last[1]


def _versions() -> tuple[str, str]:
    """The packages on which the last bit of a result depends."""
    return f"perflaw {version(perflaw.__name__)}", f"numpy {version('numpy')}"
