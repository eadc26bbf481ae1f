"""A web service on Starlette, uvicorn and SQLite: service.py PORT [extra]. GET /stop ends it; GET /plant is as ``extra``.

With ``account`` GET /account gives two numbers of 64 bits for each answer so far: the moment when it was given (ns since 1970)
and the CPU time of the process so far (ns).

``uvicorn service:application --workers 2`` serves the same from several processes, which a signal ends.

Every page reads through ``Store.rows``: an item by its key, a search through all names, a basket of several items. With
``extra`` the basket's way to ``stock_of`` runs one more query, which has no index: the regression to be found. Its result is
not used, so all pages stay what they are.
"""

import sqlite3
import sys
import time
from array import array

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

ITEMS = 8_000
EXTRA = "extra" in sys.argv


class Store:
    """A connection in memory."""

    def __init__(self):
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)
        self.connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price INTEGER, stock INTEGER)")
        rows = [(number, f"item {number % 97} of {number}", number % 50 + 1, number % 7) for number in range(ITEMS)]
        self.connection.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", rows)

    def rows(self, sql, values=()):
        """What a query gives."""
        return self.connection.execute(sql, values).fetchall()


store = Store()


def item_of(number):
    return store.rows("SELECT name, price FROM item WHERE id = ?", (number,))[0]


def stock_of(number, checked=False):
    stock = store.rows("SELECT stock FROM item WHERE id = ?", (number,))[0][0]
    if checked and EXTRA:
        store.rows("SELECT count(*) FROM item WHERE name LIKE ?", (f"%of {number}",))
    return stock


def found(word):
    return store.rows("SELECT id, name FROM item WHERE name LIKE ? LIMIT 20", (f"%{word}%",))


def rendered(rows):
    return [" ".join(str(value) for value in row).title() for row in rows]


def number_of(request, least=0):
    return (int(request.query_params.get("n", 1)) + least) % ITEMS


async def item(request):
    number = number_of(request)
    return JSONResponse({"item": rendered([item_of(number)]), "stock": stock_of(number)})


async def search(request):
    return JSONResponse({"found": rendered(found(f"{number_of(request) % 97} of 7"))})


async def basket(request):
    numbers = [number_of(request, k) for k in range(5)]
    return JSONResponse(
        {"items": rendered(map(item_of, numbers)), "stock": [stock_of(n, checked=True) for n in numbers]}
    )


async def plant(request):
    global EXTRA
    EXTRA = True
    return JSONResponse({})


async def stop(request):
    server.should_exit = True
    return JSONResponse({})


class Account:
    """An application with a row for each answer that it has given."""

    def __init__(self, application):
        self.application, self.rows = application, array("q")

    async def __call__(self, scope, receive, send):
        if scope["path"] == "/account":
            await Response(self.rows.tobytes())(scope, receive, send)
        else:
            await self.application(scope, receive, send)
            self.rows.extend((time.time_ns(), time.process_time_ns()))


PAGES = {"/item": item, "/search": search, "/basket": basket, "/plant": plant, "/stop": stop}
application = Starlette(routes=[Route(path, page) for path, page in PAGES.items()])
served = Account(application) if "account" in sys.argv else application
server = uvicorn.Server(uvicorn.Config(served, log_level="warning", lifespan="off", timeout_keep_alive=3600))

if __name__ == "__main__":
    server.config.port = int(sys.argv[1])
    server.run()
