"""Functions that suspend themselves: generators that throw, close and delegate, coroutines, asynchronous everything."""

import asyncio
import contextlib

from fake_clock import advance


def inner():
    while True:
        try:
            advance(3)
            got = yield 1
            advance(got or 0)
        except KeyError:
            advance(5)
            yield -1
        except ValueError:
            return "left"
        finally:
            advance(1)


def middle():
    result = yield from inner()
    advance(7)
    yield result
    raise LookupError("middle")


def outer():
    with contextlib.suppress(LookupError):
        yield from middle()
    advance(11)


def drive():
    turns = outer()
    next(turns)
    turns.send(100)
    turns.throw(KeyError)
    turns.send(None)
    turns.throw(ValueError)
    list(turns)


def closes():
    for how in ("fresh", "begun", "delegating"):
        turns = outer() if how == "delegating" else inner()
        if how != "fresh":
            next(turns)
        advance(13)
        turns.close()


def throws_into_a_fresh_one():
    for exception in (KeyError, GeneratorExit):
        try:
            inner().throw(exception)
        except exception:
            advance(17)


def abandoned():
    turns = inner()
    next(turns)
    advance(19)
    del turns
    return [next(inner()) for _ in range(3)]


def expressions():
    return sum(len(word) for word in (str(number) for number in range(5)) if advance(2) is None)


def ping(other, n):
    advance(1)
    yield n
    if n:
        yield from (other or ping)(ping, n - 1)


class Resource:
    async def __aenter__(self):
        advance(2)
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *failure):
        await asyncio.sleep(0)
        advance(4)
        return True


async def ticks(n):
    try:
        for number in range(n):
            advance(6)
            await asyncio.sleep(0)
            yield number
    finally:
        advance(8)


async def job(n):
    async with Resource():
        async for tick in ticks(n):
            advance(tick)
            if tick == 2:
                raise OSError("in a job")
    return n


async def early():
    turns = ticks(9)
    async for _ in turns:
        break
    await turns.aclose()


class Awaitable:
    def __await__(self):
        advance(9)
        yield
        advance(10)


async def endless():
    try:
        while True:
            await asyncio.sleep(0)
            advance(1)
    except asyncio.CancelledError:
        advance(50)
        raise


async def main():
    await asyncio.gather(*(job(n) for n in range(5)))
    await early()
    await Awaitable()
    task = asyncio.create_task(endless())
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return [tick async for tick in ticks(2)]


drive()
closes()
throws_into_a_fresh_one()
abandoned()
expressions()
list(ping(None, 6))
print(asyncio.run(main()))
