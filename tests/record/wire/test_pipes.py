"""Channels between processes of one machine."""

import os
import sys
import threading
import time

import pytest

from perflaw.wire.channel import Closed, MessageLimits, WireError, expect, over, pair, spawn


def test_messages_both_ways_in_order():
    ours, theirs = pair()
    for number in range(5):
        ours.send("number", {"n": number}, bytes([number]) * number)
    theirs.send("reply")
    got = [theirs.receive(1) for _ in range(5)]
    assert [(one.kind, one.document, one.payload) for one in got] == [
        ("number", {"n": n}, bytes([n]) * n) for n in range(5)
    ]
    assert ours.receive(1).kind == "reply"
    assert theirs.receive(0) is None
    ours.close(), theirs.close(), ours.close()


def test_the_end_is_told_and_closed_channels_say_so():
    ours, theirs = pair()
    ours.send("last")
    ours.close()
    assert theirs.receive(1).kind == "last"
    with pytest.raises(Closed, match="has gone"):
        theirs.receive(1)
    with pytest.raises(Closed):
        theirs.send("anybody?")
    with pytest.raises(Closed):
        ours.send("closed")
    assert ours.fileno() == -1


def test_large_messages_pass_while_the_other_side_reads():
    ours, theirs = pair()
    payload = os.urandom(4 << 20)
    sender = threading.Thread(target=ours.send, args=("big", {}, payload))
    sender.start()
    assert theirs.receive(20).payload == payload
    sender.join(10)
    ours.close(), theirs.close()


def test_a_peer_that_never_reads_is_given_up():
    left, right = (os.pipe() for _ in range(2))
    channel = over(right[0], left[1], "deaf", frame_s=0.2)
    with pytest.raises(Closed, match="does not take"):
        channel.send("big", {}, b"x" * (1 << 22))
    os.close(left[0]), os.close(right[1])


def test_half_a_message_is_given_up():
    reading, writing = os.pipe()
    _, other = os.pipe()
    channel = over(reading, other, "slow", frame_s=0.2)
    os.write(writing, b"plw1\x40")
    assert channel.receive(0) is None
    with pytest.raises(WireError, match="half a message"):
        channel.receive(30)
    os.close(writing)


def test_slow_bytes_do_not_buy_time():
    """A byte now and then: the message as a whole has its time and no more."""
    reading, writing = os.pipe()
    _, other = os.pipe()
    channel = over(reading, other, "drip", frame_s=0.3)
    stop = threading.Event()

    def drip():
        for byte in b"plw1" + b"\x40" * 100:
            if stop.is_set():
                return
            os.write(writing, bytes([byte]))
            time.sleep(0.02)

    dripping = threading.Thread(target=drip)
    dripping.start()
    with pytest.raises(WireError):
        channel.receive(30)
    stop.set()
    dripping.join(5)
    os.close(writing)


def test_garbage_ends_a_channel():
    reading, writing = os.pipe()
    _, other = os.pipe()
    channel = over(reading, other, "garbage")
    os.write(writing, b"GET / HTTP/1.1\r\n")
    with pytest.raises(WireError, match="no message"):
        channel.receive(1)
    assert channel.fileno() == -1
    os.close(writing)


def test_expect_names_what_went_wrong():
    ours, theirs = pair()
    with pytest.raises(WireError, match="within 0"):
        expect(ours, "welcome", 0)
    theirs.send("refused", {"what": "wrong token", "why": "they differ"})
    with pytest.raises(WireError, match="wrong token: they differ"):
        expect(ours, "welcome", 1)
    theirs.send("other")
    with pytest.raises(WireError, match="'other' where 'welcome'"):
        expect(ours, "welcome", 1)
    ours.close(), theirs.close()


ECHO = """
import sys
from perflaw.wire.channel import over
channel = over(int(sys.argv[1]), int(sys.argv[1]), "parent")
message = channel.receive(30)
channel.send(message.kind, message.document, message.payload[::-1])
"""


def test_a_spawned_process_speaks_over_its_descriptor():
    process, channel = spawn([sys.executable, "-c", ECHO, "{channel}"], "echo")
    channel.send("word", {"a": [1, None, "ü"]}, b"abc")
    message = channel.receive(30)
    assert (message.kind, message.document, message.payload) == ("word", {"a": [1, None, "ü"]}, b"cba")
    with pytest.raises(Closed):
        channel.receive(30)
    assert process.wait(30) == 0


def test_limits_hold_for_received_messages():
    ours, theirs = pair()
    theirs.limits = MessageLimits()
    narrow = over(os.dup(ours.fileno()), os.dup(ours.fileno()), "narrow", MessageLimits(1000, 10))
    theirs.send("big", {}, b"x" * 11)
    with pytest.raises(WireError, match="too large"):
        narrow.receive(1)
    ours.close(), theirs.close()
