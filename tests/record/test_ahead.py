"""Work that is begun ahead never holds up who waits for it."""

import _thread
import threading

import pytest

from perflaw.record import ahead
from perflaw.record.ahead import Ahead


def test_it_is_done_when_joined():
    done = []
    Ahead(lambda: done.append(1)).join()
    assert done == [1]


def test_what_it_raises_is_left_to_who_needs_it(capfd):
    Ahead(lambda: [][0]).join()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("error", [RuntimeError, MemoryError])
def test_without_a_thread_nothing_is_waited_for(monkeypatch, error):
    def refuse(*arguments):
        raise error

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    Ahead(threading.Event().wait).join()


def test_a_thread_that_never_begins_is_not_waited_for_for_ever(monkeypatch):
    """Without memory a thread may end before it runs any of its code."""
    monkeypatch.setattr(_thread, "start_new_thread", lambda *arguments: 1)
    monkeypatch.setattr(ahead, "WAIT_S", 0.01)
    Ahead(threading.Event().wait).join()
