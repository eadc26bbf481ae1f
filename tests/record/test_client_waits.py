"""Whether a thread that sleeps waits for a client: by the system call, and by which end of a connection it has."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perflaw.record.attach.client_waits import ClientShares, ClientWaits
from perflaw.record.attach.idle_waits import SleepingThread
from perflaw.record.attach.native_samples import NativeSampler
from perflaw.record.attach.process import native_program


class Ends:
    """Both ends of connections by TCP and by a Unix socket, those that listen, and a pipe."""

    def __init__(self, folder: Path) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.ours = socket.create_connection(self.server.getsockname())
        self.accepted, _ = self.server.accept()
        self.local = socket.socket(socket.AF_UNIX)
        self.local.bind(str(folder / "socket"))
        self.local.listen()
        self.ours_local = socket.socket(socket.AF_UNIX)
        self.ours_local.connect(str(folder / "socket"))
        self.accepted_local, _ = self.local.accept()
        self.pipe = socket.socketpair()

    def close(self) -> None:
        for end in (self.ours, self.ours_local, self.pipe[1], self.accepted, self.accepted_local, self.pipe[0]):
            end.close()
        self.server.close()
        self.local.close()


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Ends]:
    made = Ends(tmp_path)
    yield made
    made.close()


def poll(*files: socket.socket) -> None:
    poller = select.poll()
    for file in files:
        poller.register(file, select.POLLIN)
    poller.poll(10_000)


def epoll(*files: socket.socket) -> None:
    with select.epoll() as poller:
        for file in files:
            poller.register(file, select.EPOLLIN)
        poller.poll(10)


WAITS: dict[str, tuple[Callable[[Ends], object], bool]] = {
    "a request": (lambda ends: ends.accepted.recv(1), True),
    "a request by a Unix socket": (lambda ends: ends.accepted_local.recv(1), True),
    "the answer of another server": (lambda ends: ends.ours.recv(1), False),
    "the answer of a server by a Unix socket": (lambda ends: ends.ours_local.recv(1), False),
    "another thread": (lambda ends: ends.pipe[0].recv(1), False),
    "nothing": (lambda ends: time.sleep(0.5), False),
    "poll of a request and a thread": (lambda ends: poll(ends.accepted, ends.pipe[0]), True),
    "poll of an answer": (lambda ends: poll(ends.ours, ends.pipe[0]), False),
    "epoll of a request": (lambda ends: epoll(ends.pipe[0], ends.accepted), True),
    "epoll of the next client": (lambda ends: epoll(ends.local), True),
    "epoll of an answer": (lambda ends: epoll(ends.pipe[0], ends.ours), False),
    "select of a request": (lambda ends: select.select([ends.accepted, ends.pipe[0]], [], [], 10), True),
    "select of an answer": (lambda ends: select.select([ends.ours], [], [], 10), False),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_wait_is_for_a_client_or_not(name: str, ends: Ends) -> None:
    wait, is_for_client = WAITS[name]
    thread = threading.Thread(target=wait, args=(ends,))
    thread.start()
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        asleep = SleepingThread(os.getpid(), thread.native_id or 0)
        deadline = time.monotonic() + 10
        while not (call := asleep.call()) or call.startswith(b"202 "):  # 202: futex, for the lock of the interpreter
            assert time.monotonic() < deadline
        assert ClientWaits(os.getpid(), memory.fileno()).is_one(call) == is_for_client
        asleep.close()
    for end in (ends.ours, ends.ours_local, ends.pipe[1], ends.accepted, ends.accepted_local):
        end.send(b"...")
    socket.create_connection(ends.server.getsockname()).close()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(ends.local.getsockname())
    thread.join()


def test_shares_of_functions_that_hardly_wait_for_clients():
    shares = ClientShares()
    shares.add(("serve", "handle"), 1000, is_wait=False)
    shares.add(("serve", "next_request"), 500, is_wait=True)
    shares.add(("serve", "handle", "body"), 10, is_wait=True)  # handle: 1 % of its time
    shares.add(("serve", "seldom"), 3, is_wait=False)
    assert shares.functions() == {"serve", "next_request", "body"}
    shares.add(("serve", "handle", "body"), 1000, is_wait=True)
    assert shares.functions() == {"serve", "next_request", "body", "handle"}


SERVER = r"""
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <netinet/in.h>
int helper[2];
volatile unsigned sum;
__attribute__((noinline)) void work(void) { for (unsigned i = 0; i < 2000000; i++) sum += i; }
__attribute__((noinline)) void ask_helper(void) { /* the answer of a part of the program itself, which takes a while */
    struct pollfd file = {helper[0], POLLIN, 0};
    poll(&file, 1, 10);
    sum++;
}
__attribute__((noinline)) void handle(void) { work(); ask_helper(); sum++; }
__attribute__((noinline)) ssize_t next_request(int client) { /* a frame of a size that the compiler does not know */
    char *room = __builtin_alloca(sum % 64 + 16);
    ssize_t got = read(client, room, 1);
    sum += room[0];
    return got;
}
__attribute__((noinline)) void serve(int client) { while (next_request(client) > 0) handle(); sum++; }
int main(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (pipe(helper) || bind(listener, (struct sockaddr *)&at, size) || listen(listener, 1)) return 1;
    getsockname(listener, (struct sockaddr *)&at, &size);
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    serve(accept(listener, 0, 0));
    return 0;
}
"""


def test_functions_of_a_compiled_server_that_wait_for_its_client(tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(SERVER)
    subprocess.run(["gcc", "-O2", "-o", "app", "app.c"], cwd=tmp_path, check=True)
    with subprocess.Popen([tmp_path / "app"], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        client = socket.create_connection(("127.0.0.1", int(program.stdout.readline())))
        known = native_program(program.pid)
        assert known
        sampler = NativeSampler(known)
        over, waiting = threading.Event(), {"next_request", "serve", "main"}

        def ask() -> None:
            while not over.wait(0.02):
                client.send(b".")

        asking = threading.Thread(target=ask)
        asking.start()
        deadline, idle = time.monotonic() + 30, frozenset[str]()
        while not idle >= waiting and time.monotonic() < deadline:
            idle = sampler.collect(0.5, lambda: False).idle
        over.set()
        asking.join()
        sampler.close()
        client.close()
        assert program.wait(30) == 0
    assert waiting <= idle <= {*waiting, "_start"}
