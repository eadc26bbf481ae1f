"""A certificate for this machine, made by openssl once a session, and a token."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from perflaw.wire.tls import Address, Listener, serving

TOKEN = "0123456789abcdef0123456789abcdef"


@dataclass(frozen=True)
class Secrets:
    """Files as a person would make them."""

    certificate: Path
    key: Path
    token: Path


def make_certificate(folder: Path, name: str = "here") -> tuple[Path, Path]:
    """Certificate and key for 127.0.0.1, as docs/collector.md says to make them."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    for_whom = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*make, *for_whom, *files], check=True, capture_output=True, timeout=60)
    return certificate, key


@pytest.fixture(scope="session")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Secrets:
    folder = tmp_path_factory.mktemp("secrets")
    token = folder / "token"
    token.touch(0o600)
    token.write_text(TOKEN + "\n")
    return Secrets(*make_certificate(folder), token)


@pytest.fixture
def listener(secrets: Secrets) -> Iterator[Listener]:
    """One that gives strangers little time."""
    context = serving(secrets.certificate, secrets.key)
    listening = Listener(Address("127.0.0.1", 0), TOKEN, context, greeting_s=1.0, frame_s=1.0)
    yield listening
    listening.close()
