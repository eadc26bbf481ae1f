"""Who may speak to whom: the controller's certificates, and the one file by which the hosts of a service join it.

The controller has an authority of its own. It signs the controller's certificate and one for each service, so both sides of
a connection prove who they are. A token says which service a stub is of; enrolling the service again makes a new token, and
the old one is refused.
"""

from __future__ import annotations

import hashlib
import secrets
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from perflaw.documents import DocumentSource, json_document
from perflaw.errors import StoreError, UsageError
from perflaw.store.files import write_whole
from perflaw.types.documents import dumps
from perflaw.wire.tls import Address, parse_address, serving, trusting

SCHEMA: Final = "perflaw.enrolment/1"
_DAYS: Final = "3650"
_INIT: Final = "perflaw controller init --listen HOST:7480"


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What a stub needs to join a service; the text of one file."""

    service: str
    """Name of the service whose processes are measured."""
    address: str
    """HOST:PORT of the controller."""
    allow: tuple[str, ...]
    """Patterns of the functions that may be measured; requests for others are refused by the stub."""
    token: str
    """Secret that says which service the stub is of."""
    authority: str
    """Certificate (PEM) that signed the controller's."""
    certificate: str
    """The service's certificate and key (PEM)."""

    def text(self) -> str:
        """The file."""
        return dumps({"schema": SCHEMA, **{name: getattr(self, name) for name in self.__dataclass_fields__}}) + "\n"

    def context(self) -> ssl.SSLContext:
        """The TLS context of a stub: it shows the service's certificate and trusts the controller's authority alone."""
        with tempfile.TemporaryDirectory() as folder:
            authority, own = Path(folder, "ca.pem"), Path(folder, "own.pem")
            authority.write_text(self.authority)
            own.touch(0o600)
            own.write_text(self.certificate)
            context = trusting(authority)
            try:
                context.load_cert_chain(own)
            except (OSError, ssl.SSLError) as error:
                raise UsageError("the enrolment's certificate cannot be used", str(error), _enrol(self)) from error
        return context


def _enrol(enrolment: Enrolment) -> str:
    return f"perflaw controller enrol {enrolment.service} --allow GLOB > {enrolment.service}.enrolment"


def read_enrolment(path: Path) -> Enrolment:
    """The enrolment of a file; UsageError if it cannot be read, others may read it, or it is none."""
    advice = f"perflaw controller enrol SERVICE --allow GLOB > {path}"
    try:
        text, mode = path.read_text(), path.stat().st_mode & 0o777
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: the enrolment cannot be read", str(error), advice) from error
    if mode & 0o077:
        raise UsageError(f"{path}: others may read the enrolment", f"its mode is {mode:03o}", f"chmod 600 {path}")
    node = json_document(text, DocumentSource(str(path), UsageError, advice))
    parts = node.mapping(required=("schema", *Enrolment.__dataclass_fields__))
    if parts["schema"].text() != SCHEMA:
        parts["schema"].expect(SCHEMA)
    parse_address(parts["address"].text())
    return Enrolment(
        parts["service"].text(),
        parts["address"].text(),
        tuple(one.text() for one in parts["allow"].items()),
        *(parts[name].text() for name in ("token", "authority", "certificate")),
    )


def digest(token: str) -> str:
    """What the controller keeps of a token."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class ControllerFolder:
    """The controller's own files: its authority, its certificate, its settings."""

    path: Path
    """The folder, readable by its owner alone."""
    address: Address
    """Where it listens."""
    public: str
    """HOST:PORT by which stubs reach it."""
    database: str
    """Path of an SQLite file, or URL of a PostgreSQL database."""

    @classmethod
    def make(cls, path: Path, listen: str, names: Sequence[str], database: str) -> ControllerFolder:
        """A new folder; UsageError where there is one already. Port 0 stands for any port that is free now."""
        address = parse_address(listen)
        settings = path / "controller.json"
        if settings.exists():
            why = "its certificates are in use"
            raise UsageError(f"{path}: there is a controller already", why, f"perflaw controller serve {path}")
        if not address.port:
            with socket.create_server((address.host, 0)) as free:
                address = Address(address.host, free.getsockname()[1])
        hosts = [one for one in (*names, address.host) if one not in ("", "0.0.0.0", "::")] or [socket.gethostname()]
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.chmod(0o700)
        _sign(
            path / "ca",
            "perflaw controller",
            "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign",
        )
        alternatives = ",".join(f"{'IP' if _is_number(one) else 'DNS'}:{one}" for one in hosts)
        _sign(path / "server", hosts[0], f"subjectAltName={alternatives}\nextendedKeyUsage=serverAuth", path / "ca")
        document = {"schema": "perflaw.controller/1", "listen": str(address), "public": hosts[0], "database": database}
        write_whole(settings, dumps(document) + "\n")
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> ControllerFolder:
        """The folder that ``make`` made; UsageError where it is none."""
        settings = path / "controller.json"
        try:
            text = settings.read_text()
        except OSError as error:
            raise UsageError(f"{path}: no controller", error.strerror or str(error), f"{_INIT} {path}") from error
        parts = json_document(text, DocumentSource(str(settings), StoreError)).mapping(
            required=("schema", "listen", "public", "database")
        )
        database = parts["database"].text() or str(path / "fleet.db")
        address = parse_address(parts["listen"].text())
        return cls(path, address, str(Address(parts["public"].text(), address.port)), database)

    def context(self) -> ssl.SSLContext:
        """The TLS context of the controller: peers have to show a certificate of its authority."""
        context = serving(self.path / "server.pem", self.path / "server.key")
        context.load_verify_locations(self.path / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def enrol(self, service: str, allow: Sequence[str]) -> Enrolment:
        """A new token and certificate for a service."""
        if not service.isprintable() or not service or len(service) > 64 or "/" in service:
            raise UsageError(f"service {service!r}", "a name of 1 to 64 letters was expected", "shop")
        with tempfile.TemporaryDirectory() as folder:
            own = Path(folder, "own")
            _sign(own, service, "extendedKeyUsage=clientAuth", self.path / "ca")
            certificate = own.with_suffix(".pem").read_text() + own.with_suffix(".key").read_text()
        authority = (self.path / "ca.pem").read_text()
        return Enrolment(service, self.public, tuple(allow), secrets.token_hex(32), authority, certificate)


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _sign(name: Path, subject: str, extensions: str, authority: Path | None = None) -> None:
    """Write NAME.pem and NAME.key, signed by an authority's, or by itself."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "settings")
        ours = extensions if "CA:TRUE" in extensions else f"basicConstraints=critical,CA:FALSE\n{extensions}"
        kept = ours + "\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
        subject_line = (
            f"[req]\nprompt=no\nstring_mask=utf8only\nutf8=yes\ndistinguished_name=who\n[who]\nCN={subject}\n"
        )
        settings.write_text(f"{subject_line}[v3]\n{kept}")
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        words += ["-days", _DAYS, "-config", str(settings), "-extensions", "v3"]
        words += ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
        if authority:
            words += ["-CA", f"{authority}.pem", "-CAkey", f"{authority}.key"]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        except OSError as error:
            raise UsageError(
                "openssl cannot be run", error.strerror or str(error), "apt-get install openssl"
            ) from error
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise UsageError(f"openssl made no certificate for {subject}", why, "openssl version  (3.0 or later is needed)")
