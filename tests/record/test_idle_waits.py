"""Waits in which a thread has nothing to do: few stacks are in memory, however long it is looked at."""

import random

from perflaw.record.attach.idle_waits import MOST_LOOKS, IdleWaits


def test_stacks_of_a_thread_that_is_looked_at_for_long():
    chance, waits = random.Random(1), IdleWaits()
    for _ in range(5 * MOST_LOOKS):
        waits.add_running(("run", "turn", f"page {chance.randrange(10**6)}"))
        if chance.random() < 0.2:
            waits.add_asleep()
            waits.add_sleeping(("run", "turn", "select"), is_wait=True)
    assert len(waits._looks) <= MOST_LOOKS
    assert waits.functions() == {"run", "turn", "select"}


def test_a_wait_of_the_outermost_function_and_one_within_work():
    waits = IdleWaits()
    for stack in [("serve",), ("serve", "work")] * 400:
        waits.add_running(stack)
    for stack in [("serve", "accept"), ("serve", "work", "communicate")]:
        waits.add_asleep()
        waits.add_sleeping(stack, is_wait=True)
    assert waits.functions() == {"serve", "accept"}
