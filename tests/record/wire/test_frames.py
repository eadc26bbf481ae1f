"""Messages survive any cutting into pieces; what is no message is refused before it costs memory."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.wire.channel import HEADER, MAGIC, UNGREETED, Decoder, Message, MessageLimits, WireError, encode

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.lists(
    st.tuples(st.text(), st.dictionaries(st.text(), JSON, max_size=4), st.binary(max_size=200)), max_size=5
)


def messages(decoder):
    """Every message that is whole."""
    while decoder.begun and not decoder.wanted():
        yield decoder.take()


@given(MESSAGES, st.lists(st.integers(1, 60), min_size=1))
def test_every_cutting_gives_the_same_messages(said, cuts):
    stream = b"".join(encode(*one, MessageLimits()) for one in said)
    decoder, got, at = Decoder(MessageLimits()), [], 0
    while at < len(stream):
        step = cuts[at % len(cuts)]
        decoder.feed(stream[at : at + step])
        got += messages(decoder)
        at += step
    assert got == [Message(*one) for one in said]
    assert not decoder.begun


@given(st.binary(min_size=1, max_size=200))
def test_garbage_is_refused_or_waited_for(data):
    decoder = Decoder(UNGREETED)
    decoder.feed(data)
    try:
        for message in messages(decoder):
            assert isinstance(message, Message)
    except WireError:
        return
    assert not decoder.begun or data.startswith(MAGIC[: len(data)])


@pytest.mark.parametrize(("text", "payload"), [(2**32 - 1, 0), (10, 2**32 - 1), (4097, 0), (10, 1)])
def test_giant_lengths_are_refused_at_the_header(text, payload):
    decoder = Decoder(UNGREETED)
    decoder.feed(HEADER.pack(MAGIC, text, payload))
    with pytest.raises(WireError, match="too large"):
        decoder.wanted()


@pytest.mark.parametrize(
    "text",
    [
        *(b"{", b"[]", b'{"kind": 1, "document": {}}', b'{"kind": "a", "document": []}', b"[" * 4000, b"\xff\xfe"),
        *(b"7", b'{"kind": "a", "document": {"x": NaN}}', b'{"kind": "a"}'),
    ],
)
def test_texts_that_say_nothing_are_refused(text):
    decoder = Decoder(UNGREETED)
    decoder.feed(HEADER.pack(MAGIC, len(text), 0) + text)
    with pytest.raises(WireError, match="cannot be read"):
        list(messages(decoder))


def test_what_json_cannot_say_is_not_sent():
    for document in ({"x": float("nan")}, {"x": object()}):
        with pytest.raises(WireError, match="cannot be sent"):
            encode("a", document, b"", MessageLimits())
    with pytest.raises(WireError, match="too large"):
        encode("a", {}, b"x" * 11, MessageLimits(100, 10))


def test_the_layout_is_as_written():
    text = json.dumps({"kind": "a", "document": {"b": 1}}, separators=(",", ":")).encode()
    assert (
        encode("a", {"b": 1}, b"xyz", MessageLimits())
        == b"plw1" + len(text).to_bytes(4, "little") + b"\3\0\0\0" + text + b"xyz"
    )
