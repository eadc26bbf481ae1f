"""Celery tasks, and who asks for them: as a script, it does a round of tasks for each line and prints their results.

Broker and backend are a Redis server of this machine, whose port REDIS_PORT names.
"""

import os
import sys

from celery import Celery

url = f"redis://127.0.0.1:{os.environ['REDIS_PORT']}/0"
app = Celery("celery_tasks", broker=url, backend=url)


@app.task
def total(n: int) -> int:
    found = 0
    for number in range(n):
        found += number & 7
    return found


def serve() -> None:
    for line in sys.stdin:
        waiting = [app.send_task("celery_tasks.total", (100 * number,)) for number in range(int(line))]
        print(*[task.get(timeout=120) for task in waiting])
        print("round done", flush=True)


if __name__ == "__main__":
    serve()
