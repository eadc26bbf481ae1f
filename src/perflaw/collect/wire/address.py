"""``HOST:PORT`` as people write it."""

from __future__ import annotations

from dataclasses import dataclass

from perflaw.errors import UsageError


@dataclass(frozen=True, slots=True)
class Address:
    """Where somebody listens."""

    host: str
    """Name or number of the machine; empty: every one of this machine's."""
    port: int
    """Port; 0: any that is free."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """``host:7000``, ``127.0.0.1:7000``, ``[::1]:7000``; UsageError for anything else."""
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535 or (":" in bare and bare == host):
        raise UsageError(f"address {text!r}", "wanted: HOST:PORT", "127.0.0.1:7000")
    return Address(bare, int(port))
