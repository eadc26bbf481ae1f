"""Waits and works by the recorder's fake clock. Usage: sleepy.py [N]."""

import sys

from fake_clock import advance


def sleep():
    advance(1000, False)


def work():
    advance(500)


def main(n):
    for _ in range(n):
        sleep()
        work()
    advance(7)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
