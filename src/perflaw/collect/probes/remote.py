"""Collectors on other hosts: found by address, told the token, their clocks compared with ours."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perflaw.collect.probes.batches import Sender
from perflaw.collect.probes.client import Collecting
from perflaw.collect.wire.address import Address, parse_address
from perflaw.collect.wire.tls import connect
from perflaw.collect.wire.token import read_token
from perflaw.errors import UsageError

_ROUNDS: Final = 8
_APART: Final = 1 << 20
"""Processes that one collector may meet before their numbers reach those of the next."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A collector on another host, and what is needed to talk to it."""

    address: Address
    """Where it listens."""
    token: str
    """What both sides know."""
    authority: Path
    """Certificate to trust."""


def remotes(addresses: Sequence[str], token_file: str | None, authority: str | None) -> tuple[Remote, ...]:
    """As the command line says them; UsageError where token or certificate are missing."""
    if addresses and not (token_file and authority):
        why = "a collector on another host wants --token-file and shows a certificate that --ca must name"
        raise UsageError(f"--remote {addresses[0]}", why, "--remote HOST:PORT --token-file FILE --ca FILE.pem")
    if not addresses:
        return ()
    token = read_token(Path(token_file or ""))
    return tuple(Remote(parse_address(text), token, Path(authority or "")) for text in addresses)


def reach(remote: Remote, number: int = 0) -> Collecting:
    """Connect; ``number``: which of several it is, from 1, this machine's own being 0. WireError, UsageError say why not."""
    collecting = Collecting(connect(remote.address, remote.token, remote.authority))
    ahead, collecting.exact_ns = compare_clocks(collecting)
    collecting.sender = Sender(str(remote.address), number * _APART, ahead)
    return collecting


def compare_clocks(collecting: Collecting) -> tuple[int, int]:
    """What to add to its CLOCK_MONOTONIC to have ours, and how exact that is (half the quickest round trip), ns.

    Cristian, "Probabilistic clock synchronization", 1989: the other side answered somewhere between question and answer.
    """
    best = (1 << 62, 0)
    for _ in range(_ROUNDS):
        before = time.monotonic_ns()
        theirs = int(collecting.ask("clock")["monotonic_ns"])
        after = time.monotonic_ns()
        best = min(best, (after - before, (before + after) // 2 - theirs))
    return best[1], best[0] // 2
