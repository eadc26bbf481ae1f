"""Over TCP: who has the token and trusts the certificate comes in; everybody else is refused, in bounded time and memory."""

import socket
import ssl
import time
from contextlib import ExitStack

import pytest

from perflaw.errors import UsageError
from perflaw.wire import tls
from perflaw.wire.channel import HEADER, MAGIC, Closed, MessageLimits, WireError, encode
from perflaw.wire.tls import (
    GREETERS,
    GREETERS_OF_ADDRESS,
    Address,
    Listener,
    connect,
    is_token,
    parse_address,
    read_token,
    serving,
    trusting,
)
from tests.record.wire.conftest import TOKEN, make_certificate

WRONG = "f" * 32


def until(condition):
    """Wait for what another thread does, at most 10 s."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def plain(listener):
    """Makes connections without TLS, and closes them in the end."""
    with ExitStack() as opened:

        def connection():
            return opened.enter_context(socket.create_connection((listener.address.host, listener.address.port), 5))

        yield connection


@pytest.fixture
def secured(listener, secrets):
    """Makes connections with TLS that have not said anything yet."""
    with ExitStack() as opened:
        context = trusting(secrets.certificate)

        def connection():
            raw = socket.create_connection((listener.address.host, listener.address.port), 5)
            return opened.enter_context(context.wrap_socket(raw, server_hostname="127.0.0.1"))

        yield connection


def ended(connection):
    """Whether the other side hangs up within the time; what it says before is let pass."""
    connection.settimeout(10)
    try:
        while connection.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def test_both_sides_speak(listener, secrets):
    client = connect(listener.address, TOKEN, secrets.certificate)
    server = listener.accept(5)
    client.send("from client", {"n": 1}, b"x" * 300_000)
    assert len(server.receive(5).payload) == 300_000
    server.send("from server")
    assert client.receive(5).kind == "from server"
    assert client.receive(0) is None
    client.close()
    with pytest.raises(Closed):
        server.receive(5)
    assert not listener.refusals


def test_a_wrong_token_is_refused_and_said_so(listener, secrets):
    with pytest.raises(WireError, match="wrong token"):
        connect(listener.address, WRONG, secrets.certificate)
    until(lambda: listener.refusals == 1)
    assert "wrong token" in listener.refused[0]
    assert listener.accept(0) is None


def test_tokens_that_are_no_texts_are_wrong_ones():
    assert is_token(TOKEN, TOKEN)
    for shown in (None, 7, [TOKEN], "", TOKEN + "x", TOKEN[:-1], "\ud800"):
        assert not is_token(shown, TOKEN)


def test_another_version_is_refused(secured):
    connection = secured()
    connection.sendall(encode("hello", {"token": TOKEN, "protocol": 99}, b"", MessageLimits()))
    assert b"another version" in connection.recv(4096)
    assert ended(connection)


def test_a_client_does_not_trust_another_certificate(listener, tmp_path):
    other, _ = make_certificate(tmp_path, "other")
    with pytest.raises(WireError, match="not trusted"):
        connect(listener.address, TOKEN, other)
    until(lambda: listener.refusals == 1)  # and the token was not shown


def test_a_certificate_of_another_host_is_not_trusted(listener, secrets):
    address = Address("localhost", listener.address.port)  # the certificate names 127.0.0.1 alone
    with pytest.raises(WireError, match="not trusted"):
        connect(address, TOKEN, secrets.certificate)


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n\r\n", encode("hello", {"token": TOKEN}, b"", MessageLimits()), b"\0" * 70000],
    ids=["HTTP", "hello", "zeros"],
)
def test_a_peer_without_tls_is_refused(listener, said, plain):
    connection = plain()
    connection.sendall(said)
    assert ended(connection)
    until(lambda: listener.refusals == 1)
    assert listener.accept(0) is None


def test_a_peer_that_says_nothing_is_ended(listener, plain, secured):
    silent, half = plain(), plain()
    half.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a handshake
    after = secured()  # TLS, and then not a word
    assert ended(silent) and ended(half) and ended(after)
    until(lambda: listener.refusals == 3)


def test_what_the_handshake_took_is_not_given_again_for_the_token(listener, secured, monkeypatch):
    """A stranger has one deadline in all; the clock goes on by most of it while the handshake is made."""
    secure, expect, ahead, left = tls.secure, tls.expect, [0.0], []

    class Clock:
        monotonic = staticmethod(lambda: time.monotonic() + ahead[0])

    def slow(*arguments, **options):
        connection = secure(*arguments, **options)
        ahead[0] += 0.75 * listener._greeting_s
        return connection

    def watched(channel, kind, seconds):
        left.append(seconds)
        return expect(channel, kind, seconds)

    monkeypatch.setattr(tls, "time", Clock)
    monkeypatch.setattr(tls, "secure", slow)
    monkeypatch.setattr(tls, "expect", watched)
    assert ended(secured())
    until(lambda: listener.refusals == 1)
    assert left[0] <= 0.25 * listener._greeting_s


def test_strangers_do_not_keep_others_out(listener, secrets, plain):
    strangers = [plain() for _ in range(2 * GREETERS)]
    client = connect(listener.address, TOKEN, secrets.certificate)
    listener.accept(5).close()
    client.close()
    assert all(ended(stranger) for stranger in strangers)


def test_an_address_with_many_strangers_makes_no_other_address_wait(secrets):
    context = serving(secrets.certificate, secrets.key)
    listening = Listener(Address("", 0), TOKEN, context, greeting_s=60.0)
    port = listening.address.port
    others = [socket.create_connection(("127.0.0.2", port), source_address=("127.0.0.3", 0)) for _ in range(3)]
    crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(GREETERS)]
    until(lambda: listening.refusals == GREETERS - GREETERS_OF_ADDRESS)
    assert {why.partition(",")[0] for why in listening.refused} == {"127.0.0.1: too many peers at once"}
    for number in range(4, 8):
        crowd += [
            socket.create_connection(("127.0.0.1", port), source_address=(f"127.0.0.{number}", 0)) for _ in range(6)
        ]
    client = connect(Address("127.0.0.1", port), TOKEN, secrets.certificate)
    listening.accept(5).close()
    client.close()
    assert not any("127.0.0.3" in why for why in listening.refused)
    listening.close()
    for connection in (*others, *crowd):
        connection.close()


@pytest.mark.slow
def test_a_crowd_of_strangers_is_turned_away_and_the_next_comes_in(listener, secrets, plain):
    crowd = [plain() for _ in range(4 * GREETERS)]
    assert all(ended(stranger) for stranger in crowd)
    until(lambda: listener.refusals == len(crowd))
    assert any("too many" in why for why in listener.refused)
    connect(listener.address, TOKEN, secrets.certificate).close()
    listener.accept(5).close()


@pytest.mark.parametrize(
    "said",
    [
        b"garbage that is no frame",
        HEADER.pack(MAGIC, 2**32 - 1, 2**32 - 1),
        HEADER.pack(MAGIC, 4097, 0),
        HEADER.pack(MAGIC, 2, 0) + b"{}",
        HEADER.pack(MAGIC, 4000, 0) + b"[" * 4000,
        encode("goodbye", {}, b"", MessageLimits()),
        encode("hello", {"token": TOKEN}, b"", MessageLimits())[:-1],
    ],
    ids=["garbage", "giant", "too long", "empty", "deep", "no hello", "half"],
)
def test_strangers_that_say_anything_else_are_refused(listener, said, secured):
    connection = secured()
    connection.sendall(said)
    assert ended(connection)
    until(lambda: listener.refusals == 1)
    assert listener.accept(0) is None


def test_giant_lengths_are_refused_with_the_token_as_well(listener, secured):
    connection = secured()
    connection.sendall(encode("hello", {"token": TOKEN, "protocol": 1}, b"", MessageLimits()))
    server = listener.accept(5)
    connection.sendall(HEADER.pack(MAGIC, 10, 2**31))
    with pytest.raises(WireError, match="too large"):
        server.receive(5)


def test_half_a_message_is_given_up(listener, secured):
    connection = secured()
    connection.sendall(encode("hello", {"token": TOKEN, "protocol": 1}, b"", MessageLimits()) + b"pl")
    server = listener.accept(5)
    with pytest.raises(WireError, match="half a message"):
        server.receive(30)


def test_a_server_that_is_no_listener_of_ours(secrets):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address("127.0.0.1", server.getsockname()[1])
        with pytest.raises(WireError, match="no TLS"):
            connect(address, TOKEN, secrets.certificate, timeout_s=0.2)
    with pytest.raises(WireError, match="cannot be reached"):
        connect(address, TOKEN, secrets.certificate)


def test_a_listener_that_accepts_nobody_stays_bounded(secrets):
    context = serving(secrets.certificate, secrets.key)
    listening = Listener(Address("127.0.0.1", 0), TOKEN, context)
    clients = [connect(listening.address, TOKEN, secrets.certificate) for _ in range(10)]
    until(lambda: listening.refusals == 2)
    assert set(listening.refused) == {"127.0.0.1: nobody accepts"}
    listening.close()
    for client in clients:
        with pytest.raises(Closed):
            client.receive(5)


def test_token_files(tmp_path):
    file = tmp_path / "token"
    with pytest.raises(UsageError, match="cannot be read"):
        read_token(file)
    file.touch(0o644)
    file.write_text(TOKEN)
    with pytest.raises(UsageError, match="others may read"):
        read_token(file)
    file.chmod(0o600)
    assert read_token(file) == TOKEN
    for text in ("short", "", "x" * 2000, "two lines of\nwords that are long"):
        file.write_text(text)
        with pytest.raises(UsageError, match="not a token"):
            read_token(file)


def test_certificates_that_are_none(tmp_path, secrets):
    _, key = make_certificate(tmp_path, "other")
    for certificate, its_key in ((secrets.certificate, key), (secrets.token, key), (tmp_path / "none", key)):
        with pytest.raises(UsageError, match="no certificate"):
            serving(certificate, its_key)
    with pytest.raises(UsageError, match="no certificate to trust"):
        trusting(secrets.token)


def test_addresses():
    assert parse_address("host:70") == Address("host", 70)
    assert parse_address("[::1]:0") == Address("::1", 0)
    assert str(parse_address("[::1]:7")) == "[::1]:7"
    for text in ("host", "host:", ":x", "::1:70", "host:70000", "host:-1", ""):
        with pytest.raises(UsageError):
            parse_address(text)


def test_an_address_in_use(listener, secrets):
    with pytest.raises(UsageError, match="--listen"):
        Listener(listener.address, TOKEN, serving(secrets.certificate, secrets.key))


def test_the_oldest_tls_is_refused(plain):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        context.wrap_socket(plain()).close()
