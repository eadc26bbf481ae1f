"""How a stub speaks to its controller: HTTPS requests that the stub begins, so no port opens beside the process."""

from __future__ import annotations

import http.client
import json
import socket
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from perflaw.mine.fleet.enrolment import Enrolment
from perflaw.wire.channel import WireError
from perflaw.wire.tls import notice_silence, parse_address

MOST_ANSWER: Final = 1 << 20
"""Bytes of an answer that are read."""


class Refused(WireError):
    """The controller does not want this; asking again does not help."""


class ControllerClient:
    """One connection, for one thread; it is opened anew after each failure."""

    def __init__(self, enrolment: Enrolment) -> None:
        self._address, self._context = parse_address(enrolment.address), enrolment.context()
        self._headers = {"Authorization": f"Bearer {enrolment.token}"}
        self._connection: http.client.HTTPSConnection | None = None

    def post(self, path: str, document: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        """Send a document, and return the answer; WireError if none came, Refused if the controller refuses."""
        return self._post(path, json.dumps(document).encode(), {"Content-Type": "application/json"}, timeout_s)

    def deliver(self, stub: str, batch: Sequence[tuple[str, str]], timeout_s: float) -> Mapping[str, Any]:
        """Send measurements as (id, text); the answer names those that are refused; all others are on the controller's disk."""
        body = zlib.compress("\n".join(f"{name} {text}" for name, text in batch).encode(), 1)
        headers = {"Content-Type": "text/plain", "Content-Encoding": "deflate"}
        return self._post(f"/v1/measurements?stub={stub}", body, headers, timeout_s)

    def wake(self) -> None:
        """End the connection from another thread; a request that waits for its answer fails."""
        if (connection := self._connection) and connection.sock:
            with suppress(OSError):  # it has ended already
                socket.socket.shutdown(
                    connection.sock, socket.SHUT_RDWR
                )  # below TLS, whose state is the other thread's

    def close(self) -> None:
        """Close the connection."""
        if self._connection:
            with suppress(OSError):  # the other side has closed it
                self._connection.close()
        self._connection = None

    def _post(self, path: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> Mapping[str, Any]:
        name = f"controller {self._address}"
        used = self._connection is not None
        try:
            connection = self._open(timeout_s)
            connection.request("POST", path, body, {**self._headers, **headers})
            answer = connection.getresponse()
            text = answer.read(MOST_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if used and isinstance(
                error, ConnectionError
            ):  # the controller closes connections on which nothing happens
                return self._post(path, body, headers, timeout_s)
            why = str(error) or type(error).__name__
            raise WireError(f"{name}: cannot be reached", why, "perflaw controller serve, on its host") from error
        try:
            document = json.loads(text)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            self.close()
            why = f"status {answer.status}, and no document; another server listens there?"
            raise WireError(f"{name}: no answer", why, "perflaw controller status, on its host")
        if answer.status != 200:
            kind = Refused if 400 <= answer.status < 500 else WireError
            raise kind(f"{name}: status {answer.status}", str(document.get("why", "")), str(document.get("try", "")))
        return document

    def _open(self, timeout_s: float) -> http.client.HTTPSConnection:
        if self._connection is None:
            where, context = self._address, self._context
            self._connection = http.client.HTTPSConnection(where.host, where.port, timeout=timeout_s, context=context)
            self._connection.connect()
            notice_silence(self._connection.sock)
        self._connection.sock.settimeout(timeout_s)
        return self._connection
