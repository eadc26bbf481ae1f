"""What of a part varies: whether it is called, how often, or what a call costs."""

from __future__ import annotations

from perflaw.learn.variance.sums import Link
from perflaw.types.explanations import Split


def split(sums: Link, n: int) -> Split:
    """Var(Y) over ``n`` invocations taken apart; the three parts add up to it.

    Between invocations that call it and those that do not lies p(1 − p)·E[Y | called]²; within those that do, trip count
    explains Cov(K, Y)²/Var(K), the best that a straight line in K can; the rest is the cost per call.

    >>> split(Link(n=4, once=0, k=12, kk=40, ky=200, y=60, yy=1000, yx=0), 4)  # Y = 5K, K in {2, 4}
    Split(called=0.0, trips=25.0, cost=0.0)
    """
    called = sums.n
    if not called or not n:
        return Split(0.0, 0.0, 0.0)
    between = (n - called) * sums.y * sums.y / (called * n * n)
    squares = called * sums.yy - sums.y * sums.y  # called²·Var(Y | called)
    trips = called * sums.kk - sums.k * sums.k
    both = called * sums.ky - sums.k * sums.y
    by_trips = both * both / (trips * called * n) if trips else 0.0
    within = squares / (called * n)
    return Split(between, min(by_trips, within), max(within - by_trips, 0.0))
